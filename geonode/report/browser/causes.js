// The causes of a misfit that are tried, as geonode_runtime/causes/kinds.py has them.
"use strict";
const GeonodeCauses = (function () {
  const { general, median } = GeonodeNumbers;
  const PATHS = [0.1, 0.2, 0.25, 0.4, 0.5, 2, 2.5, 4, 5, 10], FWHM = 2.3548, DENSEST = 10;
  const NOTHING_LEFT = 9;  // so many sigma from its centre a Gaussian is below rounding

  const linspace = (low, high, n) => Array.from({ length: n }, (_, k) => (k === n - 1 ? high : low + k * ((high - low) / (n - 1))));
  const geomspace = (low, high, n) => linspace(Math.log(low), Math.log(high), n).map(Math.exp);
  const signed = (value, digits) => (value < 0 ? "" : "+") + general(value, digits);
  const ones = (x) => new Float64Array(x.length).fill(1);
  const centred = (x) => {
    const low = x[0], high = x[x.length - 1];
    return x.map((v) => (2 * v - low - high) / (high - low || 1));
  };

  // curve at wavelengths `asked`: the cubic through the four values of x around each, by Lagrange's formula.
  function cubic(asked, x) {
    const first = Array.from(asked, (t) => {
      let low = 0, high = x.length;
      while (low < high) { const middle = (low + high) >> 1; if (x[middle] < t) low = middle + 1; else high = middle; }
      return Math.min(Math.max(low - 2, 0), x.length - 4);
    });
    const weights = [0, 1, 2, 3].map((i) => asked.map((t, j) => {
      let weight = 1;
      for (let k = 0; k < 4; k++) if (k !== i) weight *= (t - x[first[j] + k]) / (x[first[j] + i] - x[first[j] + k]);
      return weight;
    }));
    return (row) => {
      const made = new Float64Array(first.length);
      for (let i = 0; i < 4; i++) for (let j = 0; j < made.length; j++) made[j] += row[first[j] + i] * weights[i][j];
      return made;
    };
  }

  // Each row folded with a Gaussian of this sigma.
  function blunted(rows, x, sigma) {
    const width = x.length, made = rows.map(() => new Float64Array(width)), kernel = new Float64Array(width);
    const plain = rows.map((row) => Float64Array.from(row));  // all of one kind: the sums below are most of the work
    for (let j = 0; j < width; j++) {
      let total = 0, from = j, to = j;
      while (from > 0 && x[j] - x[from - 1] < NOTHING_LEFT * sigma) from--;
      while (to < width - 1 && x[to + 1] - x[j] < NOTHING_LEFT * sigma) to++;
      for (let k = from; k <= to; k++) { kernel[k] = Math.exp(-0.5 * ((x[j] - x[k]) / sigma) ** 2); total += kernel[k]; }
      for (let c = 0; c < plain.length; c++) {
        const row = plain[c];
        let sum = 0;
        for (let k = from; k <= to; k++) sum += row[k] * kernel[k];
        made[c][j] = sum / total;
      }
    }
    return made;
  }

  // parameters: free numbers. axes(x): settings to be tried, {values, between}. bases(rows, x, s): what of the curve's
  // spectra is there at the settings s whatever the coefficients. columns(row, x, s): what the coefficients multiply.
  // otherQuantity: named beyond the standards too, and its size says nothing. least: the share it must explain.
  const plain = { parameters: 0, remedy: "", positive: false, multiplies: false, otherQuantity: false, least: 0, axes: () => [], bases: (rows) => rows, columns: () => [] };
  const KINDS = {
    "offset": { ...plain, parameters: 1, remedy: "check the instrument's zero and the cuvette's windows",
      columns: (row, x) => [ones(x)],
      words: (told) => `an offset of ${signed(told.coefficients[0], 3)} in ${told.signal} at every wavelength` },
    "tilt": { ...plain, parameters: 2, remedy: "check the lamp, the baseline correction and the reference",
      columns: (row, x) => [ones(x), centred(x)],
      words({ coefficients: [offset, slope], x, at, signal }) {
        return `a tilted baseline, ${signed(offset - slope, 3)} in ${signal} at ${at(x[0])} to ${signed(offset + slope, 3)} at ` +
          at(x[x.length - 1]);
      } },
    "scale": { ...plain, parameters: 1, positive: true, multiplies: true,
      remedy: "check the reference, the gain, the filling of the cuvette and the volume",
      bases: (rows) => rows.map((row) => new Float64Array(row.length)), columns: (row) => [row],
      words: (told) => `a scale: every value is ${general(told.coefficients[0], 3)} times what it should be` },
    "other path length": { ...plain, multiplies: true, remedy: "check the cuvette, and whether the sample was diluted, its matrix too",
      axes: () => [{ values: PATHS, between: false }],
      bases: (rows, x, [ratio]) => rows.map((row) => row.map((v) => v * ratio)),
      words: (told) => `another path length, ${general(told.settings[0])} times that of the standards` },
    "shift": { ...plain, parameters: 1, remedy: "check the instrument's wavelengths with a holmium or didymium filter",
      axes(x) {
        const reach = (x[x.length - 1] - x[0]) / 15, half = linspace(reach / 16, reach, 16);
        return [{ values: [...half.map((v) => -v).reverse(), ...half], between: true }];
      },
      bases(rows, x, [step]) {
        const at = cubic(x.map((v) => Math.min(Math.max(v - step, x[0]), x[x.length - 1])), x);
        return rows.map(at);
      },
      words({ settings: [step], unit }) {
        return `a shift of the wavelengths by ${general(Math.abs(step), 2)}${unit} towards ${step > 0 ? "longer" : "shorter"} ones`;
      } },
    "scatter": { ...plain, parameters: 2, positive: true, remedy: "the sample is turbid: filter or centrifuge it",
      axes: () => [{ values: [2, 3, 4], between: true }],
      columns(row, x, [exponent]) {
        const positive = x[0] > 0 ? x : x.map((v) => v - x[0] + 1);
        return [positive.map((v) => (v / positive[0]) ** -exponent)];
      },
      words({ settings: [exponent], coefficients: [size], x, at, signal }) {
        return `scattering, ${general(size, 3)} in ${signal} at ${at(x[0])} and falling with the wavelength to the power ` +
          general(exponent, 2);
      } },
    "interferent": { ...plain, parameters: 3, positive: true, remedy: "look for another absorbing substance, or a dirty cuvette",
      axes(x) {
        const low = x[0], high = x[x.length - 1], span = high - low;
        return [{ values: linspace(low - 0.1 * span, high + 0.1 * span, 37), between: true },
          { values: geomspace(0.012, 0.2, 7).map((v) => span * v), between: true }];
      },
      columns: (row, x, [centre, sigma]) => [x.map((v) => Math.exp(-0.5 * ((v - centre) / sigma) ** 2))],
      words({ settings: [centre, sigma], coefficients: [size], x, at, unit, signal }) {
        const end = Math.min(Math.max(centre, x[0]), x[x.length - 1]);
        if (end !== centre) {
          const height = size * Math.exp(-0.5 * ((end - centre) / sigma) ** 2);
          return `the flank of a band beyond the wavelengths that were measured, ${general(height, 3)} high in ${signal} at ` +
            `${at(end)}, where they end: an interferent`;
        }
        return `a further band at ${at(centre)}, ${general(FWHM * sigma, 2)}${unit} wide (half maximum) and ${general(size, 3)} ` +
          `high in ${signal}: an interferent`;
      } },
    "resolution": { ...plain, parameters: 1, remedy: "measure with the slit, the step and the smoothing that the standards had",
      axes(x) {
        const step = median(x.slice(1).map((v, j) => v - x[j]));
        const widths = geomspace(0.5 * step, Math.max((x[x.length - 1] - x[0]) / 6, step), 14);
        return [{ values: [...widths.slice(0, 6).map((v) => -v).reverse(), ...widths], between: true }];
      },
      bases(rows, x, [sigma]) {
        const blunt = blunted(rows, x, Math.max(Math.abs(sigma), 1e-12));
        return sigma > 0 ? blunt : blunt.map((one, c) => one.map((v, j) => 2 * rows[c][j] - v));
      },
      words({ settings: [sigma], unit }) {
        const width = general(FWHM * Math.abs(sigma), 2) + unit;
        return sigma > 0 ? `another resolution: bands are blunted by ${width} (half maximum)`
          : `another resolution: bands are sharper than the standards', by about ${width} (half maximum)`;
      } },
    "transmittance": { ...plain, otherQuantity: true, least: 0.98,
      remedy: "export it as absorbance, or take −log10 of it (2 − log10 of percent)",
      axes: () => [{ values: [1, 100], between: false }],
      bases: (rows, x, [full]) => rows.map((row) => row.map((v) => full * 10 ** -Math.min(Math.max(v, -DENSEST), DENSEST))),
      words: ({ settings: [full] }) =>
        `transmittance (${full === 100 ? "percent" : "0 to 1"}), where the standards look like absorbance` },
    "transmittance difference": { ...plain, otherQuantity: true, least: 0.98,
      remedy: "export it as absorbance, or take −log10 of the transmittance",
      axes: () => [{ values: [1, 100, -1, -100], between: false }],
      bases: (rows, x, [full]) => rows.map((row) => row.map((v) => full * (10 ** -Math.min(Math.max(v, -DENSEST), DENSEST) - 1))),
      words: ({ settings: [full] }) => `${full > 0 ? "a difference of transmittance, T − 1" : "absorptance, 1 − T"} ` +
        `(${Math.abs(full) === 100 ? "percent" : "0 to 1"}), where the standards look like absorbance` },
    "negated": { ...plain, otherQuantity: true, least: 0.98, remedy: "look at which of sample and reference was taken off which",
      bases: (rows) => rows.map((row) => row.map((v) => -v)), words: () => "a spectrum with its sign changed" },
  };

  return { KINDS, NOTHING: plain, linspace };
})();
