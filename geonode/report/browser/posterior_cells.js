// An unknown as the network of the posterior sees it: geonode_runtime/posterior/cells.py and standards.py, for one
// unknown at a time. Matrices are flat, row by row.
"use strict";
const GeonodeCells = (function () {
  const { cholesky, solve, studentQuantile, studentCumulative, interpolate, median, largest, smallest } = GeonodeNumbers;
  const CELLS = 104, MINIMA = 3, ALL_MINIMA = 8, METHODS = 7, STACK = METHODS - 1, BROAD = 10, NARROWEST = 1e-7, ROUNDING = 1e-10, SHARPEST = 1e-5;
  const PEAK = [0.001, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999], FLANK = [0.01, 0.08, 0.3, 0.5, 0.7, 0.92, 0.99];
  const FLANKED = [0, 1, 2, 4, 5, 6];
  const COARSE = CELLS + 1 - MINIMA * PEAK.length - FLANKED.length * FLANK.length - BROAD;

  const clip = (v, low, high) => Math.min(Math.max(v, low), high);
  const sum = (values) => { let total = 0; for (const v of values) total += v; return total; };
  const range = (count) => Array.from({ length: count }, (_, i) => i);
  const spanOf = (known) => known.levels[known.levels.length - 1] - known.levels[0];

  // Coordinates [p] along an orthonormal basis [W, p], and the square of what lies outside, per wavelength.
  function coordinates(white, basis, usable) {
    const p = basis.shape[1], a = new Float64Array(p), whole = usable.every(Boolean);
    for (let j = 0; j < white.length; j++) if (usable[j]) for (let k = 0; k < p; k++) a[k] += white[j] * basis[j * p + k];
    let at = a;
    if (!whole) {
      const normal = new Float64Array(p * p);
      for (let j = 0; j < white.length; j++) {
        if (!usable[j]) continue;
        for (let b = 0; b < p; b++) for (let c = 0; c < p; c++) normal[b * p + c] += basis[j * p + b] * basis[j * p + c];
      }
      at = solve(cholesky(normal, p), p, a);
    }
    let rest = 0, count = 0;
    for (let j = 0; j < white.length; j++) {
      if (!usable[j]) continue;
      let inside = 0;
      for (let k = 0; k < p; k++) inside += at[k] * basis[j * p + k];
      rest += (white[j] - inside) ** 2;
      count++;
    }
    return { at, outside: rest / Math.max(count - p, 1) };
  }

  // Where among the levels: 0 at the lowest, n - 1 at the highest; beyond, the end gap goes on.
  function rankOf(levels, c) {
    const n = levels.length, places = range(n);
    return interpolate(c, levels, places) + Math.min(c - levels[0], 0) / (levels[1] - levels[0]) +
      Math.max(c - levels[n - 1], 0) / (levels[n - 1] - levels[n - 2]);
  }

  // d^2 to the places of the curve [K], and squared steps of the curve [K - 1], in the metric of its covariance.
  function distances(known, a, noise) {
    const r = a.length, count = known.places.length, full = new Float64Array(count), steps = new Float64Array(count - 1);
    for (let k = 0; k < count; k++) {
      for (let u = 0; u < r; u++) {
        let apart = 0, step = 0;
        for (let s = 0; s < r; s++) {
          const vector = known.spread_vectors[(k * r + s) * r + u];
          apart += (a[s] - known.mean[k * r + s]) * vector;
          if (k + 1 < count) step += (known.mean[(k + 1) * r + s] - known.mean[k * r + s]) * vector;
        }
        const inverse = 1 / (Math.max(known.spread_values[k * r + u], 0) + noise);
        full[k] += apart * apart * inverse;
        if (k + 1 < count) steps[k] += step * step * inverse;
      }
    }
    return { full, steps };
  }

  // The deepest minima of d^2: where, how wide, how much above the deepest; fewer: the deepest again.
  function deepest(known, full, steps) {
    const count = steps.length, at = new Float64Array(count), nearest = new Float64Array(count), span = spanOf(known);
    const width = steps.map((v) => Math.max(v, 1e-12));
    for (let k = 0; k < count; k++) {
      const t = at[k] = clip(0.5 + (full[k] - full[k + 1]) / (2 * width[k]), 0, 1);
      nearest[k] = Math.max((1 - t) * full[k] + t * full[k + 1] - t * (1 - t) * width[k], 0);
    }
    const beside = (k) => (k < 0 || k >= count ? Infinity : nearest[k]);
    const lowest = range(count).filter((k) => nearest[k] < beside(k - 1) && nearest[k] <= beside(k + 1));
    lowest.sort((i, j) => nearest[i] - nearest[j] || i - j);
    const closest = nearest[lowest[0]], where = [], scale = [], excess = [];
    for (let m = 0; m < ALL_MINIMA; m++) {
      const k = m < lowest.length ? lowest[m] : lowest[0], gap = known.places[k + 1] - known.places[k];
      where.push(known.places[k] + at[k] * gap);
      scale.push(clip(gap / Math.sqrt(width[k]), 1e-6 * span, span));
      excess.push(m < lowest.length ? Math.min(nearest[k] - closest, 60) : 60);
    }
    return { where, scale, excess, closest };
  }

  // Where x [r] lies nearest to the polyline [K, r] over the places, and the square distance.
  function nearestOn(curve, x, places) {
    const r = x.length;
    const distance = new Float64Array(places.length - 1), where = new Float64Array(places.length - 1);
    let reach = 0;
    for (let k = 0; k < places.length; k++) reach = Math.max(reach, sum(curve.slice(k * r, (k + 1) * r).map((v) => v * v)));
    for (let k = 0; k + 1 < places.length; k++) {
      let length = 0, along = 0, square = 0;
      for (let s = 0; s < r; s++) {
        const step = curve[(k + 1) * r + s] - curve[k * r + s], gap = x[s] - curve[k * r + s];
        length += step * step; along += gap * step; square += gap * gap;
      }
      length = Math.max(length, 2.2250738585072014e-308);
      const t = clip(along / length, 0, 1);
      distance[k] = square - 2 * t * along + t * t * length;
      where[k] = places[k] + t * (places[k + 1] - places[k]);
    }
    const same = smallest(distance) + ROUNDING * (reach + sum(x.map((v) => v * v))), k = distance.findIndex((v) => v <= same);
    return { found: where[k], distance: Math.max(distance[k], 0) };
  }

  // The Gaussian process on the scores of x [p].
  function processOf(known, x) {
    const p = x.length, q = known.score_basis.shape[1], n = known.levels.length, scores = new Float64Array(q);
    for (let s = 0; s < p; s++) for (let k = 0; k < q; k++) scores[k] += x[s] * known.score_basis[s * q + k];
    let found = known.middle;
    for (let i = 0; i < n; i++) {
      let square = 0;
      for (let k = 0; k < q; k++) square += (scores[k] - known.score_points[i * q + k]) ** 2;
      for (let g = 0; g < known.lengths.length; g++) {
        found += known.amounts[g * n + i] * Math.exp(-0.5 * square / known.lengths[g] ** 2);
      }
    }
    return clip(found, known.low, known.high);
  }

  // The seven point estimates, and the square distance from the curve.
  function estimatesOf(known, a, x) {
    const p = x.length, found = [known.plain_mean, known.pchip].map((curve) => nearestOn(curve, x, known.places).found);
    for (let k = 0; k < 3; k++) {
      let y = known.offsets[k];
      for (let s = 0; s < p; s++) y += (x[s] - known.centres[k * p + s]) * known.vectors[k * p + s];
      const kappa = known.kappas[k];
      found.push(clip(Number.isFinite(kappa) ? kappa * y / Math.max(1 - y, 1e-12) : y, known.low, known.high));
    }
    found.push(processOf(known, x));
    found.push(sum(found.map((v, k) => v * known.stack[k])));
    return { estimates: found, near: nearestOn(known.mean, a, known.places).distance };
  }

  // Left-out error of every method around its own estimate, with the noise of an unknown of fewer replicates.
  function errorsNear(known, estimates, phi, replicates) {
    const n = known.levels.length, m = known.left_out.length, span = spanOf(known);
    const more = Math.max(phi * (1 / replicates - 1 / known.replicates), 0);
    return estimates.map((c, method) => {
      const rank = rankOf(known.levels, c), inside = rank > 0 && rank < n - 1;
      let total = 0, square = 0;
      for (let i = 0; i < m; i++) {
        const at = known.left_out[i], end = at === 0 || at === n - 1;
        const weight = Math.exp(-Math.abs(rank - at) / 1.5) * (end && inside ? 0.15 : 1) + 1e-9;
        total += weight;
        square += weight * known.errors[i * METHODS + method] ** 2;
      }
      const error = Math.sqrt(square / total) + SHARPEST * span;
      if (!(more > 0)) return error;
      const slope = Math.max(interpolate(c, known.places, known.slope), 1e-9 / span);
      return Math.hypot(error, Math.min(Math.sqrt(more) / slope, span));
    });
  }

  // Square distance per wavelength from mixes of the standards.
  function ridgeOf(known, a, outside, replicates) {
    const p = a.length, n = known.levels.length, width = known.scale.length, z = known.points;
    const right = range(n).map((i) => sum(range(p).map((k) => a[k] * z[i * p + k])));
    right.push(1);
    const weights = range(n).map((i) => sum(right.map((v, k) => v * known.ridge_inverse[i * (n + 1) + k])));
    const square = sum(range(p).map((k) => (a[k] - sum(weights.map((w, i) => w * z[i * p + k]))) ** 2));
    return (square + width * sum(weights.map((w) => w * w))) / width + outside * Math.max(width - p, 1) / width * replicates;
  }

  // Cumulative mass [K] of the profile likelihood, a twentieth of it even over the searched range.
  function profileOf(places, likelihood) {
    const count = places.length, reach = places[count - 1] - places[0], part = new Float64Array(count - 1);
    for (let k = 0; k + 1 < count; k++) {
      part[k] = 0.5 * (Math.exp(likelihood[k + 1]) + Math.exp(likelihood[k])) * (places[k + 1] - places[k]);
    }
    const total = Math.max(sum(part), 1e-300);
    for (let k = 0; k + 1 < count; k++) part[k] = 0.95 * part[k] / total + 0.05 * (places[k + 1] - places[k]) / reach;
    const whole = sum(part), cumulative = new Float64Array(count);
    for (let k = 0; k + 1 < count; k++) cumulative[k + 1] = cumulative[k] + part[k] / whole;
    return cumulative;
  }

  const dofOf = (known) => Math.min(Math.max(known.levels.length - 1, 2), 8);

  function edgesOf(known, minima, estimates, error, profile) {
    const { low, high, levels, places } = known, dof = dofOf(known), found = [];
    const peak = PEAK.map((p) => studentQuantile(dof, p)), flank = FLANK.map((p) => studentQuantile(dof, p));
    minima.where.forEach((c, k) => peak.forEach((t) => found.push(c + minima.scale[k] * t)));
    FLANKED.forEach((k) => flank.forEach((t) => found.push(estimates[k] + error[k] * t)));
    for (let i = 0; i < COARSE; i++) found.push(interpolate((i + 0.5) / COARSE, profile, places));
    for (let i = 0; i < BROAD - 2; i++) found.push(low + (high - low) * i / (BROAD - 3));
    found.push(levels[0], levels[levels.length - 1]);
    const edges = Float64Array.from(found, (v) => clip(v, low, high)).sort(), room = NARROWEST * (high - low);
    let most = -Infinity;
    for (let i = 0; i <= CELLS; i++) {
      most = Math.max(most, edges[i] - room * i);
      edges[i] = most + room * i;
    }
    return edges.map((v, i) => Math.min(v, high - room * (CELLS - i)));
  }

  // Log mass of the candidates' mixture in every cell, below and above.
  function baseOf(known, edges, minima, estimates, error, profile) {
    const dof = dofOf(known), span = spanOf(known);
    const own = minima.excess.map((v) => Math.exp(-0.5 * v)), weights = error.slice(0, STACK).map((v) => 1 / (v / span));
    const share = [...own.map((v) => 0.35 * v / sum(own)), ...weights.map((v) => 0.25 * v / sum(weights)), 0.2];
    const where = [...minima.where, ...estimates];
    const width = [...minima.scale.map((v) => Math.hypot(v, 0.3 * error[0])), ...error];
    const at = (edge) => where.map((c, k) => studentCumulative(dof, (edge - c) / width[k]));
    const total = new Float64Array(CELLS + 2);
    let before = at(edges[0]), below = sum(before.map((v, k) => v * share[k])), mass = interpolate(edges[0], known.places, profile);
    for (let i = 0; i < CELLS; i++) {
      const after = at(edges[i + 1]), next = interpolate(edges[i + 1], known.places, profile);
      total[i] = sum(after.map((v, k) => (v - before[k]) * share[k])) + 0.15 * (next - mass) +
        0.05 * (edges[i + 1] - edges[i]) / (known.high - known.low);
      before = after;
      mass = next;
    }
    const above = sum(before.map((v, k) => (1 - v) * share[k]));
    if (known.levels[0] >= 0 && known.low === 0) {
      total[0] += below;
      below = 1e-12;
    }
    total[CELLS] = below + 1e-12;
    total[CELLS + 1] = above + 1e-12;
    const whole = sum(total);
    return total.map((v) => Math.log(Math.max(v / whole, 1e-12)));
  }

  // Features of every cell [CELLS, 20].
  function valuesOf(known, edges, base, likelihood, plain, noise, minima, estimates, error) {
    const { levels, places } = known, span = spanOf(known), n = levels.length, least = Math.min(...plain), found = [];
    const bare = plain.map((v) => v - least), slope = known.slope.map((v) => Math.max(v * span, 1e-9));
    for (let i = 0; i < CELLS; i++) {
      const c = 0.5 * (edges[i + 1] + edges[i]), width = edges[i + 1] - edges[i];
      let left = -1;
      for (let k = 0; k < n; k++) if (levels[k] <= c) left = k;
      left = clip(clip(left, 0, n - 1), 0, n - 2);
      const gap = Math.min(...Array.from(levels, (v) => Math.abs(c - v))) / span;
      const parts = [
        interpolate(c, places, likelihood) / 4,
        Math.asinh(interpolate(c, places, bare)) / 4,
        base[i] - Math.log(width / span),
        Math.log(Math.sqrt(noise) / interpolate(c, places, slope) + 1e-6),
        Math.log(interpolate(c, places, known.doubt) + 1e-6),
        Math.log(gap + 1e-4),
        Math.log((levels[left + 1] - levels[left]) / span),
        Math.max(rankOf(levels, c), -1) / Math.max(n - 1, 1),
        Number(c < levels[0]) - Number(c > levels[n - 1]),
        Math.log(width / span),
      ].map((v) => clip(v, -12, 12));
      minima.where.forEach((at, k) => parts.push(Math.asinh((c - at) / minima.scale[k])));
      estimates.forEach((at, k) => parts.push(Math.asinh((c - at) / error[k])));
      found.push(parts);
    }
    return found;
  }

  // Features of the whole unknown [67].
  function wholeOf(known, seen) {
    const { replicates, q, closest, near, ridge, minima, estimates, error, base } = seen;
    const { levels } = known, span = spanOf(known), n = levels.length, rank = known.keep.length;
    const rms = Array.from(known.typical);
    const distance = known.left_out_distance.map((v) => v + rank), mixes = known.left_out_ridge.map((v) => v + 0.1);
    const middle = estimates[STACK];
    let widest = 0;
    for (let i = 0; i + 1 < n; i++) widest = Math.max(widest, levels[i + 1] - levels[i]);
    const table = [
      Math.log(n) - 2, Math.log(known.replicates), Number(levels[0] >= 0), Number(levels[0] === 0), Number(known.low === 0),
      0.3 * Math.log(known.signal + 1e-3), rank / 12, Math.log(widest / span * (n - 1)), 0.3 * Math.log(median(distance)),
      0.3 * Math.log(largest(distance)), 0.5 * Math.log(median(mixes)), 0.5 * Math.log(largest(mixes)), known.declared,
      Math.log(replicates), 0.5 * Math.log(q + 0.1), 0.3 * Math.log(closest + 1), 0.3 * Math.log(near + 1),
      0.3 * Math.log((near + rank) / median(distance)), 0.3 * Math.log((near + rank) / largest(distance)),
      0.5 * Math.log(ridge + 0.1), 0.5 * Math.log((ridge + 0.1) / median(mixes)), 0.5 * Math.log((ridge + 0.1) / largest(mixes)),
      (middle - levels[0]) / span, rankOf(levels, middle) / (n - 1), 0.3 * base[CELLS], 0.3 * base[CELLS + 1],
    ];
    const order = rms.map((v, k) => rms.filter((other, j) => other < v || (other === v && j < k)).length / STACK);
    table.push(...error.map((v) => Math.log(v / span) / 2), ...rms.map((v) => Math.log(v / span) / 2), ...order);
    table.push(...estimates.map((v, k) => Math.asinh((v - middle) / error[k])));
    table.push(...estimates.map((v) => Math.log(Math.abs(v - middle) / span + 1e-5) / 2));
    table.push(...minima.scale.map((v) => Math.log(v / span) / 2), ...minima.excess.map((v) => Math.log1p(v)));
    return table.map((v) => clip(v, -8, 8));
  }

  // The cells of an unknown [W], the mean of so many replicates.
  function cellsOf(known, spectrum, usable, replicates) {
    const white = Float64Array.from(spectrum, (v, j) => (v - known.centre[j]) / known.scale[j]);
    const { at: all, outside } = coordinates(white, known.basis, usable);
    const x = coordinates(Float64Array.from(spectrum, (v, j) => v - known.centre[j]), known.plain_basis, usable).at;
    const kept = Array.from(known.keep), a = Float64Array.from(kept, (k) => all[k]), rank = kept.length;
    const rest = sum(Array.from(all).filter((_, k) => !kept.includes(k)).map((v) => v * v)), width = known.scale.length;
    const q = (outside * Math.max(width - all.length, 1) + rest) / Math.max(width - rank, 1) * replicates, phi = Math.max(q, 1);
    const noise = phi / replicates, { full, steps } = distances(known, a, noise);
    const plain = Array.from(known.places, (_, k) => sum(range(rank).map((s) => (a[s] - known.mean[k * rank + s]) ** 2)) / noise);
    const every = deepest(known, full, steps), { closest } = every;
    const minima = Object.fromEntries(["where", "scale", "excess"].map((name) => [name, every[name].slice(0, MINIMA)]));  // as the network sees
    const { estimates, near } = estimatesOf(known, a, x);
    const error = errorsNear(known, estimates, phi, replicates), inflation = Math.max(1, closest / Math.max(rank - 1, 1));
    const likelihood = full.map((v) => -0.5 * (known.dof + 1) * Math.log1p(Math.max(v - closest, 0) / (known.dof * inflation)));
    const profile = profileOf(known.places, likelihood), edges = edgesOf(known, minima, estimates, error, profile);
    const base = baseOf(known, edges, minima, estimates, error, profile), ridge = ridgeOf(known, all, outside, replicates);
    const strayQ = ridge / Math.max(largest(known.left_out_ridge), 1);
    const strayT = (near * replicates / phi + rank) / (largest(known.left_out_distance) + rank);
    return {
      edges, base, stray: [strayQ, strayT], at: a, noise, minima: every,
      values: valuesOf(known, edges, base, likelihood, plain, noise, minima, estimates, error),
      whole: wholeOf(known, { replicates, q, closest, near: near * replicates, ridge, minima, estimates, error, base }),
      odd: Math.max(Math.log(Math.max(strayQ, 1e-3)), 0) + Math.max(Math.log(strayT), 0) - 3,
    };
  }

  return { CELLS, cellsOf, coordinates, spanOf, dofOf };
})();
