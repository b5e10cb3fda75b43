// The drop zone: files in, an answer for each unknown out. Nothing leaves this page.
"use strict";
(function () {
  const stored = document.getElementById("answer-data");
  if (!stored) return;  // a preprocessing that only geonode can do: the page says so instead
  const { Refusal, general } = GeonodeNumbers;
  const model = GeonodeAnswers.open(JSON.parse(stored.textContent));
  const at = (id) => document.getElementById(id);
  const zone = at("drop"), input = at("unknown-file"), shown = at("answers");
  let files = [], turn = 0;

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const options = () => ({ level: Number(at("unknown-level").value), dilution: at("unknown-dilution").valueAsNumber,
    dilutionStd: at("unknown-dilution-std").valueAsNumber });

  // Unknowns of the files: each spectrum one, or all spectra the replicates of one.
  function unknownsOf(read) {
    const all = read.flatMap((file) => file.spectra.map((one) => ({ ...one, wavelengths: file.wavelengths, notes: file.notes })));
    requireNoCopies(all);
    if (!at("unknown-replicates").checked || all.length < 2) return all.map((one) => [one]);
    const grid = all[0].wavelengths;
    const other = all.find((one) => one.wavelengths.length !== grid.length || one.wavelengths.some((v, j) => v !== grid[j]));
    if (other) throw new Refusal(`${other.name} has other wavelengths than ${all[0].name}, so they are no replicates.`);
    return [all];
  }

  function requireNoCopies(all) {
    const seen = new Map();
    for (const one of all) {
      const key = one.values.join(" ");
      if (one.values.some((v) => v !== 0) && seen.has(key)) {
        throw new Refusal(`${one.name} is identical to ${seen.get(key)} at every wavelength, so it is a copy and no replicate; ` +
          "leave one of them out.");
      }
      seen.set(key, one.name);
    }
  }

  function card(group) {
    const name = group.length === 1 ? group[0].name : `${group[0].name} and ${group.length - 1} more`;
    const made = element("article", "answer");
    made.append(element("h3", "", name));
    try {
      const answer = GeonodeAnswers.quantify(model, group[0].wavelengths, group, name, options());
      const verdict = element("p", "verdict", answer.sentence);
      verdict.dataset.verdict = answer.verdict;
      made.append(verdict);
      for (const one of answer.why) made.append(element("p", "cause", one[0].toUpperCase() + one.slice(1) + "."));
      const notes = element("ul");
      const said = [...new Set(group.flatMap((one) => one.notes)), ...answer.notes];
      if (answer.replicates > 1) said.unshift(`${answer.replicates} spectra taken as replicates of one sample`);
      if (answer.masked) said.push(`${answer.masked} wavelengths left out`);
      for (const note of said) notes.append(element("li", "", note));
      if (said.length) made.append(notes);
      GeonodeOverlay.draw(made, model, answer);
    } catch (error) { made.append(refused(error)); }
    return made;
  }

  function refused(error) {
    if (!(error instanceof Refusal)) throw error;
    return element("p", "refused", "Refused: " + error.message);
  }

  function refusedFile(name, error) {
    const made = element("article", "answer");
    made.append(element("h3", "", name), refused(error));
    return made;
  }

  async function answerAll() {
    const mine = ++turn, read = [], cards = [];
    for (const file of files) {
      try {
        read.push(GeonodeText.read(new Uint8Array(await file.arrayBuffer()), file.name, model));
        cards.push(null);  // its answer takes this place
      } catch (error) { cards.push(refusedFile(file.name, error)); }
    }
    if (mine !== turn) return;  // other files came meanwhile
    shown.replaceChildren(...inPlace(cards, read));
  }

  // Answers where their files stand among those that were refused.
  function inPlace(cards, read) {
    let groups;
    try { groups = unknownsOf(read); } catch (error) { return [...cards.filter(Boolean), refused(error)]; }
    const left = groups.slice(), placed = [];
    let next = 0;
    for (const made of cards) {
      if (made) { placed.push(made); continue; }
      const own = read[next++].spectra.length;
      for (let k = 0; k < own && left.length; k++) placed.push(card(left.shift()));
    }
    return placed;
  }

  function take(list) { files = [...list]; if (files.length) answerAll(); }

  input.addEventListener("change", () => take(input.files));
  for (const id of ["unknown-replicates", "unknown-dilution", "unknown-dilution-std", "unknown-level"]) {
    at(id).addEventListener("change", () => { if (files.length) answerAll(); });
  }
  // Anywhere on the page: a file that misses the zone must not replace the page.
  document.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) zone.classList.remove("over"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer.files);
  });
})();
