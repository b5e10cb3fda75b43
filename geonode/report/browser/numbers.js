// Numbers as the answers need them: arrays from base64, Python's %g, quantiles, small symmetric matrices.
// The formulas of quantiles are those of geonode_runtime/distributions.py.
"use strict";
const GeonodeNumbers = (function () {
  const TERMS = 500, TINY = 1e-300, LARGE_ENOUGH = 1e-16, LARGE = 1e7;

  // A sentence for the reader; anything else that is thrown is a fault of this program.
  class Refusal extends Error {}

  // {shape, type, data}: float64 or float32, little-endian, base64 -> Float64Array with a shape.
  function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
    const size = packed.type === "<f4" ? 4 : 8, view = new DataView(bytes.buffer), values = new Float64Array(bytes.length / size);
    for (let i = 0; i < values.length; i++) values[i] = size === 4 ? view.getFloat32(4 * i, true) : view.getFloat64(8 * i, true);
    values.shape = packed.shape;
    return values;
  }

  function withoutZeros(text) { return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text; }

  // Python's format(value, ".<digits>g"); six digits where none are asked for.
  function general(value, digits = 6) {
    if (Number.isNaN(value)) return "nan";
    if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
    if (value === 0) return Object.is(value, -0) ? "-0" : "0";
    const [mantissa, power] = value.toExponential(digits - 1).split("e"), exponent = Number(power);
    if (exponent >= -4 && exponent < digits) return withoutZeros(value.toFixed(digits - 1 - exponent));
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return withoutZeros(mantissa) + "e" + (exponent < 0 ? "-" : "+") + size;
  }

  // A number for a reader, as geonode_runtime/figures.py writes it: 0 where it is nothing beside the largest of its neighbours.
  function figure(value, beside = 0, digits = 4) {
    if (Number.isFinite(beside) && beside !== 0) {
      const third = 10 ** (Math.floor(Math.log10(Math.abs(beside))) - 2);
      if (Math.abs(value) < 0.5 * third) value = 0;
    }
    const text = general(value + 0, digits);
    return text.includes("e+") && Math.abs(value) < LARGE ? Number(text).toFixed(0) : text;
  }

  // ln Gamma(x) for x > 0: Stirling's series (DLMF 5.11.1) from x + n >= 15 on, by the recurrence down from there.
  function logGamma(x) {
    let shift = 0;
    while (x < 15) { shift += Math.log(x); x += 1; }
    const s = 1 / (x * x);
    const series = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360))))) / x;
    return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - shift;
  }

  const away = (value) => (Math.abs(value) > TINY ? value : TINY);

  function betaFraction(a, b, x) {
    let c = 1, d = 1 / away(1 - (a + b) * x / (a + 1)), value = d;
    for (let m = 1; m < TERMS; m++) {
      for (const term of [m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
        -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))]) {
        d = 1 / away(1 + term * d);
        c = away(1 + term / c);
        value *= c * d;
      }
      if (Math.abs(c * d - 1) < LARGE_ENOUGH) break;
    }
    return value;
  }

  // I_x(a, b), rest = 1 - x.
  function incompleteBeta(a, b, x, rest) {
    if (x <= 0 || rest <= 0) return rest <= 0 ? 1 : 0;
    const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(rest));
    if (x < (a + 1) / (a + b + 2)) return front * betaFraction(a, b, x) / a;
    return 1 - front * betaFraction(b, a, rest) / b;
  }

  // Q(a, x), the upper incomplete gamma function over Gamma(a).
  function upperGamma(a, x) {
    if (x <= 0) return 1;
    const front = Math.exp(a * Math.log(x) - x - logGamma(a));
    if (x < a + 1) {
      let term = 1 / a, total = term;
      for (let n = 1; n < 20 * TERMS && term >= 1e-17 * total; n++) { term *= x / (a + n); total += term; }
      return 1 - front * total;
    }
    let b = x + 1 - a, c = 1 / TINY, d = 1 / b, value = d;
    for (let n = 1; n < 20 * TERMS; n++) {
      const term = -n * (n - a);
      b += 2;
      d = 1 / away(term * d + b);
      c = away(b + term / c);
      value *= c * d;
      if (Math.abs(c * d - 1) < LARGE_ENOUGH) break;
    }
    return front * value;
  }

  // The zero of a decreasing function of x > 0: bracketed by doubling, then halved until nothing is left between.
  function root(excess, start) {
    let low = 0, high = start;
    while (excess(high) > 0) { low = high; high *= 2; }
    for (let k = 0; k < 200; k++) {
      const middle = 0.5 * (low + high);
      if (middle === low || middle === high) break;
      if (excess(middle) > 0) low = middle; else high = middle;
    }
    return 0.5 * (low + high);
  }

  function studentQuantile(dof, probability) {
    if (probability < 0.5) return -studentQuantile(dof, 1 - probability);
    const tail = 2 * (1 - probability);
    if (tail >= 1) return 0;
    return root((t) => incompleteBeta(0.5 * dof, 0.5, dof / (dof + t * t), t * t / (dof + t * t)) - tail, 1);
  }

  const chi2UpperQuantile = (dof, tail) => root((x) => upperGamma(0.5 * dof, 0.5 * x) - tail, dof);

  // P(T <= t) for a whole number of degrees of freedom >= 2.
  function studentCumulative(dof, t) {
    const sine = t / Math.sqrt(dof + t * t), square = dof / (dof + t * t), odd = dof % 2;
    let term = odd ? Math.sqrt(square) : 1, total = term;
    for (let k = 2 + odd; k < dof; k += 2) {
      term *= square * ((k - 1) / k);
      total += term;
    }
    return 0.5 + 0.5 * (odd ? 2 / Math.PI * (Math.atan(t / Math.sqrt(dof)) + sine * total) : sine * total);
  }

  // The value at x of the line through ascending points, level beyond its ends.
  function interpolate(x, points, values) {
    const end = points.length - 1;
    if (x <= points[0]) return values[0];
    if (x >= points[end]) return values[end];
    let low = 0, high = end;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle] <= x) low = middle; else high = middle;
    }
    return values[low] + (values[low + 1] - values[low]) / (points[low + 1] - points[low]) * (x - points[low]);
  }

  // Lower Cholesky factor [r, r] of a symmetric matrix [r, r], both flat.
  function cholesky(matrix, r) {
    const factor = new Float64Array(r * r);
    for (let i = 0; i < r; i++) {
      for (let j = 0; j <= i; j++) {
        let sum = matrix[i * r + j];
        for (let k = 0; k < j; k++) sum -= factor[i * r + k] * factor[j * r + k];
        factor[i * r + j] = i === j ? Math.sqrt(sum) : sum / factor[j * r + j];
      }
    }
    return factor;
  }

  // |L^-1 x|^2 for the factor L of a matrix: the quadratic form of x in the inverse of that matrix.
  function inverseForm(factor, r, x) {
    const y = new Float64Array(r);
    let total = 0;
    for (let i = 0; i < r; i++) {
      let sum = x[i];
      for (let k = 0; k < i; k++) sum -= factor[i * r + k] * y[k];
      y[i] = sum / factor[i * r + i];
      total += y[i] * y[i];
    }
    return total;
  }

  // The solution of (L L') z = x.
  function solve(factor, r, x) {
    const z = Float64Array.from(x);
    for (let i = 0; i < r; i++) {
      for (let k = 0; k < i; k++) z[i] -= factor[i * r + k] * z[k];
      z[i] /= factor[i * r + i];
    }
    for (let i = r - 1; i >= 0; i--) {
      for (let k = i + 1; k < r; k++) z[i] -= factor[k * r + i] * z[k];
      z[i] /= factor[i * r + i];
    }
    return z;
  }

  // The smallest eigenvalue of a symmetric matrix [r, r], by Jacobi's rotations.
  function smallestEigenvalue(matrix, r) {
    const a = Float64Array.from(matrix);
    for (let sweep = 0; sweep < 60; sweep++) {
      let off = 0;
      for (let p = 0; p < r; p++) for (let q = p + 1; q < r; q++) off += a[p * r + q] ** 2;
      if (off < 1e-30) break;
      for (let p = 0; p < r; p++) for (let q = p + 1; q < r; q++) rotate(a, r, p, q);
    }
    let least = Infinity;
    for (let p = 0; p < r; p++) least = Math.min(least, a[p * r + p]);
    return least;
  }

  function rotate(a, r, p, q) {
    if (a[p * r + q] === 0) return;
    const theta = (a[q * r + q] - a[p * r + p]) / (2 * a[p * r + q]);
    const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
    const c = 1 / Math.sqrt(t * t + 1), s = t * c;
    for (let k = 0; k < r; k++) {
      const x = a[k * r + p], y = a[k * r + q];
      a[k * r + p] = c * x - s * y;
      a[k * r + q] = s * x + c * y;
    }
    for (let k = 0; k < r; k++) {
      const x = a[p * r + k], y = a[q * r + k];
      a[p * r + k] = c * x - s * y;
      a[q * r + k] = s * x + c * y;
    }
  }

  function median(values) {
    const sorted = Float64Array.from(values).sort(), half = sorted.length >> 1;
    return sorted.length % 2 ? sorted[half] : 0.5 * (sorted[half - 1] + sorted[half]);
  }

  function largest(values) {
    let most = -Infinity;
    for (const v of values) if (v > most) most = v;
    return most;
  }

  function smallest(values) {
    let least = Infinity;
    for (const v of values) if (v < least) least = v;
    return least;
  }

  return { Refusal, unpack, general, figure, studentQuantile, studentCumulative, chi2UpperQuantile, interpolate, cholesky, inverseForm, solve,
    smallestEigenvalue, median, largest, smallest };
})();
