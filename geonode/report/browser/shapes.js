// What the shape of a spectrum says where the sets do not: no blank's, beyond the highest standard, or none of the
// standards'; and whether replicates are of one sample. geonode_runtime/shapes.py and replicates.py.
"use strict";
const GeonodeShapes = (function () {
  const { Refusal, general, figure } = GeonodeNumbers;
  const BEYOND = 0.1, FARTHEST_INSIDE = 0.03, PLAINLY_BEYOND = 0.1, ALIEN = 0.5, NOISY = 4, PLAIN = 10, APART = 0.2, EXCESS = 9;
  const PLAINLY_THERE = 50, ON_THE_WAY = 0.2, NO_BLANK = "it is no blank's, but how little of the analyte gives it the standards cannot tell";
  const { intoTheRange } = GeonodeVerdicts;

  const dot = (a, b) => a.reduce((sum, v, j) => sum + v * b[j], 0);
  const less = (a, b) => a.map((v, j) => v - b[j]);

  // Level means [n][w] and a spectrum [w] in standard deviations of noise, usable wavelengths alone.
  function white(model, spectrum, usable) {
    const width = model.shapeSpectra.shape[1], kept = usable.flatMap((flag, j) => (flag ? [j] : []));
    const scaled = (values, start) => Float64Array.from(kept, (j) => values[start + j] / model.scale[j]);
    const levels = Array.from({ length: model.shapeSpectra.shape[0] }, (_, i) => scaled(model.shapeSpectra, i * width));
    return { levels, x: scaled(spectrum, 0) };
  }

  // How far from the lowest standard towards the next one, in standard deviations of the noise.
  function aboveBlank(model, spectrum, usable) {
    const { levels, x } = white(model, spectrum, usable), step = less(levels[1], levels[0]), square = dot(step, step);
    const along = square > 0 ? dot(less(x, levels[0]), step) / square : 0;
    return along >= ON_THE_WAY ? along * Math.sqrt(square) : 0;
  }

  // Ambiguous in place of *below detection limit* where the spectrum is no blank's.
  function seen(model, spectrum, usable, said) {
    if (said[0] !== "below detection limit" || model.rules.lowest !== 0) return said;
    const times = aboveBlank(model, spectrum, usable);
    if (times <= PLAINLY_THERE) return said;
    return ["ambiguous", `the 95 % set includes zero, yet the spectrum lies ${general(times, 2)} times the noise from the blank's, ` +
      `towards the lowest standard: ${NO_BLANK}`];
  }

  // How far beyond the highest standard, in lengths of the longest chord; 0 where no chord explains it.
  function beyondTop(model, spectrum, usable) {
    const { levels, x } = white(model, spectrum, usable), top = levels[levels.length - 1];
    const step = less(x, top), chords = levels.slice(0, -1).map((one) => less(top, one)), width = NOISY * x.length;
    const longest = Math.max(...chords.map((chord) => dot(chord, chord)));
    let best = [1, 0];
    for (const chord of chords) {
      const square = dot(chord, chord), along = square > 0 ? dot(step, chord) / square : 0;
      const reach = longest > 0 ? along * Math.sqrt(square / longest) : 0;
      if (reach < FARTHEST_INSIDE || square < 2 * width || chords.some((other) => dot(other, chord) < 0)) continue;
      const noise = width * (1 + (1 + along) ** 2 + along ** 2);
      const rest = step.map((v, j) => v - along * chord[j]), left = Math.max(dot(rest, rest) - noise, 0);
      const found = [Math.sqrt(left / dot(step, step)), reach];
      if (found[0] < best[0] || (found[0] === best[0] && found[1] < best[1])) best = found;
    }
    return best[0] <= BEYOND ? best[1] : 0;
  }

  // By how much the square of a misfit grows that is noise, that of the standards carried on.
  function carriedNoise(model, spectrum, usable) {
    const along = beyondTop(model, spectrum, usable);
    return 0.5 * (1 + (1 + along) ** 2 + along ** 2);
  }

  // The share (of its length) that no point of the line through the standards explains.
  function alien(model, spectrum, usable) {
    const { levels, x } = white(model, spectrum, usable), noise = NOISY * x.length, size = dot(x, x), n = levels.length;
    if (size <= noise) return Math.min(...levels.map((one) => dot(one, one))) <= 2 * noise ? 0 : 1;
    const pieces = [[x.map(() => 0), levels[0], 0, 1], [levels[n - 2], levels[n - 1], 1, Infinity]];
    for (let i = 0; i + 1 < n; i++) pieces.push([levels[i], levels[i + 1], 0, 1]);
    const left = Math.min(...pieces.map(([start, end, first, last]) => {
      const step = less(end, start), away = less(x, start), square = dot(step, step);
      const t = square > 0 ? Math.min(Math.max(dot(away, step) / square, first), last) : 0;
      const rest = away.map((v, j) => v - t * step[j]);
      return dot(rest, rest);
    })) - noise;
    return Math.sqrt(Math.max(left, 0) / size);
  }

  // Whether the spectrum with its sign changed lies between the standards, and as it is far from all of them.
  function negated(model, spectrum, usable) {
    const { levels, x } = white(model, spectrum, usable), noise = NOISY * x.length, size = dot(x, x);
    if (size <= PLAIN * noise) return false;
    const nearest = (one) => Math.min(...levels.map((end, i) => {
      const start = i === 0 ? x.map(() => 0) : levels[i - 1], step = less(end, start), away = less(one, start), square = dot(step, step);
      const t = square > 0 ? Math.min(Math.max(dot(away, step) / square, 0), 1) : 0, rest = away.map((v, j) => v - t * step[j]);
      return dot(rest, rest);
    })) - noise;
    return nearest(x.map((v) => -v)) <= BEYOND ** 2 * size && nearest(x) > ALIEN ** 2 * size;
  }

  // Verdict, reason and sets when the shape is looked at too.
  function judged(model, spectrum, usable, first, sets) {
    const { rules } = model;
    if (!rules.isCurve) return { said: first, sets };
    if (negated(model, spectrum, usable)) {
      return { said: ["does not match", "does not match: with its sign changed the spectrum would be one of these standards' " +
        "assay, and as it is it is far from all"], sets };
    }
    const said = seen(model, spectrum, usable, first), [verdict, reason] = said;
    if (rules.usable && !rules.declines && ["does not match", "ambiguous", "outside calibrated range"].includes(verdict)) {
      if (saidAbove(verdict, rules, sets[1])) {
        return { said: [verdict, reason + intoTheRange(rules)], sets };
      }
      if (beyondTop(model, spectrum, usable) >= (verdict === "does not match" ? FARTHEST_INSIDE : PLAINLY_BEYOND)) {
        const note = "the spectrum is that of the standards carried on beyond the highest, " +
          general(rules.highest) + intoTheRange(rules);
        return { said: ["outside calibrated range", note], sets: sets.map((one) => above(one, rules.highest)) };
      }
    }
    if (model.shapeDecides && ["quantified", "ambiguous", "outside calibrated range"].includes(verdict)) {
      const share = alien(model, spectrum, usable);
      if (share > ALIEN) {
        return { said: ["does not match", `does not match: ${(100 * share).toFixed(0)} % of the spectrum (of its length) is ` +
          "nothing that the standards show; their limits are too wide to tell, so its shape decides"], sets };
      }
    }
    return { said, sets };
  }

  // What `carriedNoise` is where it is said to lie above the range and is all but a tenth the standards' own, carried on.
  function carriedOn(model, spectrum, usable, verdict, at95) {
    const above = model.rules.isCurve && saidAbove(verdict, model.rules, at95);
    return above && alien(model, spectrum, usable) <= BEYOND ? carriedNoise(model, spectrum, usable) : null;
  }

  // Whether the verdict is that all of the set of 95 % lies above the highest standard.
  function saidAbove(verdict, rules, at95) {
    return verdict === "outside calibrated range" && at95.components.every((c) => c.low >= rules.highest);
  }

  function above(one, highest) {
    const high = Math.max(highest, ...one.components.map((c) => c.high));
    return { ...one, components: [{ ...one.components[0], low: highest, high, openLow: false, openHigh: true,
      estimate: highest, probability: 1, mean: highest }] };
  }

  // Refuses replicates that are plainly different samples; `found`: the 95 % set of each alone.
  function requireOneSample(model, excess, alone, name) {
    if (excess < EXCESS) return;
    const { lowest: low, highest: high } = model.rules, amounts = low >= 0 && low <= high - low;
    const gap = (one, other) => Math.min(...one.components.flatMap((a) => other.components.map((b) => {
      const size = amounts ? Math.max(a.estimate, b.estimate) : high - low;
      return Math.min(Math.max(b.low - a.high, a.low - b.high), Math.abs(a.estimate - b.estimate) - APART * size);
    })));
    const found = alone();
    let worst = [-Infinity, 0, 0];
    for (let i = 0; i < found.length; i++) {
      for (let j = i + 1; j < found.length; j++) {
        const own = gap(found[i], found[j]);
        if (own > worst[0]) worst = [own, i, j];
      }
    }
    if (worst[0] <= 0) return;
    const unit = model.unit ? ` ${model.unit}` : "", at = (k) => figure(found[k].components[0].estimate, GeonodeVerdicts.sizeOf(found[k].components[0])) + unit;
    throw new Refusal(`${name}: the ${found.length} spectra given as replicates of one sample are of different ones: ` +
      `number ${worst[1] + 1} is found at ${at(worst[1])} and number ${worst[2] + 1} at ${at(worst[2])}, further apart than replicates of the ` +
      "standards scatter; untick that they are replicates for an answer to each.");
  }

  return { judged, carriedOn, above, requireOneSample, NO_BLANK };
})();
