// Unknown, prediction and what is left between them, drawn under an answer.
"use strict";
const GeonodeOverlay = (function () {
  const { general, figure } = GeonodeNumbers;
  const MARGIN = { left: 58, right: 18, top: 8, bottom: 40 }, GAP = 3;

  function element(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function ticks(from, to, count) {
    const rough = (to - from) / count, power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) || rough, found = [];
    for (let k = Math.ceil(from / step); k * step <= to + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
    return found;
  }

  // A path through the usable values, broken where wavelengths are masked or were left out.
  function path(x, y, values, usable, wavelengths) {
    const steps = Array.from(wavelengths.slice(1), (v, j) => v - wavelengths[j]), usual = GeonodeNumbers.median(steps);
    let text = "", pen = false;
    values.forEach((v, j) => {
      if (!usable[j]) { pen = false; return; }
      if (j > 0 && steps[j - 1] > GAP * usual) pen = false;
      text += (pen ? "L" : "M") + x(wavelengths[j]).toFixed(1) + " " + y(v).toFixed(1);
      pen = true;
    });
    return text;
  }

  function panel(svg, model, top, height, low, high, lines, label, usable, width, last) {
    const w = model.wavelengths, first = w[0], end = w[w.length - 1];
    const x = (v) => MARGIN.left + (v - first) / (end - first || 1) * (width - MARGIN.left - MARGIN.right);
    const y = (v) => top + height - (v - low) / (high - low || 1) * height;
    for (const t of ticks(low, high, height > 100 ? 5 : 4)) {
      svg.append(element("line", { class: "grid", x1: x(first), x2: x(end), y1: y(t), y2: y(t) }));
      svg.append(element("text", { x: x(first) - 6, y: y(t) + 4, "text-anchor": "end" }, String(t)));
    }
    for (const [name, values] of lines) svg.append(element("path", { class: name, d: path(x, y, values, usable, w) }));
    const middle = top + height / 2;
    svg.append(element("text", { x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, label));
    if (!last) return;
    for (const t of ticks(first, end, width < 500 ? 4 : 8)) {
      svg.append(element("line", { x1: x(t), x2: x(t), y1: top + height, y2: top + height + 5 }));
      svg.append(element("text", { x: x(t), y: top + height + 18, "text-anchor": "middle" }, String(t)));
    }
    svg.append(element("text", { x: (x(first) + x(end)) / 2, y: top + height + 35, "text-anchor": "middle" }, model.xLabel));
  }

  function extent(rows, usable) {
    let low = Infinity, high = -Infinity;
    for (const row of rows) row.forEach((v, j) => { if (usable[j]) { low = Math.min(low, v); high = Math.max(high, v); } });
    const room = 0.04 * (high - low || 1);
    return [low - room, high + room];
  }

  const key = (name, words) => `<li><svg aria-hidden="true" viewBox="0 0 28 10"><path class="${name}" d="M0 5H28"/></svg>${words}</li>`;

  // Appends the figure of an answer: above, unknown and predictions; below, unknown less the nearest prediction.
  function draw(parent, model, answer) {
    const unit = model.unit ? " " + model.unit : "", usable = answer.usable;
    const matches = answer.verdict !== "does not match", shown = matches ? answer.nearest.slice(0, 3) : answer.nearest.slice(0, 1);
    const at = shown.map((c, i) => figure(c, answer.beside[i]) + unit);
    const curves = shown.map((c) => GeonodeAnswers.predicted(model, c)), names = ["predicted", "second", "third"];
    const left = answer.mean.map((v, j) => v - curves[0][j]);
    const drawing = element("svg", { role: "img", class: "overlay" }), box = document.createElement("figure");
    const list = document.createElement("ul"), width = Math.max(280, Math.min(parent.clientWidth || 700, document.getElementById("answers").clientWidth || 700, 760));
    const upper = width < 500 ? 190 : 240, lower = 90;
    const largest = left.reduce((most, v, j) => (usable[j] && Math.abs(v) > Math.abs(left[most]) ? j : most), usable.indexOf(true));
    const said = `${matches ? "Predicted" : "Nearest predicted"} at ${at.join(" and ")}; the ` +
      `largest residual is ${general(left[largest], 3)} at ${figure(model.wavelengths[largest])}.`;
    drawing.setAttribute("aria-label", "The unknown's spectrum, the predicted one and their difference. " + said);
    drawing.setAttribute("viewBox", `0 0 ${width} ${MARGIN.top + upper + 20 + lower + MARGIN.bottom}`);
    const [low, high] = extent([answer.mean, ...curves], usable), [down, up] = extent([left, left.map(() => 0)], usable);
    panel(drawing, model, MARGIN.top, upper, low, high, [["measured", answer.mean], ...curves.map((c, i) => [names[i], c])],
      model.yLabel, usable, width, false);
    panel(drawing, model, MARGIN.top + upper + 20, lower, down, up, [["zero", left.map(() => 0)], ["residual", left]],
      "residual", usable, width, true);
    list.className = "key";
    list.innerHTML = key("measured", "unknown") + shown.map((_, i) => key(names[i], "")).join("") + key("residual", "unknown − predicted");
    list.querySelectorAll("li").forEach((item, i) => {
      if (i > 0 && i <= shown.length) item.append(`${matches ? "predicted" : "nearest, predicted"} at ${at[i - 1]}`);
    });
    const caption = document.createElement("figcaption");
    caption.textContent = said;
    box.append(drawing, list, caption);
    parent.append(box);
  }

  return { draw };
})();
