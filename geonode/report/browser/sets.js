// Distances to the predicted curve, and the sets of concentrations they make: geonode/calibration/inverse/model.py and
// geonode_runtime/sets.py, for one unknown at a time.
"use strict";
const GeonodeSets = (function () {
  const { Refusal, cholesky, inverseForm, solve, smallestEigenvalue, studentQuantile } = GeonodeNumbers;
  const SUB = 8, SMALLEST_SHARE = 1e-6;

  // B'B [r, r] over the usable wavelengths.
  function normal(model, usable) {
    const r = model.rank, total = new Float64Array(r * r);
    usable.forEach((flag, j) => {
      if (!flag) return;
      for (let a = 0; a < r; a++) for (let b = 0; b < r; b++) total[a * r + b] += model.basis[j * r + a] * model.basis[j * r + b];
    });
    return total;
  }

  function requireUsable(model, usable) {
    const left = usable.filter(Boolean).length;
    if (left <= model.rank || smallestEigenvalue(normal(model, usable), model.rank) < SMALLEST_SHARE) {
      throw new Refusal("too few wavelengths of the unknown can be used to tell concentrations apart; measure it again, " +
        "with fewer of them masked or saturated.");
    }
  }

  // Coordinates [r] and residual outside the standards' span per degree of freedom.
  function project(model, spectrum, usable) {
    const r = model.rank, whole = usable.every(Boolean);
    const white = Float64Array.from(spectrum, (v, j) => (usable[j] ? (v - model.centre[j]) / model.scale[j] : 0));
    let a = new Float64Array(r);
    white.forEach((v, j) => { for (let k = 0; k < r; k++) a[k] += v * model.basis[j * r + k]; });
    if (!whole) a = solve(cholesky(normal(model, usable), r), r, a);
    let rest = 0;
    white.forEach((v, j) => {
      if (!usable[j]) return;
      let inside = 0;
      for (let k = 0; k < r; k++) inside += a[k] * model.basis[j * r + k];
      rest += (v - inside) ** 2;
    });
    return { coordinates: a, residual: rest / Math.max(usable.filter(Boolean).length - r, 1) };
  }

  // How much less the usable wavelengths pin the coordinates down: tr (B'B)^-1 / r, at least 1.
  function widening(model, usable) {
    if (usable.every(Boolean)) return 1;
    const r = model.rank, factor = cholesky(normal(model, usable), r);
    let trace = 0;
    for (let k = 0; k < r; k++) trace += solve(factor, r, Array.from({ length: r }, (_, i) => Number(i === k)))[k];
    return Math.max(1, trace / r);
  }

  // Squared distances [K], squared steps of the curve [K - 1] and Q of a spectrum, the mean of so many replicates.
  function compare(model, spectrum, usable, replicates) {
    const { coordinates, residual } = project(model, spectrum, usable);
    const q = residual * replicates, phi = Math.max(q, 1) * widening(model, usable);
    const r = model.rank, count = model.grid.length, corners = r * (r + 1) / 2;
    const squared = new Float64Array(count), steps = new Float64Array(count - 1);
    const matrix = new Float64Array(r * r), apart = new Float64Array(r);
    const forward = new Float64Array(r), back = new Float64Array(r);
    for (let k = 0; k < count; k++) {
      for (let i = 0, at = k * corners; i < r; i++) {
        for (let j = 0; j <= i; j++, at++) {
          const noise = (model.scatter[i * r + j] + (i === j ? phi : 0)) / replicates;
          matrix[i * r + j] = matrix[j * r + i] = model.covariance[at] + noise;
        }
      }
      const factor = cholesky(matrix, r);
      for (let i = 0; i < r; i++) {
        const here = model.curve[k * r + i];
        apart[i] = coordinates[i] - here;
        if (k + 1 < count) forward[i] = model.curve[(k + 1) * r + i] - here;
        if (k > 0) back[i] = here - model.curve[(k - 1) * r + i];
      }
      squared[k] = inverseForm(factor, r, apart);
      if (k + 1 < count) steps[k] += 0.5 * inverseForm(factor, r, forward);
      if (k > 0) steps[k - 1] += 0.5 * inverseForm(factor, r, back);
    }
    return { squared, steps, q };
  }

  // d^2 (with what is added where less is known) along the segments of the curve.
  function along(total, steps) {
    const count = steps.length, fractions = new Float64Array(count), nearest = new Float64Array(count);
    const at = (k, t) => Math.max((1 - t) * total[k] + t * total[k + 1] - t * (1 - t) * steps[k], 0);
    let minimum = Infinity;
    for (let k = 0; k < count; k++) {
      const t = 0.5 + (total[k] - total[k + 1]) / (2 * steps[k]);
      fractions[k] = Number.isFinite(t) ? Math.min(Math.max(t, 0), 1) : 0.5;
      nearest[k] = at(k, fractions[k]);
      minimum = Math.min(minimum, nearest[k]);
    }
    return { total, steps, fractions, nearest, minimum, at };
  }

  const inflation = (model, minimum) => Math.max(1, minimum / Math.max(model.rank - 1, 1));

  // The sets at several levels, and T^2: the smallest d^2 anywhere, nothing added.
  function atLevels(model, distances, levels) {
    const line = along(distances.squared.map((v, k) => v + model.doubt[k]), distances.steps);
    const mass = posterior(model, line);
    const sets = levels.map((level) => {
      const quantile = studentQuantile(model.dof, 0.5 + 0.5 * level) ** 2;
      const ends = crossings(line, line.minimum + quantile * inflation(model, line.minimum));
      return { level, components: components(model, line, ends, mass) };
    });
    return { sets, t2: along(distances.squared, distances.steps).minimum };
  }

  // Fractions of every segment between which d^2 stays within the limit; NaN where it nowhere does.
  function crossings(line, limit) {
    const { total, steps, nearest } = line, low = new Float64Array(steps.length), high = new Float64Array(steps.length);
    const clipped = (v, otherwise) => (Number.isFinite(v) ? Math.min(Math.max(v, 0), 1) : otherwise);
    for (let k = 0; k < steps.length; k++) {
      const a = steps[k], b = total[k + 1] - total[k] - a, c = total[k] - limit;
      const root = Math.sqrt(Math.max(b * b - 4 * a * c, 0)), ends = total[k + 1] <= limit;
      const hit = c <= 0 || ends || nearest[k] <= limit * (1 + 1e-12);
      low[k] = hit ? clipped(c <= 0 ? 0 : (-b - root) / (2 * a), 0) : NaN;
      high[k] = hit ? clipped(ends ? 1 : (-b + root) / (2 * a), 1) : NaN;
    }
    return { low, high };
  }

  // Posterior mass and midpoint of every part of the segments.
  function posterior(model, line) {
    const { grid, dof } = model, { steps, minimum, at } = line, count = steps.length;
    const range = grid[count] - grid[0], scale = inflation(model, minimum), power = -0.5 * (dof + 1);
    const mass = new Float64Array(count * SUB), nodes = new Float64Array(count * SUB);
    let travelled = 0, total = 0;
    for (let k = 0; k < count; k++) travelled += Math.sqrt(Math.max(steps[k], 0));
    for (let k = 0; k < count; k++) {
      const cell = (grid[k + 1] - grid[k]) / SUB, even = cell / range;
      const far = travelled > 0 ? Math.sqrt(Math.max(steps[k], 0)) / SUB / travelled : even;
      for (let s = 0; s < SUB; s++) {
        const t = (s + 0.5) / SUB, excess = Math.max(at(k, t) - minimum, 0), i = k * SUB + s;
        nodes[i] = grid[k] + (grid[k + 1] - grid[k]) * t;
        mass[i] = Math.pow(1 + excess / (dof * scale), power) * 0.5 * (even + far);
        total += mass[i];
      }
    }
    return { mass: mass.map((v) => v / total), nodes };
  }

  function pieces(low, high) {
    const found = [];
    for (let k = 0; k < low.length; k++) {
      if (!Number.isFinite(low[k])) continue;
      const last = found[found.length - 1];
      if (last && last[1] === k - 1 && high[k - 1] === 1 && low[k] === 0) last[1] = k; else found.push([k, k]);
    }
    return found;
  }

  // For every piece the half-open range of segments that counts as its own: up to the ridge towards the next.
  function cuts(nearest, found) {
    const edges = [0];
    for (let p = 0; p + 1 < found.length; p++) {
      const last = found[p][1], first = found[p + 1][0];
      let ridge = last;
      for (let k = last; k <= first; k++) if (nearest[k] > nearest[ridge]) ridge = k;
      edges.push(first > last + 1 ? ridge + 1 : first);
    }
    edges.push(nearest.length);
    return found.map((_, p) => [edges[p], Math.max(edges[p + 1], edges[p] + 1)]);
  }

  function components(model, line, ends, posteriorMass) {
    const { grid } = model, { low, high } = ends, { mass, nodes } = posteriorMass, segments = line.steps.length;
    const found = pieces(low, high), own = cuts(line.nearest, found);
    const made = found.map(([first, last], p) => {
      let k = first, total = 0, mean = 0, variance = 0;
      for (let j = first; j <= last; j++) if (line.nearest[j] < line.nearest[k]) k = j;
      const [start, stop] = own[p].map((edge) => edge * SUB);
      for (let i = start; i < stop; i++) { total += mass[i]; mean += mass[i] * nodes[i]; }
      if (total > 0) {
        mean /= total;
        for (let i = start; i < stop; i++) variance += mass[i] * (nodes[i] - mean) ** 2;
        variance /= total;
      } else mean = nodes.slice(start, stop).reduce((a, b) => a + b, 0) / (stop - start);
      return {
        low: grid[first] + low[first] * (grid[first + 1] - grid[first]),
        high: grid[last] + high[last] * (grid[last + 1] - grid[last]),
        openLow: first === 0 && low[first] === 0 && !model.endsAtZero,  // zero is a limit of nature
        openHigh: last === segments - 1 && high[last] === 1,
        estimate: grid[k] + line.fractions[k] * (grid[k + 1] - grid[k]),
        probability: total, mean, std: Math.sqrt(variance),
      };
    });
    return made.sort((a, b) => b.probability - a.probability);
  }

  // Whether two pieces lie so close that the answer could not tell them apart.
  function close(left, right, span) {
    return right.low - left.high < Math.min(Math.max(left.std, right.std), 0.02 * span);
  }

  function closeAsOne(set, span) {
    const found = [];
    for (const piece of set.components.slice().sort((a, b) => a.low - b.low)) {
      const last = found.pop();
      found.push(...(last && close(last, piece, span) ? [together(last, piece)] : last ? [last, piece] : [piece]));
    }
    return { ...set, components: found.sort((a, b) => b.probability - a.probability) };
  }

  function together(left, right) {
    const total = left.probability + right.probability, share = total > 0 ? left.probability / total : 0.5;
    const mean = share * left.mean + (1 - share) * right.mean, spread = (c) => c.std ** 2 + (c.mean - mean) ** 2;
    return { ...(right.probability > left.probability ? right : left), low: left.low, high: right.high, openLow: left.openLow,
      openHigh: right.openHigh, probability: total, mean, std: Math.sqrt(share * spread(left) + (1 - share) * spread(right)) };
  }

  return { requireUsable, project, compare, atLevels, close, closeAsOne, together };
})();
