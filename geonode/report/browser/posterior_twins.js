// Concentrations that the spectrum does not refute and the network left out: geonode_runtime/posterior/twins.py.
"use strict";
const GeonodeTwins = (function () {
  const { studentCumulative, interpolate, median, smallest } = GeonodeNumbers, { spanOf, dofOf } = GeonodeCells, { belowOf } = GeonodeDensity;
  const STARVED = 0.2, HELD = 0.5, MOST = 0.5, REACH = 4, FAR = 0.5, BESIDE = 2;
  const sum = (values) => { let total = 0; for (const v of values) total += v; return total; };

  // The posterior with the minima of the curve that it left out though the spectrum does not refute them.
  function withTwins(known, one, cells) {
    const { where, scale } = cells.minima, distinct = where.map((_, k) => k).filter((k) => !where.slice(0, k).includes(where[k]));
    const at = distinct.map((k) => where[k]), wide = distinct.map((k) => scale[k] / Math.sqrt(known.power));
    let share = sharesOf(known, cells, distinct, at, wide);
    const { levels } = known, top = levels[levels.length - 1];
    const held = at.map((c, k) => belowOf(one, c + REACH * wide[k]) - belowOf(one, c - REACH * wide[k]) +
      (c > top ? one.above : 0) + (c < levels[0] ? one.below : 0));
    held.push(one.above / FAR);
    const poor = held.map((v, k) => v < STARVED * share[k]), last = at.length;
    // what a minimum holds whose reach covers the starved one's place lies there as well as anywhere
    const apart = (k, j) => k === last || j === last || Math.abs(at[k] - at[j]) > REACH * wide[j];
    const starved = poor.map((flag, k) => flag && sum(held.filter((_, j) => !poor[j] && apart(k, j))) >= HELD);
    if (!starved.includes(true)) return one;
    const given = Math.min(1, MOST / sum(share.filter((_, k) => starved[k])));  // what the network holds is not left out either
    share = share.map((v) => given * v);
    const kept = 1 - sum(share.filter((_, k) => starved[k])), mass = one.mass.map((v) => kept * v);
    let below = kept * one.below, above = kept * one.above;
    starved.forEach((flag, k) => {
      if (!flag) return;
      const total = k === at.length ? cumulativeAbove(known, one.edges, cells.at)
        : Array.from(one.edges, (edge) => studentCumulative(dofOf(known), (edge - at[k]) / wide[k]));
      mass.forEach((_, i) => { mass[i] += share[k] * (total[i + 1] - total[i]); });
      below += share[k] * total[0];
      above += share[k] * (1 - total[total.length - 1]);
    });
    if (one.floor) { mass[0] += below; below = 0; }
    return { ...one, mass, below, above };
  }

  // What the levels on either side of each minimum, and those before the top, are off by, left out; the larger of two.
  function missedAt(known, at) {
    const { levels } = known, n = levels.length, missed = new Float64Array(n);
    Array.from(known.left_out).forEach((level, i) => { missed[level] = known.left_out_distance[i]; });
    missed[0] = missed[n - 1] = 0;
    return [...at, levels[n - 1]].map((c) => {
      const first = levels.findIndex((v) => v >= c), after = Math.min(Math.max(first < 0 ? n : first, 1), n - 1);
      return Math.max(missed[after], missed[after - 1]);
    });
  }

  // What the spectrum gives each of the distinct minima and concentrations above the standards.
  function sharesOf(known, cells, distinct, at, wide) {
    const { levels } = known, n = levels.length, rank = known.keep.length, across = acrossOf(known, cells.at, at).map((v) => v / cells.noise);
    const nearest = smallest(across), turned = at[across.indexOf(nearest)] < levels[n - 2];
    const { far, left } = beyondOf(known, cells.at), beyond = turned && far > 0 && far <= spanOf(known) ? left / cells.noise : Infinity;
    const every = Array.from(known.left_out_distance), inside = every.filter((_, i) => known.left_out[i] > 0 && known.left_out[i] < n - 1);
    const most = median(inside.length ? inside : every), poor = missedAt(known, at).map((v) => Math.max(1, Math.max(v, most) / rank));
    const more = [...across.map((v, k) => Math.max((v - nearest) / poor[k], cells.minima.excess[distinct[k]])),
      Math.max(beyond - nearest, 0) / poor[at.length]];
    const whole = sum(wide), prior = [...wide.map((v) => 0.5 * (v / whole + 1 / wide.length)), 0.5 / wide.length];
    const likely = more.map((v, k) => Math.pow(1 + v / known.dof, -0.5 * (known.dof + 1)) * prior[k]), total = sum(likely);
    return likely.map((v) => v / total);
  }

  // Square distance of a [r] from the curve around each of the places.
  function acrossOf(known, a, where) {
    const { mean, places } = known, r = a.length, count = places.length - 1, distance = [];
    for (let k = 0; k < count; k++) {
      let length = 0, along = 0, left = 0;
      for (let s = 0; s < r; s++) {
        const step = mean[(k + 1) * r + s] - mean[k * r + s];
        length += step * step;
        along += (a[s] - mean[k * r + s]) * step;
      }
      const t = Math.min(Math.max(along / Math.max(length, 2.2250738585072014e-308), 0), 1);
      for (let s = 0; s < r; s++) left += (a[s] - mean[k * r + s] - t * (mean[(k + 1) * r + s] - mean[k * r + s])) ** 2;
      distance.push(left);
    }
    return where.map((c) => {
      let k = 0;
      while (k < count - 1 && places[k + 1] <= c) k++;
      return Math.min(...distance.slice(Math.max(k - BESIDE, 0), k + BESIDE + 1));
    });
  }

  // How far beyond the highest standard the curve carried straight on comes nearest to a [r], and the square distance.
  function beyondOf(known, a) {
    const { levels, mean, places } = known, r = a.length, top = levels[levels.length - 1], before = 0.5 * (levels[levels.length - 2] + top);
    const point = (c) => Array.from(a, (_, s) => interpolate(c, places, Array.from(places, (_, k) => mean[k * r + s])));
    const end = point(top), start = point(before), step = end.map((v, s) => v - start[s]), gap = end.map((v, s) => a[s] - v);
    const square = sum(step.map((v) => v * v)), along = square > 0 ? sum(gap.map((v, s) => v * step[s])) / square : 0;
    const left = sum(gap.map((v, s) => (v - along * step[s]) ** 2)) / (0.5 * (1 + (1 + along) ** 2 + along ** 2));
    return { far: along * (top - before), left };
  }

  // Probability below each edge of a concentration above the standards, where the curve carried on comes to a [r].
  function cumulativeAbove(known, edges, a) {
    const { far } = beyondOf(known, a), top = known.levels[known.levels.length - 1];
    const at = (edge) => studentCumulative(dofOf(known), (edge - top - far) / far), least = at(top);
    return Array.from(edges, (edge) => (1 - FAR) * Math.max(at(edge) - least, 0) / (1 - least));
  }

  return { withTwins };
})();
