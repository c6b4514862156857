// The boxes for task, decoders and filters, the list of problems, and the key of colours.

import { el, plural } from "./dom.js";
import { OUTCOMES } from "./choice.js";
import { sceneOf } from "./scenes.js";

const LISTED = 1000;

// The boxes above the stage; `changed` is called with the name of a box after the choice has been updated.
export function pickers(choice, changed) {
  const { stage, stages, stories } = choice;
  const tasks = stages.map((_, place) => [place, stories.find((one) => one.stage === place).title]);
  const decoders = namesOf(stage.decoders).map((name, place) => [place, name]);
  const plain = (names) => [["", "any"], ...names.map((name) => [name, name])];
  const take = (name, read) => (value) => {
    choice[name] = read(value);
    changed(name);
  };
  const other = (value) => {
    choice.select(Number(value));
    changed("task");
  };
  return [
    picker("Task", "task", tasks, choice.at, other),
    picker("Decoder A", "a", decoders, choice.a, take("a", Number)),
    picker("Decoder B", "b", [[-1, "none"], ...decoders], choice.b, take("b", Number)),
    picker("Outcome", "outcome", Object.entries(OUTCOMES), choice.outcome, take("outcome", String)),
    picker("Stratum", "stratum", plain([...new Set(stage.strata)]), choice.stratum, take("stratum", String)),
    picker("First wrong role", "role", plain(choice.roles()), choice.role, take("role", String)),
  ];
}

// The names of decoders, without the model where all have the same: there is not much room, and the policy comes last.
function namesOf(decoders) {
  const model = `${decoders[0].model} · `;
  const same = decoders.every((decoder) => decoder.name.startsWith(model));
  return decoders.map((decoder) => (same ? decoder.name.slice(model.length) : decoder.name));
}

function picker(label, name, options, chosen, change) {
  const entries = options.map(([value, text]) =>
    el("option", { value, selected: String(value) === String(chosen), text }),
  );
  const select = el("select", { name, onchange: () => change(select.value) }, ...entries);
  return el("label", { class: label.startsWith("Decoder") ? "long" : null }, el("span", { text: label }), select);
}

// The list of problems, up to a useful length; the keys reach all of them.
export function problemEntries(choice, problems) {
  const { stage, decoders } = choice;
  const axis = Object.keys(stage.axes)[0];
  const more = problems.length - LISTED;
  const entries = problems.slice(0, LISTED).map((problem) => {
    const rows = decoders.map((decoder) => decoder.rowOf.get(problem));
    const signs = rows.map((row, place) => (decoders[place].exact[row] ? "✓" : "✗")).join("");
    const roles = decoders.map((decoder, place) => choice.firstRole(decoder, rows[place], problem));
    const chosen = { "data-problem": problem, "aria-selected": String(problem === choice.problem), tabindex: -1 };
    return el(
      "button",
      { type: "button", role: "option", title: stage.strata[problem], ...chosen },
      el("b", { text: problem + 1 }),
      el("span", { class: signs.includes("✗") ? "bad" : "good", text: signs }),
      el("span", { class: "fact", text: axis ? `${axis} ${stage.axes[axis][problem]}` : stage.strata[problem] }),
      el("span", { class: "fact", text: roles.find(Boolean) ?? "" }),
    );
  });
  return more > 0 ? [...entries, el("p", { class: "note", text: `and ${plural(more, "problem")} more` })] : entries;
}

// What the colours of a stage's drawings mean; `replaces`: whether a decoder on the stage rewrites cells.
export function colourKey({ task, parentSlots }, replaces) {
  const swatch = (kind, words) => el("span", {}, el("i", { class: `swatch ${kind}` }), words);
  return [
    ...sceneOf(task).legend(swatch),
    swatch("key-now", "written in this step"),
    ...(parentSlots === null ? [] : [swatch(sceneOf(task).flag, "written before its prerequisites")]),
    ...(parentSlots ? [swatch("key-parent", "what the cell waits for")] : []),
    ...(replaces ? [swatch("key-replaced", "replaced; the old token is struck out")] : []),
  ];
}
