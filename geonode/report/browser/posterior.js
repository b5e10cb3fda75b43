// The answer of the learned posterior for one unknown: geonode_runtime/posterior/answers.py and rules.py.
"use strict";
const GeonodePosterior = (function () {
  const { close, together } = GeonodeSets, { general, unpack } = GeonodeNumbers, { cellsOf, spanOf } = GeonodeCells;
  const { posteriorOf, belowOf, highest, SMOOTHING } = GeonodeDensity, { judged, carriedOn, above } = GeonodeShapes;
  const { declined, doubt, within, DILUTE, LEVEL } = GeonodeVerdicts, { byPls } = GeonodePls, { ended } = GeonodeEnds, { withTwins } = GeonodeTwins;
  const REFUSED = 0.25, INSIDE = 0.05, FAR = 4, ODD = 2, STRANGE = 0.15, TOO_CONCENTRATED = 0.9;

  // Standards and weights from the JSON of the page, null where the posterior does not answer there.
  // `array` unpacks one, or finds it among others.
  function open(data, array) {
    if (data === null) return null;
    const unpacked = (arrays) => {
      const found = {};
      for (const name in arrays) found[name] = array(arrays[name], found);
      return found;
    };
    return { known: { ...unpacked(data.arrays), ...data.numbers }, weights: unpacked(data.weights) };
  }

  // What stands where the posterior is believed: verdict and reasons, sets at the level and at 95 %, misfit.
  function answered(model, mean, usable, replicates, level) {
    const { known, weights } = model.posterior, cells = cellsOf(known, mean, usable, replicates);
    const { logs, strange } = GeonodeNetwork.evaluate(weights, cells);
    const one = withTwins(known, posteriorOf(known, cells, logs, spanOf(known)), cells), own = [level, LEVEL].map((at) => joined(model.rules, known.levels, highest(one, at)));
    const stray = cells.stray[0], first = verdict(model, one, stray, own, mean, usable);
    const { said, sets } = judged(model, mean, usable, first.said, first.sets);
    const grown = carriedOn(model, mean, usable, said[0], sets[1]);
    const odd = grown === null ? stray > ODD || strange > STRANGE : stray > ODD * grown;
    if (said[0] !== "does not match" && odd) {
      // before the reasons, all of which it questions; of several curves PLS's own notes say what the number is
      said.splice(said[0] === "no curve" ? said.length : 1, 0,
        `the spectrum holds something that the standards do not (probability ${strange.toFixed(2)} that it does, misfit ` +
        `${general(stray, 3)} times, square, that of the worst standard left out): the cause that is named, or where none is ` +
        "an interferent or another matrix, may have moved the result");
    }
    return { said, sets, strange, q: cells.stray[0], t2: cells.stray[1], nearest: own[0].components.map((c) => c.estimate), dof: known.dof };
  }

  // Pieces that only a gap beyond the calibrated range parts are one, and those from zero on that only a gap below the
  // first standard above a blank parts.
  function joined(rules, levels, set) {
    const pieces = set.components.slice().sort((a, b) => a.low - b.low), found = [pieces[0]], blank = levels[0] === 0 && zeroWithin(rules, pieces[0]);
    for (const piece of pieces.slice(1)) {
      const last = found[found.length - 1];
      const fromZero = blank && found.length === 1 && piece.low < levels[1];
      const near = close(last, piece, rules.highest - rules.lowest);
      if (last.high < rules.highest && piece.low > rules.lowest && !fromZero && !near) found.push(piece);
      else found[found.length - 1] = together(last, piece);
    }
    return { ...set, components: found.sort((a, b) => b.probability - a.probability) };
  }

  function zeroWithin(rules, piece) {
    return rules.hasBlank && piece.low <= 1e-6 * (rules.highest - rules.lowest);
  }

  function verdict(model, one, stray, sets, mean, usable) {
    const { rules } = model;
    if (one.none > REFUSED || stray > FAR) {
      const why = one.none > REFUSED
        ? `the probability that no concentration of this assay gives this spectrum is ${one.none.toFixed(2)}, and above ` +
          `${general(REFUSED)} none is given`
        : `its misfit is ${general(stray, 3)} times (square) that of the worst standard left out`;
      return { said: ["does not match", why, ...tooConcentrated(rules, one)], sets };
    }
    if (model.pls !== null) return byPls(model, mean, usable, sets.map((at) => at.level));
    const closed = ended(model.posterior.known, one, mean, usable, sets), said = declined(rules, bySets(rules, one, ...closed.sets));
    if (said[0] === "quantified") said.push(closed.note);
    // a sliver of the last cell is none of the search
    const end = one.edges[one.edges.length - 1] - SMOOTHING * one.span;
    const beyond = said[0] === "outside calibrated range" && closed.sets[0].components.every((c) => c.estimate >= end);
    const whole = (at, k) => (k === 0 || at.components.every((c) => c.low >= rules.highest) ? above(at, rules.highest) : at);
    return { said, sets: beyond ? closed.sets.map(whole) : closed.sets };
  }

  // Of a spectrum that does not match: that it may be a sample far above the range.
  function tooConcentrated(rules, one) {
    const over = 1 - belowOf(one, rules.highest);
    return over <= TOO_CONCENTRATED || !rules.usable ? [] : [`were it a sample of this assay, it would lie above the standards' range with probability ` +
      `${over.toFixed(2)}; if no cause is named that explains the spectrum, ${DILUTE}`];
  }

  function bySets(rules, one, found, at95) {
    const under = belowOf(one, rules.lowest), over = 1 - belowOf(one, rules.highest);
    const limits = `the standards' range ${general(rules.lowest)} to ${general(rules.highest)}`;
    if (1 - under - over < INSIDE) {
      const side = over > under ? "above" : "below";
      return ["outside calibrated range", `with probability ${Math.max(over, under).toFixed(3)} the concentration lies ` +
        `${side} ${limits}, if the spectrum is of this assay`];
    }
    const why = doubt(rules, found, at95);
    if (why) return ["ambiguous", why];
    if (zeroWithin(rules, at95.components[0])) {
      return ["below detection limit", "the 95 % set includes zero: it cannot be told from a blank"];
    }
    return within(rules, found);
  }

  return { open, answered, ODD, STRANGE };
})();
