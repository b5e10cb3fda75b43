// The spectrum at the concentration that the slider is at. Plain JavaScript: everything it needs is in this page.
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("spectra-data").textContent);
  const slider = document.getElementById("concentration");
  const svg = document.getElementById("spectrum");
  const shown = document.getElementById("shown-concentration");
  const state = document.getElementById("shown-state");
  const margin = { left: 56, right: 10, top: 10, bottom: 42 };
  const unit = data.unit ? " " + data.unit : "";
  const wavelengthUnit = data.xLabel.includes(" / ") ? " " + data.xLabel.split(" / ").pop() : "";
  let width = 0, height = 0;

  function element(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function number(value) { return String(Number(value.toPrecision(4))); }

  const w = data.wavelengths, low = w[0], high = w[w.length - 1];
  let bottom = Infinity, top = -Infinity;
  for (const row of data.standards) for (const v of row) { bottom = Math.min(bottom, v); top = Math.max(top, v); }
  data.mean.forEach((row, i) => {
    if (data.extrapolated[i]) return;  // a band far outside the standards would flatten everything else
    row.forEach((v, j) => {
      const half = data.half ? data.half[i][j] : 0;
      bottom = Math.min(bottom, v - half);
      top = Math.max(top, v + half);
    });
  });
  const x = (v) => margin.left + (v - low) / (high - low || 1) * (width - margin.left - margin.right);
  const y = (v) => height - margin.bottom - (v - bottom) / (top - bottom || 1) * (height - margin.top - margin.bottom);

  // Wavelengths that were left out are not crossed by a line: data.pieces holds the [first, last] of each stretch.
  function line(values) {
    return data.pieces.map(([a, b]) => {
      let path = "";
      for (let j = a; j <= b; j++) path += (j === a ? "M" : "L") + x(w[j]).toFixed(1) + " " + y(values[j]).toFixed(1);
      return path;
    }).join("");
  }

  function area(mean, half) {
    return data.pieces.map(([a, b]) => {
      let up = "", down = "";
      for (let j = a; j <= b; j++) {
        up += (j === a ? "M" : "L") + x(w[j]).toFixed(1) + " " + y(mean[j] + half[j]).toFixed(1);
        down = "L" + x(w[j]).toFixed(1) + " " + y(mean[j] - half[j]).toFixed(1) + down;
      }
      return up + down + "Z";
    }).join("");
  }

  function ticks(from, to, count) {
    const rough = (to - from) / count, power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) || rough;
    const found = [];
    for (let k = Math.ceil(from / step); k * step <= to + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
    return found;
  }

  function axes() {
    const group = element("g", { class: "axes" });
    for (const t of ticks(low, high, width < 500 ? 4 : 8)) {
      group.append(element("line", { x1: x(t), x2: x(t), y1: y(bottom), y2: y(bottom) + 5 }));
      group.append(element("text", { x: x(t), y: y(bottom) + 18, "text-anchor": "middle" }, String(t)));
    }
    for (const t of ticks(bottom, top, 5)) {
      group.append(element("line", { class: "grid", x1: x(low), x2: x(high), y1: y(t), y2: y(t) }));
      group.append(element("text", { x: x(low) - 6, y: y(t) + 4, "text-anchor": "end" }, String(t)));
    }
    group.append(element("line", { x1: x(low), x2: x(high), y1: y(bottom), y2: y(bottom) }));
    const middle = (margin.top + height - margin.bottom) / 2;
    group.append(element("text", { x: (x(low) + x(high)) / 2, y: height - 6, "text-anchor": "middle" }, data.xLabel));
    group.append(element("text", { x: 12, y: middle, "text-anchor": "middle",
      transform: "rotate(-90 12 " + middle + ")" }, data.yLabel));
    return group;
  }

  function frame() {
    width = Math.max(280, svg.clientWidth);
    height = Math.round(Math.min(440, Math.max(260, 0.6 * width)));
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    svg.style.height = height + "px";
    svg.replaceChildren(axes());
    for (const row of data.standards) svg.append(element("path", { class: "standard", d: line(row) }));
    for (const name of ["band", "below", "above", "prediction"]) svg.append(element("path", { id: name, class: name }));
    update();
  }

  function update() {
    const i = Number(slider.value), c = data.concentrations[i], levels = data.levels;
    document.getElementById("prediction").setAttribute("d", line(data.mean[i]));
    document.getElementById("prediction").classList.toggle("extrapolated", data.extrapolated[i]);
    if (data.half) document.getElementById("band").setAttribute("d", area(data.mean[i], data.half[i]));
    const at = levels.indexOf(c);
    let below = -1, above = -1;
    levels.forEach((v, k) => { if (v <= c) below = k; if (v >= c && above < 0) above = k; });
    for (const [name, k] of [["below", below], ["above", above === below ? -1 : above]]) {
      document.getElementById(name).setAttribute("d", k < 0 ? "" : line(data.standards[k]));
      document.getElementById("key-" + name).hidden = k < 0;
      document.getElementById("label-" + name).textContent = k < 0 ? "" : number(levels[k]) + unit;
    }
    shown.textContent = number(c) + unit;
    let said = "beyond the standards: an extrapolation";
    if (at >= 0) said = "a standard was measured here";
    else if (!data.extrapolated[i]) {
      said = "between the standards " + number(levels[below]) + " and " + number(levels[above]) + unit;
    }
    let peak = 0;
    data.mean[i].forEach((v, j) => { if (v > data.mean[i][peak]) peak = j; });
    state.textContent = said + "; highest at " + number(w[peak]) + wavelengthUnit + ": " +
      number(data.mean[i][peak]) + (data.half ? " ± " + number(data.half[i][peak]) + " (80 %)" : ", no band claimed");
    slider.setAttribute("aria-valuetext", number(c) + unit + ", " + said);
  }

  slider.addEventListener("input", update);
  let last = 0;
  new ResizeObserver(() => { if (svg.clientWidth !== last) { last = svg.clientWidth; frame(); } }).observe(svg);
  frame();
})();
