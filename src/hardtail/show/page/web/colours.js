// The ramp of commit steps and the strokes of charts. `page.py` writes the palette from `charts/colours.py`.

import { STEP_RAMP, WHITE_UNTIL } from "./palette.js";

// The fill of a commit, from dark (first) to light (last), and a legible colour for text on it.
export function stepColour(part) {
  const at = Math.min(Math.max(part, 0), 1) * (STEP_RAMP.length - 1);
  const low = Math.min(Math.floor(at), STEP_RAMP.length - 2);
  const [from, to] = [STEP_RAMP[low], STEP_RAMP[low + 1]];
  const mixed = from.map((channel, i) => Math.round(channel + (to[i] - channel) * (at - low)));
  return { fill: `rgb(${mixed.join(" ")})`, ink: part < WHITE_UNTIL ? "#ffffff" : "#0b1f33" };
}

export const DASHES = ["", "7 4", "2 3", "10 3 2 3", "5 2 1 2 1 2", "14 4", "1 5", "3 3 9 3"];

// Around the origin: a circle, a square, a triangle, a diamond, a cross, a triangle upside down.
const MARKS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
  "M-3.6 -3.6h7.2v7.2h-7.2z",
  "M0 -4.8l4.6 8h-9.2z",
  "M0 -5.2l4.4 5.2l-4.4 5.2l-4.4 -5.2z",
  "M-1.4 -4.6h2.8v3.2h3.2v2.8h-3.2v3.2h-2.8v-3.2h-3.2v-2.8h3.2z",
  "M0 4.8l4.6 -8h-9.2z",
];

// The mark of a style by its place: filled, or open where more styles than marks come together.
export function markOf(place) {
  return { path: MARKS[place % MARKS.length], open: place % (2 * MARKS.length) >= MARKS.length };
}
