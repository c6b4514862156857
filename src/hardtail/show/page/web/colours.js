// Colours that people with any colour vision tell apart (Okabe and Ito's), and the ramp of commit steps.

const FAMILIES = [
  ["papl5", "#cc79a7"],
  ["papl", "#e69f00"],
  ["puma", "#009e73"],
  ["mixture", "#d55e00"],
  ["oracle", "#56b4e9"],
  ["random", "#0072b2"],
];
const OTHERS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c"];
const given = new Map();

// A training scheme has its colour wherever it appears; any other name takes the next one and keeps it.
export function hueColour(name) {
  if (!given.has(name)) {
    const family = FAMILIES.find(([word]) => name.toLowerCase().includes(word));
    const taken = [...given.values()];
    const free = OTHERS.find((colour) => !taken.includes(colour));
    given.set(name, family ? family[1] : (free ?? OTHERS[given.size % OTHERS.length]));
  }
  return given.get(name);
}

const RAMP = [
  [18, 64, 128],
  [38, 110, 175],
  [96, 160, 208],
  [162, 203, 231],
  [219, 234, 246],
];

// From a decode's first commit, dark, to its last, light: the fill and the ink that is read on it.
export function stepColour(part) {
  const at = Math.min(Math.max(part, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(at), RAMP.length - 2);
  const mixed = RAMP[low].map((channel, i) => Math.round(channel + (RAMP[low + 1][i] - channel) * (at - low)));
  return { fill: `rgb(${mixed.join(" ")})`, ink: part < 0.5 ? "#ffffff" : "#0b1f33" };
}

export const DASHES = ["", "7 4", "2 3", "10 3 2 3", "5 2 1 2 1 2", "14 4", "1 5", "3 3 9 3"];
