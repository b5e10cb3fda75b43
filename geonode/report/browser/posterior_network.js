// The trained network of the posterior, for one unknown: geonode_runtime/posterior/network.py.
"use strict";
const GeonodeNetwork = (function () {
  const { CELLS } = GeonodeCells, { largest } = GeonodeNumbers;
  const DILATIONS = [1, 3, 6], TAIL = 0.002;

  // x Phi(x), Phi by Abramowitz & Stegun 7.1.26.
  function gelu(x) {
    const z = Math.abs(x) * 0.7071067811865476, t = 1 / (1 + 0.3275911 * z);
    const poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    const tail = 0.5 * poly * Math.exp(-z * z);
    return x * (x < 0 ? tail : 1 - tail);
  }

  // weight [out, in, taps] times x [in] at one tap, added to `into`.
  function add(weight, x, tap, into) {
    const { shape } = weight, out = shape[0], inner = shape[1], taps = shape.length > 2 ? shape[2] : 1;
    for (let o = 0, at = tap; o < out; o++) {
      let total = 0;
      for (let i = 0; i < inner; i++, at += taps) total += weight[at] * x[i];
      into[o] += total;
    }
    return into;
  }

  const linear = (w, name, x) => add(w[`${name}.weight`], x, 0, Float64Array.from(w[`${name}.bias`]));
  function activated(values) {
    const made = new Float64Array(values.length);
    for (let k = 0; k < made.length; k++) made[k] = gelu(values[k]);
    return made;
  }

  function dilated(w, name, x, dilation) {
    const weight = w[`${name}.weight`], bias = w[`${name}.bias`];
    return x.map((row, i) => {
      const found = Float64Array.from(bias);
      for (let tap = 0; tap < 3; tap++) {
        const there = i + (tap - 1) * dilation;
        if (there >= 0 && there < x.length) add(weight, x[there], tap, found);
      }
      return found;
    });
  }

  function plus(a, b) {
    const made = new Float64Array(a.length);
    for (let k = 0; k < made.length; k++) made[k] = a[k] + b[k];
    return made;
  }

  function pooled(mass, x) {
    const made = new Float64Array(x[0].length);
    for (let i = 0; i < x.length; i++) for (let k = 0; k < made.length; k++) made[k] += mass[i] * x[i][k];
    return made;
  }

  // Log probability of every cell, below, above and none of these; probability of something strange.
  function evaluate(w, cells) {
    const { base, odd, edges } = cells, mass = Array.from(base.subarray(0, CELLS), Math.exp);
    const seen = activated(linear(w, "whole.2", activated(linear(w, "whole.0", cells.whole))));
    const told = linear(w, "tell", seen);
    let x = cells.values.map((row) => activated(plus(linear(w, "enter", row), told)));
    DILATIONS.forEach((dilation, k) => {
      const whole = linear(w, `blocks.${k}.whole`, pooled(mass, x));
      const inner = dilated(w, `blocks.${k}.along`, x, dilation).map((row) => activated(plus(row, whole)));
      x = x.map((row, i) => plus(row, linear(w, `blocks.${k}.out`, inner[i])));
    });
    const own = linear(w, "classes.2", activated(linear(w, "classes.0", [...seen, ...pooled(mass, x)])));
    let logs = x.map((row, i) => base[i] + linear(w, "cell", row)[0]);
    logs.push(base[CELLS] + own[0], base[CELLS + 1] + own[1], odd + own[2]);
    const most = largest(logs), total = Math.log(logs.reduce((all, v) => all + Math.exp(v - most), 0));
    const kept = Math.log(1 - TAIL), reach = edges[CELLS] - edges[0];
    logs = logs.map((v) => v - most - total + kept).map((v, i) => {
      if (i >= CELLS) return v;
      const even = Math.log(TAIL * (edges[i + 1] - edges[i]) / reach), top = Math.max(v, even);
      return top + Math.log1p(Math.exp(-Math.abs(v - even)));
    });
    return { logs, strange: 1 / (1 + Math.exp(-(odd + own[3]))) };
  }

  return { evaluate };
})();
