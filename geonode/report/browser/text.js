// Spectra from the bytes of a text file: a table with wavelengths in its first column and one spectrum in each other
// column, or in pairs of such columns. What could be read in two ways, or is no such table, is refused in a sentence:
// geonode's readers know far more, and this page must never read a number that they would read otherwise.
"use strict";
const GeonodeText = (function () {
  const { Refusal, general, largest } = GeonodeNumbers;
  const MOST_BYTES = 32 * 2 ** 20, FEWEST_ROWS = 3, CAP_RUN = 3, CAP = 2, CAP_REACHES = 12;
  const DIALECTS = [["\t", "."], ["\t", ","], [";", "."], [";", ","], [",", "."], [" ", "."], [" ", ","]];
  const QUOTED = [",", ","], QUOTED_COMMA = /"[+-]?\d+,\d+([eE][+-]?\d+)?"/;  // only where quotes tell one comma from the other
  const NUMBER = { ".": /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$/, ",": /^[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d{1,3})?$/ };
  const OVERFLOW = /^([<>]\s*[\d.,]+|ov(e?r)?f(lo?w|lw)?|over(flow|range)?|sat(urated)?|#{2,}|-{3,}|\*{2,})$/i;
  const NO_SPECTRUM = /\b(dark|ref(erence)?|background|raw|baseline|scope|std|sd|error|uncertainty|conc(entration)?|time|temp(erature)?|index|pixel)\b|^(#|no\.?|nr\.?|n|i|idx)$/i;
  const ABSCISSA = /^(x|x[ _-]?(axis|achse|data|values?)|abscissa|abszisse)$/i, COUNTER = /^(#|no\.?|nr\.?|n|i|idx|index|pixels?|px|points?)$/i;
  const UNITS = [[/cm\s*(\^|\*\*)?\s*[{(]?\s*[-−–⁻]\s*[1¹]|\b1\s*\/\s*cm|wave ?-?_?num|wellenzahl|raman/i, "cm-1"],
    [/(^|[^A-Za-z\d])([µμu]m|UM)\b|micro ?met|\bmicrons?\b/, "µm"], [/\bm?eV\b|electron ?-?volt|\benergy\b/i, "eV"],
    [/Å|angstr/i, "Å"], [/[TG]Hz\b/i, "THz"], [/\bn\.?m\b|nano ?met|wave ?-?_?len|wellenl|^\s*(λ|lambda|wl)/i, "nm"]];
  const SIGNALS = [[/(^|[^a-z])(abs|absorban(ce|z)|absorption|extin[ck]tion|od|a\.?u\.?)([^a-z]|$)|^A$/i, "absorbance"],
    [/%\s?T|T\s?%|transmi(ttance|ssion)/i, "transmittance"], [/%\s?R|R\s?%|reflect(ance|ivity)/i, "reflectance"],
    [/fluorescence|emission|excitation|\brfu\b/i, "fluorescence"], [/counts?|intensity/i, "intensity"]];
  const FULL_SCALE = [8, 10, 12, 14, 16, 18, 20, 24, 32].map((bits) => 2 ** bits - 1);
  const USE = "export the spectrum as CSV, or use geonode quantify.";

  const first = (patterns, cell) => (patterns.find(([pattern]) => pattern.test(cell)) || [])[1];

  function decode(bytes, file) {
    const starts = (...head) => head.every((byte, i) => bytes[i] === byte);
    if (bytes.length > MOST_BYTES) throw new Refusal(`${file} has more than 32 MB, more than spectra take; split it.`);
    if (starts(0x50, 0x4b, 3, 4)) throw new Refusal(`${file} is a workbook or an archive and no text; ${USE}`);
    let text;
    if (starts(0xff, 0xfe)) text = new TextDecoder("utf-16le").decode(bytes);
    else if (starts(0xfe, 0xff)) text = new TextDecoder("utf-16be").decode(bytes);
    else if (bytes.includes(0)) throw new Refusal(`${file} is no text; ${USE}`);
    else {
      try { text = new TextDecoder("utf-8", { fatal: true }).decode(bytes); }
      catch { text = new TextDecoder("latin1").decode(bytes); }
    }
    text = text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n").replace(/\u2212/g, "-");
    if (/^#(DATA|GRAPH)\s*$/im.test(text)) throw new Refusal(`${file} is a file of a library of spectra, whose head says more than this page reads; ${USE}`);
    if (/^\s*##\s*(TITLE|JCAMP)/i.test(text)) throw new Refusal(`${file} is a JCAMP-DX file, which this page does not read; ${USE}`);
    return text;
  }

  function split(line, delimiter) {
    if (delimiter === " ") return line.trim().split(/\s+/).map((cell) => cell.replace(/^"|"$/g, ""));
    const cells = [];
    let cell = "", quoted = false;
    for (const letter of line) {
      if (letter === '"') quoted = !quoted;
      else if (letter === delimiter && !quoted) { cells.push(cell.trim()); cell = ""; }
      else cell += letter;
    }
    cells.push(cell.trim());
    return cells;
  }

  const isReading = (cell, mark) => NUMBER[mark].test(cell) || OVERFLOW.test(cell);

  // The longest run of rows of readings that begin with a number, in one way of writing.
  function runOf(lines, [delimiter, mark]) {
    let best = null, run = null;
    const close = () => { if (run && (!best || run.rows.length > best.rows.length)) best = run; run = null; };
    lines.forEach(({ text, number }, at) => {
      const all = split(text, delimiter), cells = all.slice();
      while (cells.length && cells[cells.length - 1] === "") cells.pop();
      while (run && cells.length < Math.min(run.width, all.length)) cells.push("");  // an empty reading at the end
      const fits = cells.length >= 2 && NUMBER[mark].test(cells[0]) && cells.every((cell) => cell === "" || isReading(cell, mark));
      if (fits && run && cells.length === run.width) run.rows.push({ cells, number });
      else { close(); if (fits) run = { delimiter, mark, width: cells.length, start: at, rows: [{ cells, number }] }; }
    });
    close();
    return best && best.rows.length >= FEWEST_ROWS ? best : null;
  }

  function tableOf(text, file) {
    const lines = text.split("\n").map((line, i) => ({ text: line, number: i + 1 }))
      .filter((line) => line.text.trim() && !line.text.trim().startsWith("#"));
    let best = null;
    for (const dialect of QUOTED_COMMA.test(text) ? [...DIALECTS, QUOTED] : DIALECTS) {
      const run = runOf(lines, dialect);
      if (run && (!best || run.rows.length > best.rows.length ||
        (run.rows.length === best.rows.length && run.width > best.width))) best = run;
    }
    if (!best) throw new Refusal(`${file} has no table of wavelength and signal, at least three rows of numbers; ${USE}`);
    const after = lines.slice(best.start + best.rows.length), before = lines.slice(0, best.start);
    for (const rest of [before, after]) {
      const other = rest.find((line) => split(line.text, best.delimiter).filter((cell) => NUMBER[best.mark].test(cell)).length >= 2 &&
        !/[A-Za-z]{2}/.test(line.text));
      if (other && (rest === after || best.width === 2)) {
        throw new Refusal(`${file}, row ${other.number}: it does not continue the table of ${best.rows.length} rows beside ` +
          `it, so the file is damaged or holds several tables; ${USE}`);
      }
    }
    const above = before.length ? split(before[before.length - 1].text, best.delimiter) : [], reach = above.length;
    while (above.length && above[above.length - 1] === "") above.pop();
    if (after.length && best.width >= 4) {
      throw new Refusal(`${file}, row ${after[0].number}: text stands below the table, which may say what its columns are; ${USE}`);
    }
    requireNoCommaWithin(best, above, reach, file);
    best.before = text.split("\n").slice(0, best.rows[0].number - 1);
    best.head = headOf(best, above, reach, before, file);
    return best;
  }

  // The names of the columns, as geonode/data/readers/headers.py finds them: the last of a line with as many cells as the
  // rows (`reach`, with the empty ones at its end) may lack its name; a line of one cell less lacks the corner.
  function headOf(table, above, reach, before, file) {
    const missing = table.width - above.length, axis = first(UNITS, above[0] || "") || ABSCISSA.test(above[0] || "");
    if (missing < 0 || !above.length) return [];
    if (missing === 0) return above;
    const refuse = (what) => {
      throw new Refusal(`${file}, row ${before[before.length - 1].number}: ${what}; write “wavelength” over the wavelengths ` +
        "and a name over every other column.");
    };
    if (table.delimiter !== " " && reach >= table.width) {
      if (above[0] === "" ? above.length > 1 : axis || COUNTER.test(above[0])) return [...above, ...Array(missing).fill("")];
      if (missing === 1 && above.length > 1) refuse(`its last cell is empty, and its first, “${above[0]}”, does not say that it heads the wavelengths`);
      return [];
    }
    if (missing !== 1 || above.length < 2) return [];
    if (axis || above[0] === "") refuse(`it has ${above.length} cells and the rows below it ${table.width}, so one of the columns has no name`);
    return ["", ...above];
  }

  // Commas between the numbers and within them: more cells than the header has, or one that begins as a fraction does.
  function requireNoCommaWithin(table, above, reach, file) {
    if (table.delimiter !== ",") return;
    const fraction = table.rows.find(({ cells }) => cells.some((cell) => /^0\d+$/.test(cell)));
    const short = above.length >= 2 && above.length < table.width;
    const whole = reach >= table.width && table.rows.some(({ cells }) => cells.some((cell) => cell.includes(".")));
    if (!fraction && (!short || whole)) return;
    const row = fraction || table.rows[0];
    throw new Refusal(`${file}, row ${row.number}: it has ${row.cells.length} cells${above.length >= 2 ? ` and the header ${above.length}` : ""}: ` +
      "commas stand between the numbers and within them, perhaps; export it with semicolons between the cells, or with decimal points.");
  }

  // A number that may be thousands or a decimal: three digits behind every mark, beside whole numbers without one.
  function requireOneReading(columns, file) {
    // beside wavelengths without any mark a point may well be a decimal one, as the readers have it, and a comma may not
    for (const [cells, marks] of [...[...columns, columns.slice(1).flat()].map((own) => [own, [".", ","]]), [columns.flat(), [","]]]) {
      for (const mark of marks) {
        const marked = cells.filter((cell) => cell.includes(mark));
        const whole = cells.some((cell) => /^[+-]?\d+$/.test(cell));
        const thousands = marked.every((cell) => new RegExp(`^[+-]?[1-9]\\d{0,2}\\${mark}\\d{3}$`).test(cell));
        if (marked.length && whole && thousands) {
          const cell = marked[0];
          throw new Refusal(`${file}: “${cell}” may be ${cell.replace(mark, "")} or ${cell.replace(mark, ".")}; write ` +
            "every number with its decimals, or without marks between thousands.");
        }
      }
    }
  }

  function requireFull(rows, file) {
    for (const { cells, number } of rows) {
      const k = cells.indexOf("");
      if (k >= 0) throw new Refusal(`${file}, row ${number}: column ${k + 1} is empty; repair that cell.`);
    }
  }

  function value(cell, mark) {
    if (cell === "-0" || OVERFLOW.test(cell)) return NaN;
    return Number(mark === "," ? cell.replace(",", ".") : cell);
  }

  function requireSame(model, head, before, file) {
    const unit = first(UNITS, head[0] || "");
    if (unit && model.wavelengthUnit && unit !== model.wavelengthUnit) {
      throw new Refusal(`${file}: its abscissa is in ${unit} and that of the standards in ${model.wavelengthUnit}; export ` +
        "it like the standards.");
    }
    const signal = [...head.slice(1), ...before].map((cell) => first(SIGNALS, cell)).find(Boolean);
    if (signal && model.signal && model.signal !== "signal" && signal !== model.signal) {
      throw new Refusal(`${file}: its signal is ${signal} and that of the standards ${model.signal}; export it like the ` +
        "standards.");
    }
    return signal || "signal";
  }

  function requireAxis(axis, file) {
    const rising = axis.every((v, i) => i === 0 || v > axis[i - 1]), falling = axis.every((v, i) => i === 0 || v < axis[i - 1]);
    if (axis.some(Number.isNaN) || !(rising || falling)) {
      throw new Refusal(`${file}: its first column is no axis of wavelengths, which rise or fall from row to row; ${USE}`);
    }
    if ((axis[0] === 0 || axis[0] === 1) && axis.every((v, i) => v === axis[0] + i)) {
      throw new Refusal(`${file}: its first column only counts the rows; give the wavelengths in their place.`);
    }
  }

  // [first, stop] of each stretch at the cap that is long enough.
  function runsAt(values, cap) {
    const found = [];
    let first = -1;
    for (let k = 0; k <= values.length; k++) {
      if (k < values.length && values[k] === cap) { if (first < 0) first = k; } else {
        if (first >= 0 && k - first >= CAP_RUN) found.push([first, k]);
        first = -1;
      }
    }
    return found;
  }

  // Whether such a stretch may be the top of a band, rounded to `step`: geonode/data/readers/clean.py has the rule.
  function isRoundedTop(values, [first, stop], step) {
    const run = stop - first, falls = (k, j) => k >= 0 && k < values.length && values[first] - values[k] > step * (1.01 + (1 + 2 * j / run) ** 2);
    for (let j = 1; j <= run; j++) if (falls(first - j, j) || falls(stop - 1 + j, j)) return false;
    return run < values.length;
  }

  // A detector at its cap repeats the largest value of the file: masked, as geonode's readers do.
  function maskCap(spectra, signal, notes) {
    const cap = largest(spectra.map((one) => largest(one.values)));
    const full = FULL_SCALE.includes(cap);
    let large = full;
    if (signal === "absorbance") large = cap >= CAP;
    else if (signal === "signal" && cap >= CAP && cap <= CAP_REACHES) {
      large = spectra.some((one) => one.values.some((v) => Number.isFinite(v) && v !== Math.round(v)));
    }
    if (!large) return;
    const finite = spectra.map((one) => Array.from(one.values).filter(Number.isFinite)), sorted = finite.flat().sort((a, b) => a - b);
    const step = sorted.reduce((least, v, k) => (k && v > sorted[k - 1] ? Math.min(least, v - sorted[k - 1]) : least), Infinity);
    if (!finite.some((values) => runsAt(values, cap).some((run) => full || !isRoundedTop(values, run, step)))) return;
    let count = 0;
    for (const one of spectra) one.values.forEach((v, j) => { if (v === cap) { one.masked[j] = true; count++; } });
    notes.push(`${count} value${count > 1 ? "s" : ""} masked: at ${general(cap)}, the cap of the detector`);
  }

  // {wavelengths, spectra: [{name, values, masked}], notes} of a file.
  function read(bytes, file, model) {
    const table = tableOf(decode(bytes, file), file), { mark, width, rows } = table;
    const columns = Array.from({ length: width }, (_, k) => rows.map((row) => row.cells[k]));
    requireFull(rows, file);
    requireOneReading(columns, file);
    const numbers = columns.map((cells) => cells.map((cell) => value(cell, mark)));
    const even = numbers.filter((_, k) => k % 2 === 0), head = table.head;
    const paired = width >= 4 && width % 2 === 0 && even.every((one) => one.every((v, j) => v === even[0][j]));
    requireAxis(numbers[0], file);
    const named = head.findIndex((cell) => /wave ?-?_?len|wellenl/i.test(cell));
    if (named > 0) throw new Refusal(`${file}: its wavelengths stand in column ${named + 1}; put them into the first, or use geonode quantify.`);
    const across = head.slice(1).map((cell) => (NUMBER[mark].test(cell) ? value(cell, mark) : NaN));
    if (!first(UNITS, head[0] || "") && across.length >= FEWEST_ROWS && across.every((v, k) => v >= 100 && (k === 0 || v > across[k - 1]))) {
      throw new Refusal(`${file}: its wavelengths stand in a row and its spectra below one another; give them in columns, or use geonode quantify.`);
    }
    const taken = [];
    for (let k = 1; k < width; k += paired ? 2 : 1) taken.push(k);
    const odd = taken.find((k) => NO_SPECTRUM.test(head[k] || ""));
    if (odd !== undefined) throw new Refusal(`${file}: the column “${head[odd]}” is no spectrum of an unknown; leave it out.`);
    const signal = requireSame(model, head, table.before, file), stem = file.replace(/\.[^.]*$/, ""), notes = [];
    const spectra = taken.map((k) => {
      const own = taken.length === 1 || !head[k] || first(SIGNALS, head[k]) ? "" : head[k];
      const name = taken.length === 1 ? file : `${file}: ${own || `column ${k + 1}`}`;
      return { name, label: own || stem, values: Float64Array.from(numbers[k]), masked: numbers[k].map(Number.isNaN) };
    });
    const missing = spectra.reduce((sum, one) => sum + one.masked.filter(Boolean).length, 0);
    if (missing) notes.push(`${missing} value${missing > 1 ? "s" : ""} masked: written as out of range`);
    maskCap(spectra, signal, notes);
    return { wavelengths: Float64Array.from(numbers[0]), spectra, notes };
  }

  return { read };
})();
