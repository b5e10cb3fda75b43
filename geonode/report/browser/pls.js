// The answer of PLS, for standards that lie on no curve of concentration: geonode_runtime/pls.py.
"use strict";
const GeonodePls = (function () {
  const { studentQuantile, cholesky, solve } = GeonodeNumbers, { plsNotes } = GeonodeVerdicts;

  // Deviation of a spectrum from the mean of the standards; masked values are filled in from the standards' span.
  function deviation(model, spectrum, usable) {
    const { plsCentre, scale, basis, rank: r } = model, x = Array.from(spectrum, (v, j) => v - plsCentre[j]);
    if (usable.every(Boolean)) return x;
    const normal = new Array(r * r).fill(0), right = new Array(r).fill(0);
    for (let j = 0; j < x.length; j++) {
      if (!usable[j]) continue;
      for (let a = 0; a < r; a++) {
        right[a] += basis[j * r + a] * x[j] / scale[j];
        for (let b = 0; b < r; b++) normal[a * r + b] += basis[j * r + a] * basis[j * r + b];
      }
    }
    const at = solve(cholesky(normal, r), r, right);
    return x.map((v, j) => (usable[j] ? v : scale[j] * at.reduce((sum, one, a) => sum + one * basis[j * r + a], 0)));
  }

  // The value and its interval at a level, as the only piece of a set.
  function plsComponent(model, spectrum, usable, level) {
    const { offset, rmsecv } = model.pls, x = deviation(model, spectrum, usable);
    const value = x.reduce((sum, v, j) => sum + v * model.plsVector[j], 0) + offset;
    const half = studentQuantile(Math.max(model.levels - 1, 1), 0.5 + 0.5 * level) * rmsecv;
    return { low: value - half, high: value + half, openLow: false, openHigh: false, estimate: value, distance: 0,
      probability: 1, mean: value, std: rmsecv };
  }

  // The answer of PLS at several levels, the last of them 95 %.
  function byPls(model, mean, usable, levels) {
    const sets = levels.map((level) => ({ level, components: [plsComponent(model, mean, usable, level)] }));
    return { said: ["no curve", ...plsNotes(model.rules, sets[0].components[0], sets[1].components[0])], sets };
  }

  return { byPls };
})();
