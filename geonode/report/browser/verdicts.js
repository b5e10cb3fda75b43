// The verdict on a set of concentrations, and how it is said: geonode_runtime/verdicts.py.
"use strict";
const GeonodeVerdicts = (function () {
  const { general, figure, studentQuantile } = GeonodeNumbers;
  const DILUTE = "dilute it into the range and measure again";
  const NO_MATCH = "no concentration is given, for the spectrum is too unlike what these standards predict at any";
  const MAY_BE_ABOVE = `it may lie above the standards' range: if so, ${DILUTE}`;
  const DILUTED_APART = "dilute it by a known factor and measure again: only the true one fits both";
  const UNDETERMINED = 0.8, LEVEL = 0.95, FEWEST_CHECKED = 4;

  // rules: lowest, highest, hasBlank, qLimit, t2Limit (null: none), isCurve, usable. Gives the verdict and its reason, or "".
  function verdict(rules, found, at95, q, t2) {
    if (!rules.isCurve && q <= rules.qLimit) return ["no curve", ""];
    const reasons = [];
    if (q > rules.qLimit) reasons.push(`the residual outside the standards' span is ${general(q, 3)} (limit ${general(rules.qLimit, 3)})`);
    if (rules.isCurve && t2 > rules.t2Limit) reasons.push(`the distance from the curve is ${general(t2, 3)} (limit ${general(rules.t2Limit, 3)})`);
    if (reasons.length) return ["does not match", "does not match: " + reasons.join(" and ")];
    const range = `the standards' range ${general(rules.lowest)} to ${general(rules.highest)}`;
    if (!at95.components.some((c) => c.low <= rules.highest && c.high >= rules.lowest)) {
      return ["outside calibrated range", `the 95 % set lies outside ${range}`];
    }
    const why = doubt(rules, found, at95);
    if (why) return ["ambiguous", why];
    const only = at95.components[0];
    if (rules.hasBlank && only.low <= 0 && only.high >= 0) {
      return ["below detection limit", "the 95 % set includes zero: it cannot be told from a blank"];
    }
    return within(rules, found);
  }

  // On a reported set of one piece where that of 95 % reaches into the range: what is reported must reach into it too.
  function within(rules, found) {
    const one = found.components[0], percent = `${general(100 * found.level)} %`;
    const range = `the standards' range ${general(rules.lowest)} to ${general(rules.highest)}`;
    const beyond = (side) => `the ${percent} set lies ${side} ${range}, though that of 95 % reaches into it`;
    if (one.high < rules.lowest) return ["outside calibrated range", beyond("below")];
    if (one.low > rules.highest) return ["outside calibrated range", beyond("above") + intoTheRange(rules)];
    const inside = rules.lowest <= one.estimate && one.estimate <= rules.highest;
    return ["quantified", inside ? "" : `the estimate lies outside ${range}, but the ${percent} set reaches into it`];
  }

  function doubt(rules, found, at95) {
    const count = found.components.length, percent = `${general(100 * found.level)} %`;
    if (count > 1) return `${count} separate ranges of concentration explain the spectrum (the ${percent} set)${remedy(rules, found)}`;
    if (at95.components.length > 1) {
      return `the ${percent} set is one range, but the 95 % set, on which the verdict rests, has ${at95.components.length} ` +
        `separate ones${remedy(rules, at95)}`;
    }
    return doubtOf(rules, found, true) || doubtOf(rules, at95, false);
  }

  // Why the most probable range of a set determines no concentration; the reported one's width counts besides.
  function doubtOf(rules, one, reported) {
    const best = one.components[0], own = `${general(100 * one.level)} %`;
    if (reported && best.high - best.low > UNDETERMINED * (rules.highest - rules.lowest)) {
      return `the ${own} set is about as wide as the calibrated range: the spectrum does not determine it${remedy(rules, one)}`;
    }
    if (best.openHigh || best.openLow) {
      return `the data set no ${best.openHigh ? "upper" : "lower"} limit within the range that was searched (the ${own} set)` +
        remedy(rules, one);
    }
    return "";
  }

  function intoTheRange(rules) {
    return rules.usable ? `; ${DILUTE}` : "";
  }

  // Ambiguous in place of each verdict that names a concentration, or where there is none, with standards that quantify
  // nothing.
  function declined(rules, said) {
    if (!rules.declines || ["does not match", "ambiguous", "no curve"].includes(said[0])) return said;
    return ["ambiguous", `${rules.declines}: nothing is quantified with them, whatever the spectrum`];
  }

  // What tells the concentrations of a set apart, a clause behind the reason.
  function remedy(rules, one) {
    if (!rules.usable) return "";
    const middle = 0.5 * (rules.lowest + rules.highest);
    if (one.components.some((c) => c.openHigh && (c.low > rules.lowest || c.estimate > middle))) return `; ${MAY_BE_ABOVE}`;
    return one.components.length > 1 ? `; ${DILUTED_APART}` : "";
  }

  // What stands beside the value of PLS.
  function plsNotes(rules, at, at95) {
    const notes = ["use PLS: it finds the standards that are left out much better than a curve of concentration does, so the " +
      "value and its interval are those of PLS; more may vary in these samples than the concentration"];
    if (!(rules.lowest <= at.estimate && at.estimate <= rules.highest)) {
      notes.push(`the value of PLS lies outside the standards' range ${general(rules.lowest)} to ${general(rules.highest)}: ` +
        `an extrapolation${at.estimate > rules.highest ? intoTheRange(rules) : ""}`);
    }
    if (rules.hasBlank && at95.low <= 0 && at95.high >= 0) {
      notes.push("the 95 % interval of PLS includes zero: it cannot be told from a blank");
    }
    return notes;
  }

  // Of what the number and of what the notes beside it speak, where the sample was diluted.
  function inTheCuvette(dilution) {
    if (dilution === 1) return [];
    const said = `the result is ${general(dilution)} times what was in the cuvette, of which the notes and the standards' range speak`;
    return [dilution > 1 ? `${said}: where they advise to dilute, dilute further` : said];
  }

  // A dilution undone: multiplied by the factor and widened by its relative standard uncertainty.
  function scaled(c, factor, relative, level, dof) {
    if (factor === 1 && relative === 0) return c;
    const extra = Math.abs(c.estimate) * relative * studentQuantile(dof, 0.5 + 0.5 * level);
    let low = c.estimate - Math.hypot(c.estimate - c.low, extra);
    const high = c.estimate + Math.hypot(c.high - c.estimate, extra);
    if (c.low >= 0) low = Math.max(low, 0);
    return { ...c, low: low * factor, high: high * factor, estimate: c.estimate * factor, mean: c.mean * factor,
      std: factor * Math.hypot(c.std, c.mean * relative) };
  }

  // What an interval at this level rests on: the standards, only the model, or nothing (null).
  function restsOn(levels, level) {
    if (levels < FEWEST_CHECKED) return null;
    return level <= levels / (levels + 1) + 1e-12 ? "standards" : "model";
  }

  // The largest number that stands beside a piece's estimate: itself, or an end that is there.
  function sizeOf(c) { return Math.max(Math.abs(c.estimate), c.openLow ? 0 : Math.abs(c.low), c.openHigh ? 0 : Math.abs(c.high)); }

  function span(c, unit) {
    const low = figure(c.low, sizeOf(c)), high = figure(c.high, sizeOf(c));
    if (c.openLow && c.openHigh) return "without limits";
    if (c.openHigh) return `from ${low}${unit} up, no upper limit`;
    if (c.openLow) return `up to ${high}${unit}, no lower limit`;
    return `${low} to ${high}${unit}`;
  }

  // The answer in one line.
  function sentence(answer, levels, unitName) {
    const unit = unitName ? ` ${unitName}` : "", said = answer.verdict;
    if (said === "does not match") return `does not match: ${NO_MATCH}`;
    const top = answer.components[0], near = figure(answer.estimate, sizeOf(top)) + unit;
    if (said === "no curve") {
      return `no curve: use PLS, whose value is ${near}, ${general(100 * answer.level)} % interval ` +
        `${span(top, unit)} (cross-validated error ${figure(top.std, 0, 3)}${unit}, ${answer.pls.components} components)`;
    }
    if (said === "outside calibrated range" && top.openHigh && !top.openLow && top.low === answer.estimate) {
      const times = answer.dilution === 1 ? "" : `${general(answer.dilution)} times `;
      return `outside calibrated range: above ${figure(answer.estimate)}${unit}, ${times}the highest standard`;
    }
    const by = restsOn(levels, answer.level), parts = answer.components;
    if (by === null) {
      const places = said === "ambiguous" ? parts.map((c) => figure(c.estimate, sizeOf(c)) + unit).join(" or ") : near;
      return `${said}: ${places}, no interval can be claimed from ${levels} standards`;
    }
    const percent = `${general(100 * answer.level)} %`, most = `${(100 * levels / (levels + 1)).toFixed(1)} %`;
    const own = `no ${percent} interval that ${levels} standards alone vouch for (at most ${most}); the model's own`;
    if (said === "ambiguous") {
      const each = parts.map((c) => span(c, unit) + (parts.length > 1 ? ` (probability ${c.probability.toFixed(2)})` : ""));
      return `ambiguous, ${by === "standards" ? `${percent} set` : own}: ${each.join(" or ")}`;
    }
    return `${said}: ${near}, ${by === "standards" ? `${percent} interval` : own} ` +
      span(parts[0], unit);
  }

  return { verdict, declined, intoTheRange, within, doubt, plsNotes, inTheCuvette, scaled, restsOn, sentence, sizeOf, DILUTE, LEVEL, FEWEST_CHECKED };
})();
