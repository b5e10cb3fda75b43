// The posterior of one unknown on its cells, and the sets of highest density: geonode_runtime/posterior/density.py.
"use strict";
const GeonodeDensity = (function () {
  const { interpolate } = GeonodeNumbers;
  const SMOOTHING = 3e-4, SMALLEST_PIECE = 0.02, BEYOND = 0.2;

  const sum = (values) => { let total = 0; for (const v of values) total += v; return total; };

  // From cells and what the network makes of them; below, cells and above add up to 1.
  function posteriorOf(known, cells, logs, span) {
    const count = cells.edges.length - 1, every = logs.slice(0, count + 2).map(Math.exp), total = sum(every);
    const share = every.map((v) => v / total);
    const one = { edges: cells.edges, mass: share.slice(0, count), below: share[count], above: share[count + 1],
      none: Math.exp(logs[count + 2]), span, floor: known.low === 0 && known.levels[0] >= 0 };
    return widened(one, known.power);
  }

  // The density raised to a power <= 1: wider, the same order of concentrations.
  function widened(one, power) {
    if (power === 1) return one;
    const { edges, mass, below, above, span } = one, count = mass.length;
    const width = [...mass.map((_, i) => edges[i + 1] - edges[i]), BEYOND * span, BEYOND * span];
    const raised = [...mass, below, above].map((v, i) => width[i] * Math.pow(Math.max(v, 1e-300) / width[i], power));
    const total = sum(raised), share = raised.map((v) => v / total);
    return { ...one, mass: share.slice(0, count), below: share[count], above: share[count + 1] };
  }

  function cumulative(one) {
    const found = [one.below];
    let total = 0;
    for (const v of one.mass) { total += v; found.push(one.below + total); }
    return found;
  }

  const belowOf = (one, c) => interpolate(c, one.edges, cumulative(one));

  function density(one) {
    const { edges, span } = one, total = cumulative(one), at = (c) => interpolate(c, edges, total), end = edges.length - 1;
    return one.mass.map((_, i) => {
      const middle = 0.5 * (edges[i + 1] + edges[i]), half = Math.max(edges[i + 1] - edges[i], SMOOTHING * span);
      const low = Math.max(middle - half, edges[0]), high = Math.min(middle + half, edges[end]);
      return (at(high) - at(low)) / (high - low);
    });
  }

  // The set of highest density at a level, as pieces by descending probability.
  function highest(one, level) {
    const padded = [one.below, ...one.mass, one.above], beyond = BEYOND * one.span;
    const dense = [one.below / beyond, ...density(one), one.above / beyond], allowed = padded.map(() => true);
    for (;;) {
      const { inside, partial, share } = chosen(padded, dense, allowed, level);
      close(one, inside);
      const pieces = runs(inside);
      const weight = pieces.map(([a, b]) => sum(padded.slice(a, b + 1))), whole = sum(weight);
      // Zero, an end in no width: in the set only where the set could not do without it.
      const spare = (k) => k === 0 && one.floor && pieces.length > 1 && pieces[0][0] <= 1 && weight[0] < 1 - level;
      const small = pieces.filter((_, k) => weight[k] < SMALLEST_PIECE * whole || spare(k));
      if (!small.length) {
        const found = pieces.map(([a, b]) => component(one, a, b, partial, share, inside));
        found.sort((x, y) => y.probability - x.probability);
        return { level, components: found };
      }
      for (const [a, b] of small) for (let i = a; i <= b; i++) allowed[i] = false;
    }
  }

  // Which of below, cells, above are in the set; the one that is in it in part, and its share.
  function chosen(padded, dense, allowed, level) {
    const key = dense.map((v, i) => (allowed[i] ? v : -1));
    const order = key.map((_, i) => i).sort((i, j) => key[j] - key[i] || i - j);
    const total = [];
    let most = 0, running = 0;
    for (const i of order) {
      running += padded[i];
      total.push(running);
      if (allowed[i]) most = running;
    }
    const goal = Math.min(level, most);
    let k = 0;
    while (k < total.length - 1 && total[k] < goal) k++;
    const inside = padded.map(() => false);
    for (let i = 0; i <= k; i++) inside[order[i]] = allowed[order[i]];
    const mass = padded[order[k]], share = mass > 0 ? (level - (k ? total[k - 1] : 0)) / mass : 1;
    return { inside, partial: order[k], share: Math.min(Math.max(share, 0), 1) };
  }

  // What parts two pieces belongs to the set where it is narrower than what densities are averaged over.
  function close(one, inside) {
    const pieces = runs(inside);
    for (let k = 1; k < pieces.length; k++) {
      const left = pieces[k - 1][1], right = pieces[k][0];
      if (one.edges[right - 1] - one.edges[left] <= 2 * SMOOTHING * one.span) inside.fill(true, left, right);
    }
  }

  function runs(inside) {
    const found = [];
    inside.forEach((flag, i) => {
      if (flag && !inside[i - 1]) found.push([i, i]);
      if (flag) found[found.length - 1][1] = i;
    });
    return found;
  }

  // The piece from `first` to `last` (0: below, K + 1: above); of `partial` `share` belongs to it.
  function component(one, first, last, partial, share, inside) {
    const { edges, mass, floor } = one, size = mass.length;
    let a = Math.max(first, 1) - 1, b = Math.min(last, size) - 1;
    if (first > size) a = b = size - 1;
    if (last < 1) a = b = 0;
    let low = edges[a], high = edges[b + 1];
    if (first <= partial && partial <= last && first < last && partial >= 1 && partial <= size) {
      const width = edges[partial] - edges[partial - 1];
      if (partial === first) low = edges[partial] - share * width;
      else if (partial === last) high = edges[partial - 1] + share * width;
    }
    if (first > size) low = high;
    if (last < 1) high = low;
    const [from, to] = basin(first, last, inside), total = [0, ...cumulative(one), 1];
    const start = total[from], stop = total[to + 1];
    const estimate = interpolate(start + 0.5 * (stop - start), total.slice(1, -1), edges);
    let weight = 0, mean = 0;
    const cells = [];
    for (let i = Math.max(from, 1) - 1; i < Math.min(to, size); i++) cells.push(i);
    const middle = (i) => 0.5 * (edges[i + 1] + edges[i]);
    for (const i of cells) { weight += mass[i]; mean += mass[i] * middle(i); }
    mean = cells.length && weight > 0 ? mean / Math.max(weight, 1e-300) : estimate;
    const spread = sum(cells.map((i) => mass[i] * (middle(i) - mean) ** 2));
    return { low, high, openLow: first === 0 && !floor, openHigh: last === size + 1,
      estimate: Math.min(Math.max(estimate, low), high), distance: 0, probability: stop - start, mean,
      std: cells.length ? Math.sqrt(spread / Math.max(weight, 1e-300)) : 0 };
  }

  // The piece with what lies nearer to it than to the next one.
  function basin(first, last, inside) {
    const before = inside.lastIndexOf(true, first - 1), after = inside.indexOf(true, last + 1);
    const start = first < 1 || before < 0 ? 0 : Math.floor((before + first) / 2) + 1;
    const stop = after < 0 ? inside.length - 1 : Math.floor((last + after) / 2);
    return [Math.min(start, first), Math.max(stop, last)];
  }

  return { posteriorOf, belowOf, highest, SMOOTHING };
})();
