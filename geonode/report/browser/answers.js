// From the spectra of an unknown to its answer, as `geonode quantify` gives it: geonode_runtime/answers.py.
"use strict";
const GeonodeAnswers = (function () {
  const { Refusal, unpack, general, chi2UpperQuantile, cholesky, inverseForm } = GeonodeNumbers;
  const { prepared, asNew } = GeonodeUnknown;
  const { requireUsable, project, compare, atLevels, closeAsOne } = GeonodeSets;
  const { judged, requireOneSample } = GeonodeShapes;
  const { byPls } = GeonodePls, { answered } = GeonodePosterior;
  const { declined, verdict, scaled, sentence, LEVEL, FEWEST_CHECKED } = GeonodeVerdicts;
  const EXCESS_TAIL = 0.05, DILUTIONS = [1e-9, 1e9];

  // The model of the page from the JSON in it: every packed array unpacked, limits that do not exist made infinite.
  function open(data) {
    const model = { ...data };
    const array = (one, among) => ("as" in one ? among[one.as] ?? model[one.as] : unpack(one));
    for (const name in data.arrays) model[name] = array(data.arrays[name], model);
    model.steps = data.steps.map((step) => (step.bands
      ? { ...step, bands: unpack(step.bands), starts: unpack(step.starts), offset: unpack(step.offset) } : step));
    model.posterior = GeonodePosterior.open(data.posterior, array);
    model.causes = GeonodeExplanation.open(data.causes, array);
    const limit = (value) => (value === null ? Infinity : value);
    model.rules = { ...data.rules, qLimit: limit(data.rules.qLimit), t2Limit: limit(data.rules.t2Limit) };
    return model;
  }

  function checkOptions({ level, dilution, dilutionStd }) {
    if (!(level > 0 && level < 1)) throw new Refusal(`the level of the set must lie between 0 and 1, but ${level} was given.`);
    if (!(dilution >= DILUTIONS[0] && dilution <= DILUTIONS[1])) {
      throw new Refusal(`the dilution factor must be a number between ${general(DILUTIONS[0])} and ` +
        `${general(DILUTIONS[1])}, but ${general(dilution)} was given.`);
    }
    if (!(dilutionStd >= 0 && dilutionStd < dilution)) {
      throw new Refusal("the uncertainty of the dilution factor must lie between 0 and the factor itself, but " +
        `${dilutionStd} was given.`);
    }
  }

  // How much more replicates scatter than the standards' noise explains; 1 unless chi^2 finds it so.
  function replicateExcess(model, unknown) {
    const count = unknown.spectra.length, r = model.rank;
    if (count < 2) return 1;
    const found = unknown.spectra.map((one) => project(model, one, unknown.usable));
    const phi = Math.max(found.reduce((sum, one) => sum + one.residual, 0) / count, 1);
    const noise = model.scatter.map((v, i) => v + (i % (r + 1) === 0 ? phi : 0));
    const factor = cholesky(noise, r), dof = (count - 1) * r;
    const mean = found[0].coordinates.map((_, k) => found.reduce((sum, one) => sum + one.coordinates[k], 0) / count);
    const square = found.reduce((sum, one) => sum + inverseForm(factor, r, one.coordinates.map((v, k) => v - mean[k])), 0);
    return square > chi2UpperQuantile(dof, EXCESS_TAIL) ? square / dof : 1;
  }

  // What the profile says, where the posterior cannot answer.
  function profile(model, mean, usable, replicates, level) {
    const distances = compare(model, mean, usable, replicates), { sets: apart, t2 } = atLevels(model, distances, [level, LEVEL]);
    const sets = apart.map((one) => closeAsOne(one, model.rules.highest - model.rules.lowest));
    const bySets = declined(model.rules, verdict(model.rules, ...sets, distances.q, t2));
    const found = bySets[0] === "no curve" ? byPls(model, mean, usable, [level, LEVEL])
      : judged(model, mean, usable, bySets, sets);
    return { ...found, strange: null, q: distances.q, t2, nearest: sets[0].components.map((c) => c.estimate), dof: model.dof };
  }

  // That a piece of the set holds a turn of the response, where there is an answer within the range.
  function aroundATurn(turns, said, found) {
    if (!["quantified", "ambiguous", "below detection limit"].includes(said)) return [];
    return turns.filter((turn) => found.components.some((c) => c.low < turn && turn < c.high)).map((turn) =>
      `the response turns back near ${general(turn, 3)}, within the reported range: the spectrum hardly changes there, which ` +
      "makes that range wide; dilute or spike the sample by a known amount, to where the spectrum changes, and measure it again");
  }

  // The answer for one unknown: its replicates [{values, masked}] on `wavelengths`, as measured.
  function quantify(model, wavelengths, replicates, name, options = {}) {
    const { level = 0.8, dilution = 1, dilutionStd = 0 } = options;
    checkOptions({ level, dilution, dilutionStd });
    let unknown = prepared(model, wavelengths, replicates, name);
    if (!unknown.usable.every(Boolean)) requireUsable(model, unknown.usable);
    const alone = () => unknown.spectra.map((one) => atLevels(model, compare(model, one, unknown.usable, 1), [LEVEL]).sets[0]);
    if (model.pls === null) requireOneSample(model, replicateExcess(model, unknown), alone, name);
    const { measured } = unknown;
    unknown = asNew(model, unknown);
    const count = unknown.spectra.length, notes = [...model.unfit, ...unknown.notes], excess = replicateExcess(model, unknown);
    if (excess > 1) {
      notes.push(`the replicates scatter ${excess.toFixed(1)} times as much (variance) as the standards' noise explains: ` +
        "the set was widened accordingly");
    }
    const mean = unknown.spectra[0].map((_, j) => unknown.spectra.reduce((sum, one) => sum + one[j], 0) / count);
    const answering = model.posterior === null ? profile : answered;
    const { said: [said, ...reasons], sets: [found, at95], strange, q, t2, nearest, dof } =
      answering(model, mean, unknown.usable, count / excess, level);
    notes.push(...GeonodeVerdicts.inTheCuvette(dilution), ...reasons.filter(Boolean),
      ...aroundATurn(model.turns, said, found));
    if (said !== "does not match") notes.push(...model.cautions);
    if (model.untold) notes.push(model.untold);
    const attainable = model.levels / (model.levels + 1);
    if (model.levels < FEWEST_CHECKED) {
      notes.push(`fewer than ${FEWEST_CHECKED} standards leave nothing to check the curve between them with: no interval ` +
        "can be claimed");
    } else if (level > attainable) {
      notes.push(`${model.levels} standards alone vouch for at most ${(100 * attainable).toFixed(1)} % (n/(n + 1)); the ` +
        `${general(100 * level)} % set rests on ${model.posterior === null ? "the model's Student distribution"
          : "the posterior learned on simulated unknowns"}`);
    }
    const undone = (c, at) => scaled(c, dilution, dilutionStd / dilution, at, dof);
    const answer = { name, verdict: said, dilution, level, q, t2, notes, replicates: count,
      masked: unknown.usable.filter((flag) => !flag).length,
      components: found.components.map((c) => undone(c, level)),
      components95: at95.components.map((c) => undone(c, LEVEL)),
      nearest, beside: found.components.map(GeonodeVerdicts.sizeOf), mean, usable: unknown.usable };
    if (said === "no curve") answer.pls = model.pls;
    const { why, explanation } = GeonodeExplanation.reasons(model.causes, { ...answer, strange }, measured);
    answer.why = why;
    if (explanation) [answer.nearest, answer.beside] = [[explanation.concentration], [explanation.finest]];
    answer.estimate = answer.components[0].estimate;
    answer.sentence = sentence(answer, model.levels, model.unit);
    return answer;
  }

  // The predicted spectrum [W] at a concentration of the searched range (before any dilution).
  function predicted(model, concentration) {
    const { grid, weights, centre, residual } = model, n = residual.shape[0], width = residual.shape[1];
    let k = 0;
    while (k < grid.length - 2 && grid[k + 1] < concentration) k++;
    const t = (concentration - grid[k]) / (grid[k + 1] - grid[k]);
    const share = Array.from({ length: n }, (_, i) => (1 - t) * weights[k * n + i] + t * weights[(k + 1) * n + i]);
    return Float64Array.from({ length: width }, (_, j) => share.reduce((sum, s, i) => sum + s * residual[i * width + j], centre[j]));
  }

  return { open, quantify, predicted };
})();
