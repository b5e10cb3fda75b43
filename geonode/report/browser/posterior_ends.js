// An end standard, measured again: its sets end where the search did: geonode_runtime/posterior/ends.py.
"use strict";
const GeonodeEnds = (function () {
  const { coordinates } = GeonodeCells, { highest } = GeonodeDensity, NEAR = 0.1, FROM_LEVEL = 0.8;

  // The sets, closed where the spectrum is an end standard's, and the note that says so or "".
  function ended(known, one, mean, usable, sets) {
    let low = true, high = true;
    const open = (set) => set.level > FROM_LEVEL && set.components.length === 1 &&
      ((set.components[0].openLow && low) || (set.components[0].openHigh && high));
    if (!sets.some(open)) return { sets, note: "" };
    const last = known.levels.length - 1, near = nearness(known, mean, usable), least = highest(one, FROM_LEVEL).components;
    low = near(0, 1) && !least.some((piece) => piece.openLow);
    high = near(last, last - 1) && !least.some((piece) => piece.openHigh);
    if (!sets.some(open)) return { sets, note: "" };
    const closed = sets.map((set) => {
      if (!open(set)) return set;
      const [piece] = set.components;
      return { ...set, components: [{ ...piece, openLow: piece.openLow && !low, openHigh: piece.openHigh && !high }] };
    });
    const which = low && high ? "lowest and that of the highest" : low ? "lowest" : "highest";
    return { sets: closed, note: `the spectrum is that of the ${which} standard, nearer to it than a tenth of the step to the ` +
      "next one: its sets end where the search did" };
  }

  // Whether the spectrum is that of the standard at `end`, the next to which is `beside`.
  function nearness(known, mean, usable) {
    const white = Float64Array.from(mean, (v, j) => (v - known.centre[j]) / known.scale[j]);
    const { at } = coordinates(white, known.basis, usable), width = known.basis.shape[1], kept = Array.from(known.keep);
    const square = (from, to) => kept.reduce((total, k) => total + (from(k) - to(k)) ** 2, 0);
    const point = (level) => (k) => known.points[level * width + k];
    return (end, beside) => square((k) => at[k], point(end)) <= NEAR ** 2 * square(point(end), point(beside));
  }

  return { ended };
})();
