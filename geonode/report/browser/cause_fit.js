// The fit of one cause: concentration and settings by trial on grids that close in, coefficients by least squares.
// geonode_runtime/causes/fitting.py.
"use strict";
const GeonodeCauseFit = (function () {
  const { linspace } = GeonodeCauses;
  const ROUNDS = 4, LATER = 9, SETTINGS = 7, SAME = 1e-9;

  function dot(a, b) {
    let sum = 0;
    for (let j = 0; j < a.length; j++) sum += a[j] * b[j];
    return sum;
  }
  // Loops rather than map: a page's answer is made once, before an engine has learned what can be left out of a call.
  function times(a, b) {
    const made = new Float64Array(a.length);
    for (let j = 0; j < made.length; j++) made[j] = a[j] * b[j];
    return made;
  }

  // problem: spectrum, x, scale [W], curve(c) -> [W], concentrations ascending, ignored causes.
  function fit(problem, cause) {
    const axes = cause.axes(problem.x);
    let c = problem.concentrations, values = axes.map((axis) => axis.values), best = null;
    for (let number = 0; number < ROUNDS; number++) {
      const { found, i, at } = trial(problem, cause, c, values);
      if (best === null || found.rss <= best.rss) best = found;
      if (number === ROUNDS - 1) break;
      c = closer(c, i, LATER);
      values = values.map((v, n) => (axes[n].between ? closer(v, at[n], SETTINGS) : [v[at[n]]]));
    }
    return best;
  }

  // A grid between the neighbours of the k-th value that holds that value too.
  function closer(values, k, points) {
    const low = values[Math.max(k - 1, 0)], high = values[Math.min(k + 1, values.length - 1)];
    if (low === high) return [values[k]];
    const grid = linspace(low, high, points), there = grid.some((v) => Math.abs(v - values[k]) <= SAME * (high - low));
    return there ? grid : [...grid, values[k]].sort((a, b) => a - b);
  }

  const product = (axes) => axes.reduce((all, values) => all.flatMap((one) => values.map((v) => [...one, v])), [[]]);

  // The best on one grid, and its place there.
  function trial(problem, cause, c, axes) {
    const weight = problem.scale.map((v) => 1 / v), rows = c.map(problem.curve);
    const white = (other, row, setting) => other.columns(row, problem.x, setting).map((v) => times(v, weight));
    const nuisance = rows.map((row) => problem.ignored.flatMap((other) => white(other, row, [])));
    const settings = product(axes), own = cause.bases !== GeonodeCauses.NOTHING.bases;
    const { spectrum } = problem, whiteLeft = (base) => {
      const made = new Float64Array(base.length);
      for (let j = 0; j < made.length; j++) made[j] = (spectrum[j] - base[j]) * weight[j];
      return made;
    };
    const alike = own ? null : rows.map(whiteLeft);  // where the setting changes columns alone
    let best = { rss: Infinity, i: 0, t: 0 };
    settings.forEach((setting, t) => {
      const lefts = own ? cause.bases(rows, problem.x, setting).map(whiteLeft) : alike;
      let basis = null;
      rows.forEach((row, i) => {
        if (basis === null || own || problem.ignored.length) basis = orthonormal([...nuisance[i], ...white(cause, row, setting)]);
        const rss = left(lefts[i], basis, nuisance[i].length, cause.positive);
        if (rss < best.rss) best = { rss, i, t };
      });
    });
    let rest = best.t;
    const at = axes.map(() => 0);
    for (let n = axes.length - 1; n >= 0; n--) { at[n] = rest % axes[n].length; rest = Math.floor(rest / axes[n].length); }
    return { found: solved(problem, cause, c[best.i], settings[best.t]), i: best.i, at };
  }

  // Sum of squares that a basis leaves of a spectrum; of one coefficient that must be positive and is not, without it.
  function left(spectrum, basis, before, positive) {
    let rss = dot(spectrum, spectrum);
    // the basis is orthonormal: what the earlier columns take away changes nothing in the last one's share
    basis.forEach((v, k) => {
      const share = dot(spectrum, v);
      if (positive && k === before && share <= 0) return;
      rss -= share * share;
    });
    return rss;
  }

  // Gram and Schmidt; a column that the earlier ones hold already becomes zero.
  function orthonormal(columns) {
    const made = [];
    for (let column of columns) {
      const size = Math.sqrt(dot(column, column));
      column = Float64Array.from(column);
      for (const v of made) {
        const share = dot(column, v);
        for (let j = 0; j < column.length; j++) column[j] -= share * v[j];
      }
      const norm = Math.sqrt(Math.max(dot(column, column), 0)), inverse = norm > 1e-9 * size ? 1 / Math.max(norm, 1e-300) : 0;
      for (let j = 0; j < column.length; j++) column[j] *= inverse;
      made.push(column);
    }
    return made;
  }

  // The fit at one concentration and one choice of settings, with its coefficients.
  function solved(problem, cause, c, settings) {
    const row = problem.curve(c), [base] = cause.bases([row], problem.x, settings), { scale } = problem;
    const others = problem.ignored.flatMap((other) => other.columns(row, problem.x, []));
    const own = cause.columns(row, problem.x, settings), target = problem.spectrum.map((v, j) => v - base[j]);
    let found = leastSquares([...others, ...own], target, scale), coefficients = found.solution.slice(others.length);
    if (cause.positive && coefficients.some((v) => v <= 0)) {
      coefficients = own.map(() => 0);
      found = leastSquares(others, target, scale);
    }
    const rss = found.left.reduce((sum, v, j) => sum + (v / scale[j]) ** 2, 0);
    return { concentration: c, settings, coefficients, rss, left: found.left };
  }

  function leastSquares(columns, target, scale) {
    const white = columns.map((column) => column.map((v, j) => v / scale[j])), basis = orthonormal(white);
    const rest = target.map((v, j) => v / scale[j]), solution = columns.map(() => 0);
    for (let k = columns.length - 1; k >= 0; k--) {
      const pivot = dot(basis[k], white[k]);
      if (!(pivot > 0)) continue;
      let later = 0;
      for (let m = k + 1; m < columns.length; m++) later += solution[m] * dot(basis[k], white[m]);
      solution[k] = (dot(basis[k], rest) - later) / pivot;
    }
    let left = target;
    columns.forEach((column, k) => { left = left.map((v, j) => v - solution[k] * column[j]); });
    return { solution, left };
  }

  return { fit, plain: (problem) => fit(problem, GeonodeCauses.NOTHING) };
})();
