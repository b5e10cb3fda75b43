// An unknown made fit for the calibration: checked, brought to its wavelengths, saturated values masked, preprocessed as
// the standards were. What geonode_runtime/unknowns.py, preprocessing.py and standard_spectra.py do, in their order.
"use strict";
const GeonodeUnknown = (function () {
  const { Refusal, general, figure, median, largest, smallest } = GeonodeNumbers;
  const PLATEAU = 3, ABOVE_STANDARDS = 1.1, UNIT_FACTOR = 20, COARSE = 2, COARSEST = 10, SAME = 1e-3;

  const row = (matrix, i) => matrix.subarray(i * matrix.shape[1], (i + 1) * matrix.shape[1]);
  const rows = (matrix) => Array.from({ length: matrix.shape[0] }, (_, i) => row(matrix, i));
  const sizes = (values) => Float64Array.from(values, Math.abs);
  const isMasked = (bad, j) => bad[j] === true;

  // model: see `open`. replicates: [{values, masked}] on `wavelengths`, as measured.
  function prepared(model, wavelengths, replicates, name) {
    let grid = Array.from(wavelengths), target = model.measured;
    const values = replicates.map((one) => Float64Array.from(one.values));
    const bad = replicates.map((one) => one.masked.slice());
    checkGrid(grid, values, name);
    checkFinite(values, bad, grid, name);
    if (bad.every((flags) => flags.every(Boolean))) {
      throw new Refusal(`every wavelength of ${name} is masked, so nothing is left to compare.`);
    }
    checkSpectrum(model, values, bad, name);
    values.forEach((one, i) => bad[i].forEach((flag, j) => { if (flag) one[j] = 0; }));
    checkSpikes(model, values, bad, grid, name);
    const notes = [], moved = interpolated(values, bad, grid, target, notes, name);
    maskSaturated(model, moved.values, moved.bad, notes);
    const usable = Array.from(target, (_, j) => !moved.bad.some((flags) => flags[j]));
    if (!usable.some(Boolean)) {
      throw new Refusal(`every wavelength of ${name} is masked or saturated; measure it again, diluted.`);
    }
    checkUnits(model, moved.values, usable, name);
    moved.values.forEach((one, i) => moved.bad[i].forEach((flag, j) => { if (flag) one[j] = 0; }));
    const measured = { spectra: moved.values, usable };
    return { ...preprocessed(model, { ...measured, notes }, name), measured };
  }

  function checkGrid(grid, values, name) {
    const sorted = Float64Array.from(grid).sort();
    const distinct = sorted.every((v, j) => Number.isFinite(v) && (j === 0 || v > sorted[j - 1]));
    if (!distinct || values.some((one) => one.length !== grid.length)) {
      throw new Refusal(`the wavelengths of ${name} must be ${values[0].length} distinct finite numbers.`);
    }
  }

  function checkFinite(values, bad, grid, name) {
    const wrong = [];
    values.forEach((one, i) => one.forEach((v, j) => { if (!Number.isFinite(v) && !isMasked(bad[i], j)) wrong.push([i, j]); }));
    if (!wrong.length) return;
    const [i, j] = wrong[0], which = values.length > 1 ? `replicate ${i + 1} of ${name}` : name;
    throw new Refusal(`${which} is ${general(values[i][j])} at wavelength ${general(grid[j])} (${wrong.length} such ` +
      "values); repair it, or mask those wavelengths.");
  }

  function checkSpectrum(model, values, bad, name) {
    const tops = rows(model.standards).map((one) => largest(sizes(one)));
    const zeroIsOrdinary = smallest(tops) * UNIT_FACTOR <= largest(tops);
    values.forEach((one, i) => {
      const rest = one.filter((_, j) => !bad[i][j]);
      if (!rest.length) return;
      if (rest.every((v) => v === 0)) {
        if (zeroIsOrdinary) return;
        throw new Refusal(`${name} is zero at every wavelength: that is no spectrum; check the file and the instrument.`);
      }
      if (rest.length > 2 && largest(rest) === smallest(rest)) {
        throw new Refusal(`${name} is ${general(rest[0])} at every wavelength: a constant is no spectrum; check the file ` +
          "and the instrument (a blocked beam, a detector at its limit).");
      }
    });
  }

  // Refuses a spectrum of which one value stands alone: geonode_runtime/spikes.py.
  function checkSpikes(model, values, bad, grid, name) {
    const target = model.measured, last = target[target.length - 1];
    const order = grid.map((_, j) => j).filter((j) => grid[j] >= target[0] && grid[j] <= last).sort((a, b) => grid[a] - grid[b]);
    values.forEach((one, i) => {
      const left = order.filter((j) => !bad[i][j]), x = left.map((j) => grid[j]), own = left.map((j) => one[j]);
      const k = spikeIn(own, rows(model.standards).map((other) => linear(x, target, other)));
      if (k === null) return;
      const beside = [k - 1, k + 1].filter((j) => j >= 0 && j < own.length).map((j) => figure(own[j])).join(" and ");
      throw new Refusal(`${values.length > 1 ? `replicate ${i + 1} of ${name}` : name} is ${figure(own[k])} at wavelength ` +
        `${general(x[k], 10)} and ${beside} beside it, and no other spectrum has anything of the kind there: a spike, or a ` +
        "decimal mark that slipped; repair that cell, or leave that wavelength out.");
    });
  }

  function spikeIn(values, others) {
    if (values.length < 8) return null;
    const n = values.length, bend = (one, j) => Math.abs(one[j - 1] - 2 * one[j] + one[j + 1]);
    const off = (one, j) => (j > 0 && j < n - 1 ? 0.5 * bend(one, j)
      : Math.max(j ? bend(one, n - 2) - 2 * bend(one, n - 3) : bend(one, 1) - 2 * bend(one, 2), 0));
    const all = values.map((_, j) => off(values, j)), size = largest(all), k = all.indexOf(size);
    const rest = largest(all.filter((_, j) => Math.abs(j - k) > 1));
    const reach = Math.max(...others.map(largest)) - Math.min(...others.map(smallest));
    if (size < 0.1 * reach || size <= 10 * rest) return null;
    return others.some((one) => off(one, k) > 0.02 * size) ? null : k;
  }

  function interpolated(values, bad, grid, target, notes, name) {
    const spacing = target.length > 1 ? (target[target.length - 1] - target[0]) / (target.length - 1) : 1;
    const order = grid.map((_, j) => j).sort((a, b) => grid[a] - grid[b]);
    const x = Float64Array.from(order, (j) => grid[j]);
    const y = values.map((one) => Float64Array.from(order, (j) => one[j]));
    const off = bad.map((flags) => order.map((j) => flags[j]));
    if (x.length === target.length && x.every((v, j) => Math.abs(v - target[j]) <= 1e-6 * spacing)) {
      return { values: y, bad: off };
    }
    const steps = Array.from(target.slice(1), (v, j) => v - target[j]);
    const step = steps.length ? median(steps) : 1;
    requireCovered(x, target, step, name);
    const first = x[0], last = x[x.length - 1];
    const beyond = Array.from(target, (t) => t < first - 1e-6 * spacing || t > last + 1e-6 * spacing);
    const count = beyond.filter(Boolean).length;
    if (count) {
      const apart = Math.max(first - target[0], target[target.length - 1] - last);
      notes.push(`${count} of the standards' ${target.length} wavelengths lie up to ${general(apart, 3)} beyond its ends ` +
        `(${general(first)} to ${general(last)}) and were left out`);
    }
    const at = Array.from(target, (t) => Math.min(firstNotBelow(x, t - 0.5 * spacing * 1e-3), x.length - 1));
    if (at.every((j, k) => beyond[k] || Math.abs(x[j] - target[k]) <= 1e-6 * spacing)) {
      notes.push(`the ${target.length} wavelengths of the standards were taken from its own ${x.length}`);
      return { values: y.map((one) => Float64Array.from(at, (j) => one[j])),
        bad: off.map((flags) => at.map((j, k) => flags[j] || beyond[k])) };
    }
    const { gaps, theirs } = gapsAround(x, target, step, name), coarse = gaps.map((gap, k) => gap > COARSE * step && !theirs[k]);
    const beside = theirs.filter(Boolean).length;
    if (beside) {
      theirs.forEach((flag, k) => { beyond[k] = beyond[k] || flag; });
      notes.push(`the standards have a gap of ${figure(largest(gaps.filter((_, k) => theirs[k])))} between their wavelengths, as ` +
        `it has (masked in some of them, perhaps): ${beside} of their ${target.length} wavelengths beside it were left out`);
    }
    const blurred = off.map((flags) => linear(target, x, Float64Array.from(flags, Number)));
    const made = y.map((one) => linear(target, x, one));
    if (coarse.some(Boolean)) {
      const near = nearest(x, target, step);
      coarse.forEach((flag, k) => {
        if (!flag) return;
        made.forEach((one, i) => { one[k] = cubic(target[k], x, y[i]); });
        beyond[k] = beyond[k] || !near[k];
      });
      notes.push(`its wavelengths are up to ${figure(largest(gaps.filter((_, k) => coarse[k])))} apart and the standards' ${figure(step)}: ` +
        `compared at the ${beyond.filter((flag) => !flag).length} of their ${target.length} wavelengths that lie next to ` +
        `its own ${x.length}, since nothing between those was measured`);
    } else {
      notes.push(`interpolated linearly from its own ${x.length} wavelengths to the ${target.length} of the standards`);
    }
    return { values: made, bad: blurred.map((one) => Array.from(one, (v, k) => v > 0 || beyond[k])) };
  }

  function requireCovered(x, target, step, name) {
    const first = x[0], last = x[x.length - 1], low = target[0], high = target[target.length - 1], missing = [];
    if (first > low + step * (1 + 1e-9)) missing.push(`${general(low)} to ${general(Math.min(first, high))}`);
    if (last < high - step * (1 + 1e-9)) missing.push(`${general(Math.max(last, low))} to ${general(high)}`);
    if (missing.length) {
      const unit = otherUnitBetween(first, last, low, high), from = Math.max(first, low), to = Math.min(last, high);
      const again = to - from < 0.5 * (high - low) ? "" :
        `, or leave it out (fit again with the preprocessing range:${general(from)}-${general(to)})`;
      throw new Refusal(`${name} covers wavelengths ${general(first)} to ${general(last)} and misses ` +
        `${missing.join(" and ")} of the standards' range ${general(low)} to ${general(high)}; ` +
        (unit ? `${unit}: say the unit of each where it is not said.` : `measure that range too${again}.`));
    }
  }

  // As geonode_runtime.axes has them: own unit, the standards', what lies between the two.
  const INVERSE = (constant) => [(x) => constant / x, `${constant === 1e7 ? "10 000 000" : constant === 1e4 ? "10 000" :
    "1239.84"} divided by the number`];
  const BETWEEN = [["µm", "nm", (x) => 1e3 * x, "a factor of 1000"], ["nm", "µm", (x) => 1e-3 * x, "a factor of 1000"],
    ["Å", "nm", (x) => 0.1 * x, "a factor of 10"], ["nm", "Å", (x) => 10 * x, "a factor of 10"],
    ["cm⁻¹", "nm", ...INVERSE(1e7)], ["nm", "cm⁻¹", ...INVERSE(1e7)], ["cm⁻¹", "µm", ...INVERSE(1e4)],
    ["µm", "cm⁻¹", ...INVERSE(1e4)], ["eV", "nm", ...INVERSE(1239.841984)], ["nm", "eV", ...INVERSE(1239.841984)]];
  const USUAL = { nm: [100, 30000], "µm": [0.1, 30], "Å": [1000, 35000], "cm⁻¹": [50, 100000], eV: [0.3, 13] };

  // What to say of wavelengths that miss the standards' in the numbers, and cover them in another unit; else "".
  function otherUnitBetween(first, last, low, high) {
    const covered = (a, b) => Math.max(Math.min(Math.max(a, b), high) - Math.max(Math.min(a, b), low), 0) / (high - low);
    const usual = (a, b, unit) => a >= USUAL[unit][0] && b <= USUAL[unit][1];
    const asTheyAre = covered(first, last), least = asTheyAre ? 0.9 : 0.5;
    if (!(high > low) || asTheyAre >= 0.5) return "";
    let best = 0, said = "";
    for (const [mine, theirs, convert, between] of BETWEEN) {
      if (!usual(first, last, mine) || !usual(low, high, theirs)) continue;
      const a = convert(first), b = convert(last), share = covered(a, b);
      const alike = share * (high - low) / Math.abs(b - a);  // 1 where both have the same ends
      if (share >= least && alike > best) {
        best = alike;
        said = `${between} lies between the two, as if one were in ${mine} and the other in ${theirs}`;
      }
    }
    return said;
  }

  // Position of the first of ascending x that is not below t.
  function firstNotBelow(x, t) {
    let low = 0, high = x.length;
    while (low < high) { const middle = (low + high) >> 1; if (x[middle] < t) low = middle + 1; else high = middle; }
    return low;
  }

  // Straight lines through (x, y), constant beyond their ends.
  function linear(target, x, y) {
    return Float64Array.from(target, (t) => {
      if (t <= x[0]) return y[0];
      if (t >= x[x.length - 1]) return y[x.length - 1];
      let k = firstNotBelow(x, t);
      if (x[k] === t) return y[k];
      return (y[k] - y[k - 1]) / (x[k] - x[k - 1]) * (t - x[k - 1]) + y[k - 1];
    });
  }

  // How far apart the unknown's wavelengths on both sides of each of the standards' lie, and where the standards' do too.
  function gapsAround(x, target, step, name) {
    const gaps = Array.from(target, (t) => {
      if (x.length < 2) return Infinity;
      const k = Math.min(Math.max(firstNotBelow(x, t), 1), x.length - 1);
      return x[k] - x[k - 1];
    });
    const between = (k) => (k > 0 && k < target.length ? target[k] - target[k - 1] : 0);
    const own = Array.from(target, (_, k) => Math.max(between(k), between(k + 1)));
    const theirs = gaps.map((gap, k) => gap > COARSE * step && own[k] > COARSE * step && gap <= own[k] + COARSE * step);
    const counted = gaps.map((gap, k) => (theirs[k] ? 0 : gap)), gap = largest(counted), worst = counted.indexOf(gap);
    if (theirs[worst] || gap <= COARSEST * step) return { gaps, theirs };
    if (x.length > 1 && median(x.slice(1).map((v, j) => v - x[j])) <= COARSE * step) {
      const k = Math.min(Math.max(firstNotBelow(x, target[worst]), 1), x.length - 1), low = x[k - 1], high = x[k];
      throw new Refusal(`${name} has no wavelengths between ${general(low)} and ${general(high)}, where the standards have ` +
        `${target.filter((t) => t > low && t < high).length}: measure it there too, or fit the standards without that range.`);
    }
    throw new Refusal(`${name} has ${x.length} wavelengths, up to ${figure(gap)} apart, and the standards one ` +
      `every ${figure(step)}: too coarse to be compared; measure it with a finer step, or fit the standards on ` +
      "its wavelengths.");
  }

  // Where a wavelength of the standards is the nearest to one of the unknown's, at most half a step away.
  function nearest(x, target, step) {
    const found = new Array(target.length).fill(false);
    for (const own of x) {
      const after = Math.min(Math.max(firstNotBelow(target, own), 1), target.length - 1);
      const k = own - target[after - 1] <= target[after] - own ? after - 1 : after;
      if (Math.abs(target[k] - own) <= 0.5 * step * (1 + 1e-6)) found[k] = true;
    }
    return found;
  }

  // The polynomial through the (up to) four points of (x, y) around t, by Lagrange's formula.
  function cubic(t, x, y) {
    const count = Math.min(4, x.length);
    const first = Math.min(Math.max(firstNotBelow(x, t) - (count >> 1), 0), x.length - count);
    let sum = 0;
    for (let i = 0; i < count; i++) {
      let weight = 1;
      for (let j = 0; j < count; j++) {
        if (i !== j) weight *= (t - x[first + j]) / (x[first + i] - x[first + j]);
      }
      sum += weight * y[first + i];
    }
    return sum;
  }

  function maskSaturated(model, values, bad, notes) {
    const width = values[0].length, found = new Set();
    const ceiling = Float64Array.from({ length: width }, (_, j) => {
      let most = 0;
      for (const one of rows(model.standards)) most = Math.max(most, one[j]);
      return ABOVE_STANDARDS * most;
    });
    values.forEach((one, i) => {
      const top = largest(one), half = (PLATEAU - 1) / 2;
      const run = (j) => { for (let k = j - half; k <= j + half; k++) if (one[k] !== top) return false; return true; };
      if (!one.some((v, j) => v > ceiling[j] && run(j))) return;
      one.forEach((v, j) => { if (v === top) { bad[i][j] = true; found.add(j); } });
    });
    if (found.size) {
      const columns = [...found];
      notes.push(`${found.size} saturated wavelengths were masked (between ` +
        `${general(model.measured[smallest(columns)])} and ${general(model.measured[largest(columns)])})`);
    }
  }

  function checkUnits(model, values, usable, name) {
    const kept = (one) => sizes(one.filter((_, j) => usable[j]));
    const all = Float64Array.from(values.flatMap((one) => Array.from(kept(one))));
    const size = largest(all), middle = median(all);
    const tops = rows(model.standards).map((one) => largest(kept(one)));
    const middles = rows(model.standards).map((one) => median(kept(one)));
    const large = size > UNIT_FACTOR * largest(tops) && middle > UNIT_FACTOR * largest(middles);
    const small = size > 0 && size * UNIT_FACTOR < smallest(tops) && middle * UNIT_FACTOR < smallest(middles);
    if (small) {
      throw new Refusal(`${name} reaches ${figure(size)} where the standards reach ${figure(smallest(tops))} to ` +
        `${figure(largest(tops))}: it is in another unit (then convert it to the unit of the standards), or nothing was ` +
        "measured (an empty beam, water or a closed shutter).");
    }
    if (large) {
      throw new Refusal(`${name} reaches ${figure(size)} where the standards reach ${figure(smallest(tops))} to ` +
        `${figure(largest(tops))}: it must be in another unit (percent transmission, mAU, raw counts); convert it to ` +
        "the unit of the standards.");
    }
  }

  function preprocessed(model, unknown, name) {
    if (model.preprocessing === null) return unknown;
    let { spectra, usable } = unknown;
    for (const step of model.steps) {
      if (step.kind === "range") {
        spectra = spectra.map((one) => one.slice(step.first, step.last));
        usable = usable.slice(step.first, step.last);
        continue;
      }
      const masked = usable.filter((flag) => !flag).length;
      if (masked) {
        throw new Refusal(`${name}: ${masked} of ${usable.length} wavelengths are masked or saturated, and the ` +
          `preprocessing (${model.preprocessing}) needs them all; measure it again (diluted, if saturated), or fit with a ` +
          "range that leaves them out.");
      }
      spectra = spectra.map((one) => (step.kind === "snv" ? standardised(one) : combined(step, one)));
    }
    if (spectra.some((one) => one.some((v) => !Number.isFinite(v)))) {
      throw new Refusal(`${name}: the preprocessing (${model.preprocessing}) gives values that are not finite.`);
    }
    if (!usable.some(Boolean)) {
      throw new Refusal(`every wavelength of ${name} within the ranges of the preprocessing is masked.`);
    }
    spectra.forEach((one) => usable.forEach((flag, j) => { if (!flag) one[j] = 0; }));
    return { spectra, usable, notes: [...unknown.notes, `preprocessed as the standards were: ${model.preprocessing}`] };
  }

  function standardised(one) {
    const mean = one.reduce((a, b) => a + b, 0) / one.length;
    const std = Math.sqrt(one.reduce((a, v) => a + (v - mean) ** 2, 0) / one.length);
    return one.map((v) => (v - mean) / std);
  }

  function combined(step, one) {
    const width = step.bands.shape[1];
    return Float64Array.from(step.offset, (offset, j) => {
      let total = 0;
      for (let k = 0; k < width; k++) total += one[step.starts[j] + k] * step.bands[j * width + k];
      return total + offset;
    });
  }

  // A standard's own spectrum among the unknowns: its own noise is taken out, and it is said.
  function asNew(model, unknown) {
    const which = unknown.spectra.map((one) => (unknown.usable.every(Boolean) ? ownStandard(model, one) : -1));
    if (which.every((n) => n < 0)) return unknown;
    const r = model.rank;
    const spectra = unknown.spectra.map((one, i) => (which[i] < 0 ? one : one.map((v, j) => {
      let noise = 0;
      for (let k = 0; k < r; k++) noise += model.ownNoise[which[i] * r + k] * model.basis[j * r + k];
      return v - model.scale[j] * noise;
    })));
    const own = which.filter((n) => n >= 0);
    const levels = [...new Set(own.map((n) => model.ownConcentrations[n]))].sort((a, b) => a - b).map((c) => general(c));
    let said = `this is the spectrum of the standard ${levels.join(", ")} itself and no new measurement`;
    if (which.length > 1) {
      said = `${own.length} of the ${which.length} spectra are those of standards (${levels.join(", ")}) and no new ` +
        "measurements";
    }
    const note = `${said}: its own noise was left out, and the result shows only how well the standards fit`;
    return { spectra, usable: unknown.usable, notes: [...unknown.notes, note] };
  }

  function ownStandard(model, one) {
    const r = model.rank, print = new Float64Array(r + 1);
    let square = 0;
    one.forEach((v, j) => {
      const white = v / model.scale[j];
      square += white * white;
      for (let k = 0; k < r; k++) print[k] += white * model.basis[j * r + k];
    });
    print[r] = Math.sqrt(square);
    let found = -1;
    for (let n = 0; n < model.ownConcentrations.length; n++) {
      if (print.every((v, k) => Math.abs(v - model.ownFingerprints[n * (r + 1) + k]) <= SAME)) found = n;
    }
    return found;
  }

  return { prepared, asNew };
})();
