// The page itself: which view is shown, keys that work everywhere, light and dark.

import { el, hideTip } from "./dom.js";
import { loadContent } from "./data.js";
import { forgetAddress, readAddress } from "./address.js";
import { curvesView } from "./curves.js";
import { overviewView } from "./overview.js";
import { studyView } from "./study.js";
import { Theatre } from "./theatre.js";

const VIEWS = ["overview", "theatre", "curves", "study"];

function keepTheme() {
  const asked = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => document.documentElement.dataset.theme ?? (asked.matches ? "dark" : "light");
  const change = () => (document.documentElement.dataset.theme = chosen() === "dark" ? "light" : "dark");
  document.getElementById("theme").addEventListener("click", change);
  document.addEventListener("keydown", (event) => {
    if (event.key === "t" && !event.ctrlKey && !event.metaKey && !event.altKey && !typing(event)) change();
  });
}

function typing(event) {
  return event.target instanceof HTMLElement && event.target.closest("input[type=text], textarea, select");
}

function show(content, theatre) {
  const { view, query } = readAddress();
  const known = VIEWS.includes(view) ? view : firstView(content);
  forgetAddress();
  hideTip();
  theatre.stop();
  document.body.dataset.view = known;
  for (const link of document.querySelectorAll(".views a")) {
    if (link.dataset.view === known) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const main = document.getElementById("main");
  const within = main.contains(document.activeElement); // of what is replaced
  const views = { overview: overviewView, curves: curvesView, study: studyView };
  main.replaceChildren(known === "theatre" ? theatre.view(query) : views[known](content, query));
  if (within) main.focus({ preventScroll: true });
  const wanted = known === "study" ? partOf(query) : null;
  if (wanted) document.querySelector(wanted)?.scrollIntoView({ block: "start" });
  else scrollTo(0, 0);
}

// A page about recorded runs only opens with the study.
function firstView(content) {
  return content.study && !content.stages.length ? "study" : "overview";
}

// What an address of the study is about: a part of the view, a claim, the ledger or the tables.
function partOf(query) {
  if (query.get("part")) return `#${CSS.escape(query.get("part"))}`;
  if (query.get("claim") || query.get("verdict")) return ".claim[open], #ledger";
  return query.get("weights") ? "#tables" : null;
}

// The part of the address after # names a view, so the link to the content must not change it.
function keepSkip() {
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
}

async function start() {
  keepTheme();
  keepSkip();
  try {
    const content = await loadContent();
    const theatre = new Theatre(content.stages, content.stories);
    document.querySelector('[data-view="study"]').hidden = !content.study;
    addEventListener("hashchange", () => show(content, theatre));
    show(content, theatre);
    document.body.dataset.ready = "yes";
  } catch (error) {
    const words = `This page's data cannot be unpacked (${error.message}). It needs a browser from 2024 or later.`;
    document.getElementById("main").replaceChildren(el("p", { class: "loading", text: words }));
    throw error;
  }
}

start();
