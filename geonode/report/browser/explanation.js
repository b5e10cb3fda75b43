// A misfit explained: where along the spectrum, how large, and the simple cause that fits it best; and when an answer
// says so. geonode_runtime/causes/explanation.py and explainer.py.
"use strict";
const GeonodeExplanation = (function () {
  const { general, figure } = GeonodeNumbers, { KINDS, linspace } = GeonodeCauses, { fit, plain } = GeonodeCauseFit;
  const LEAST_EXPLAINED = 0.7, EVIDENCE = 10, AS_WELL = 0.999, AS_LITTLE = 0.05, MOST_WAVELENGTHS = 800, FIRST = 33;
  const HOLDS = [["tilt", "offset"], ["scale", "other path length"]];
  const NEARLY_ALL = 0.9, FEWEST_VALUES = 4, LARGER = 1.3, FEWEST_WAVELENGTHS = 8;
  const { ODD, STRANGE } = GeonodePosterior, { NO_BLANK } = GeonodeShapes, { DILUTE } = GeonodeVerdicts;

  // From the JSON of the page; `array` unpacks one, or finds it among others.
  function open(data, array) {
    const found = {};
    for (const name in data.arrays) found[name] = array(data.arrays[name], found);
    return { ...found, ...data.facts };
  }

  function explain(problem, told) {
    const alone = plain(problem), { concentrations, highest } = problem;
    let found = bestOf(problem, alone), inside = found.fit.concentration < concentrations[concentrations.length - 1];
    if (!inside && highest !== null && alone.concentration <= highest) {
      const again = bestOf({ ...problem, concentrations: concentrations.filter((c) => c <= highest) }, alone);
      if (again.explained >= NEARLY_ALL) [found, inside] = [again, true];
    }
    const { best, explained, scores, without } = found, cause = KINDS[best];
    const named = explained >= LEAST_EXPLAINED && without >= EVIDENCE && (inside || cause.otherQuantity);
    const concentration = named ? found.fit.concentration : alone.concentration, row = problem.curve(concentration);
    const stretches = stretchesOf(named ? problem.spectrum.map((v, j) => v - row[j]) : alone.left, problem);
    const noise = Math.sqrt(problem.scale.reduce((sum, v) => sum + v * v, 0) / problem.scale.length);
    const words = named ? cause.words({ ...found.fit, x: problem.x, ...told }) : "";
    const twins = named ? twinsOf(problem, cause, found.fit, alone) : [];
    return { cause: named ? best : null, beyond: !inside, best, scores, explained, concentration, words, remedy: cause.remedy, twins, noise,
      finest: concentrations.find((c) => c > 0) || 0, ...stretches };
  }

  // Every cause fitted, and the one that fits best; `alone`: the curve as it is, over all concentrations.
  function bestOf(problem, alone) {
    const fits = {}, size = problem.spectrum.reduce((sum, v, j) => sum + (v / problem.scale[j]) ** 2, 0);
    for (const name in KINDS) {
      if (problem.ignored.includes(KINDS[name])) continue;
      const found = fit(problem, KINDS[name]);
      const empty = found.concentration <= problem.concentrations[0] || found.rss > (1 - LEAST_EXPLAINED) * size;
      const little = found.rss > (1 - KINDS[name].least) * alone.rss;
      fits[name] = (KINDS[name].multiplies && empty) || little ? alone : found;
    }
    const { scores, without } = scored(fits, alone), best = simplest(Object.keys(scores)[0], fits, alone);
    return { best, fit: fits[best], explained: alone.rss > 0 ? 1 - fits[best].rss / alone.rss : 0, scores, without };
  }

  // The criterion of each cause less the least, best first; and that of no cause at all less the least.
  function scored(fits, alone) {
    const closest = Object.values(fits).reduce((least, one) => (one.rss < least.rss ? one : least)), n = closest.left.length;
    const middle = closest.left.reduce((a, b) => a + b, 0) / n, left = closest.left.map((v) => v - middle);
    let square = 0, neighbours = 0;
    left.forEach((v, j) => { square += v * v; if (j) neighbours += v * left[j - 1]; });
    const rho = Math.min(Math.max(square > 0 ? neighbours / square : 0, 0), 0.95);
    const effective = Math.max(n * (1 - rho) / (1 + rho), Math.min(FEWEST_VALUES, n)), tiny = 1e-12 * alone.rss + 1e-300;
    const criterion = (found, parameters) => effective * Math.log((found.rss + tiny) / n) + parameters * Math.log(effective);
    const values = Object.keys(fits).map((name) => [name, criterion(fits[name], KINDS[name].parameters)]).sort((a, b) => a[1] - b[1]);
    const least = values[0][1];
    return { scores: Object.fromEntries(values.map(([name, v]) => [name, v - least])), without: criterion(alone, 0) - least };
  }

  // The cause of this name, or the special case of it that explains as much.
  function simplest(name, fits, alone) {
    for (const [general_, special] of HOLDS) {
      const taken = alone.rss - fits[name].rss;
      if (name === general_ && special in fits && alone.rss - fits[special].rss >= AS_WELL * taken) return special;
    }
    return name;
  }

  // Concentrations apart from that of `found` at which the cause leaves hardly more.
  function twinsOf(problem, cause, found, alone) {
    const c = problem.concentrations, left = c.map((one) => fit({ ...problem, concentrations: [one] }, cause).rss), twins = [];
    for (let k = 0; k < c.length; k++) {
      if (left[k] > Math.min(k ? left[k - 1] : Infinity, k < c.length - 1 ? left[k + 1] : Infinity)) continue;
      const around = c.slice(Math.max(k - 1, 0), k + 2);
      if (around[0] <= found.concentration && found.concentration <= around[around.length - 1]) continue;
      const other = fit({ ...problem, concentrations: around }, cause);
      if (other.rss <= found.rss + AS_LITTLE * alone.rss && other.concentration < c[c.length - 1]) twins.push(other.concentration);
    }
    return twins;
  }

  // Where the smoothed difference has one sign and is more than the noise of its mean explains.
  function stretchesOf(left, problem) {
    const n = left.length, half = Math.min(n, Math.max(3, Math.floor(n / 40)) | 1) >> 1, count = [], smooth = [];
    for (let j = 0; j < n; j++) {
      const from = Math.max(j - half, 0), to = Math.min(j + half, n - 1);
      let sum = 0;
      for (let k = from; k <= to; k++) sum += left[k];
      count.push(to - from + 1);
      smooth.push(sum / (to - from + 1));
    }
    const most = smooth.reduce((a, b) => Math.max(a, Math.abs(b)), 0), total = left.reduce((sum, v) => sum + v * v, 0) || 1;
    const sign = smooth.map((v, j) => (Math.abs(v) > Math.max(3 * problem.scale[j] / Math.sqrt(count[j]), 0.1 * most) ? Math.sign(v) : 0));
    const found = [];
    for (let start = 0, j = 1; j <= n; j++) {
      if (j < n && sign[j] === sign[start]) continue;
      if (sign[start] !== 0) {
        let peak = start, share = 0;
        for (let k = start; k < j; k++) {
          if (Math.abs(smooth[k]) > Math.abs(smooth[peak])) peak = k;
          share += left[k] * left[k];
        }
        found.push({ low: problem.x[start], high: problem.x[j - 1], peak: problem.x[peak], size: smooth[peak], share: share / total });
      }
      start = j;
    }
    found.sort((a, b) => b.share - a.share);
    const everywhere = found.length > 0 && sign.filter((s) => s === Math.sign(found[0].size)).length >= 0.9 * n;
    return { stretches: found.slice(0, 4), everywhere };
  }

  function where(found, { at, signal }) {
    const side = (one) => (one.size > 0 ? "above" : "below"), [first, second] = found.stretches;
    if (!first) return "nowhere along the spectrum is it off by more than the noise";
    const fromTo = (one) => (found.everywhere && one === first ? "at nearly every wavelength" : `from ${figure(one.low)} to ${at(one.high)}`);
    const said = `the spectrum lies ${side(first)} the curve ${fromTo(first)}, by up to ${general(Math.abs(first.size), 3)} in ` +
      `${signal} at ${at(first.peak)} (${general(Math.abs(first.size) / found.noise, 2)} times the noise)`;
    return second ? `${said}, and ${side(second)} it ${fromTo(second)}, by up to ${general(Math.abs(second.size), 3)}` : said;
  }

  function why(found, unitName) {
    if (found.cause === null) {
      return `no simple cause explains it (tried: ${Object.keys(found.scores).join(", ")}); the best of them, ${found.best}, takes ` +
        `${(100 * found.explained).toFixed(0)} % of the misfit away`;
    }
    const unit = unitName ? ` ${unitName}` : "", share = found.explained >= 0.9995 ? "all" : `${general(100 * found.explained, 3)} %`;
    const corrected = [found.concentration, ...found.twins].sort((a, b) => a - b).map((c) => figure(c, found.finest, 3) + unit).join(" or ");
    const holds = (name) => HOLDS.some(([whole, part]) => whole === name && part === found.cause);
    const rivals = Object.keys(found.scores).filter((name) => name !== found.cause && found.scores[name] < EVIDENCE && !holds(name));
    const also = rivals.length ? ` (${rivals.join(" and ")} would fit nearly as well)` : "";
    const place = found.beyond ? "" : `, and without it the spectrum would be that of ${corrected}`;
    return `it looks like ${found.words}${also}; that explains ${share} of the misfit${place}: ${found.remedy}`;
  }

  // Why `unknown`, as measured {spectra, usable}, lies off the curve; null where there are too few wavelengths.
  function explained(known, unknown) {
    let kept = unknown.usable.flatMap((flag, j) => (flag ? [j] : []));
    if (kept.length < FEWEST_WAVELENGTHS) return null;
    const step = Math.ceil(kept.length / MOST_WAVELENGTHS);
    kept = kept.filter((_, k) => k % step === 0);
    const at = (values, from = 0) => Float64Array.from(kept, (j) => values[from + j]), count = unknown.spectra.length;
    const width = known.wavelengths.length, n = known.residual.shape[0], centre = at(known.centre);
    const residual = Array.from({ length: n }, (_, i) => at(known.residual, i * width)), { grid, weights } = known;
    const spread = linspace(0, 1, FIRST).map((share) => GeonodeNumbers.interpolate(share * (grid.length - 1), grid.map((_, k) => k), grid));
    const problem = { x: at(known.wavelengths), scale: at(known.scale).map((v) => v / Math.sqrt(count)),
      spectrum: at(unknown.spectra[0].map((_, j) => unknown.spectra.reduce((sum, one) => sum + one[j], 0) / count)),
      concentrations: spread.filter((v, k) => k === 0 || v !== spread[k - 1]), ignored: known.ignored.map((name) => KINDS[name]),
      highest: known.highest,
      curve(c) {
        let k = 0;
        while (k < grid.length - 2 && grid[k + 1] < c) k++;
        const t = (c - grid[k]) / (grid[k + 1] - grid[k]), made = Float64Array.from(centre);
        for (let i = 0; i < n; i++) {
          const share = (1 - t) * weights[k * n + i] + t * weights[(k + 1) * n + i];
          for (let j = 0; j < made.length; j++) made[j] += share * residual[i][j];
        }
        return made;
      } };
    const told = { unit: known.wavelength_unit, signal: known.signal, at: (v) => figure(v) + known.wavelength_unit };
    const found = explain(problem, told);
    return { ...found, sentences: [where(found, told), why(found, known.unit)] };
  }

  // Size of a spectrum as measured over that of the largest standard's.
  function larger(known, unknown) {
    const norm = (values, from = 0) => Math.sqrt(unknown.usable.reduce((sum, flag, j) => sum + (flag ? values[from + j] ** 2 : 0), 0));
    const width = known.wavelengths.length, levels = Array.from({ length: known.levels.shape[0] }, (_, i) => norm(known.levels, i * width));
    const mean = unknown.spectra[0].map((_, j) => unknown.spectra.reduce((sum, one) => sum + one[j], 0) / unknown.spectra.length);
    const largest = GeonodeNumbers.largest(levels);
    return largest > 0 ? norm(mean) / largest : 1;
  }

  // That the answer does not hold what the cause leads to, where it does not: sets know of no cause.
  function elsewhere(found, { verdict, components95, dilution }) {
    if (found.cause === null || found.beyond || verdict === "does not match") return [];
    const real = found.concentration * dilution;
    const held = components95.some((c) => (c.openLow || c.low <= real) && (c.openHigh || real <= c.high));
    return held ? [] : ["the answer knows nothing of that cause, and its 95 % set does not hold the concentration without " +
      "it: put the cause right and measure again before the answer is used"];
  }

  // What the standards are at fault for: that no cause is known, or that zero is not ruled out.
  function blamed(known, { verdict, notes }, found) {
    if (!known.fault) return [];
    if (verdict === "does not match") {
      return [found ? `take this with caution, for the standards are not without fault: ${known.fault}`
        : `no cause is looked for, for the standards are at fault themselves: ${known.fault}`];
    }
    return notes.some((note) => note.endsWith(NO_BLANK))
      ? [`the measurement tells it from a blank, and these standards do not: ${known.fault}`] : [];
  }

  // What is said under an answer {verdict, notes, q, strange, components95, dilution}: strange null where the profile answered.
  function reasons(known, answer, unknown) {
    const refused = answer.verdict === "does not match";
    const strange = answer.strange === null ? answer.q > known.textbook : answer.strange > STRANGE || answer.q > ODD;
    let found = null;
    const asked = refused || (strange && !known.fault);
    if (!known.silent && asked) found = explained(known, unknown);
    if (!(refused && !known.fault) && found && (found.cause === null || found.explained < NEARLY_ALL)) found = null;
    if (answer.verdict === "outside calibrated range" && found && !KINDS[found.cause].otherQuantity) found = null;
    const said = found ? [...found.sentences, ...elsewhere(found, answer)] : [], times = refused && known.usable ? larger(known, unknown) : 1;
    said.push(...blamed(known, answer, found));
    const another = found && found.cause !== null && KINDS[found.cause].otherQuantity;  // its size is none of theirs
    if (times >= LARGER && !another && !answer.notes.some((note) => note.endsWith(DILUTE))) {  // else it is advised already
      said.unshift(`the spectrum is ${general(times, 2)} times as large as that of any standard: the sample may be too ` +
        "concentrated, or the detector at its limit; dilute it and measure again");
    }
    return { why: said, explanation: found };
  }

  return { open, reasons };
})();
