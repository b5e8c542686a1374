// The page: which view is shown, the model's state, links, exports and keys.

import { ask, el, fill, InputProblem, problemBox, toast } from "./lib.js";
import { saveJson, savePng } from "./export.js";
import { address, readAddress, state } from "./state.js";
import * as step from "./view_step.js";
import * as knobs from "./view_knobs.js";
import * as automaton from "./view_automaton.js";
import * as tokens from "./view_tokens.js";
import * as doctor from "./view_doctor.js";
import * as determinism from "./view_determinism.js";

const VIEWS = { step, knobs, automaton, tokens, doctor, determinism };
const inputs = document.getElementById("inputs");
const main = document.getElementById("main");
const badge = document.getElementById("model");
let info = null;
let name = null;
let view = null;

function show(next) {
  if (view) view.leave();
  name = next;
  document.title = `${VIEWS[name].title} · grammask explorer`;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  fill(inputs);
  fill(main);
  view = VIEWS[name].mount(inputs, main, info);
  history.replaceState(null, "", address(name));
}

function go(next) {
  history.pushState(null, "", address(next));
  show(next);
  window.scrollTo(0, 0);
}

async function loadModel() {
  badge.textContent = `${info.model} …`;
  badge.className = "badge warn";
  badge.title = "loading the model";
  try {
    const answer = await ask("ready");
    badge.textContent = info.model;
    badge.className = "badge good";
    badge.title = `${answer.model}: ${answer.vocabulary.toLocaleString("en")} tokens`;
  } catch (error) {
    badge.textContent = `${info.model}: not loaded`;
    badge.className = "badge bad";
    badge.title = error.message;
    if (error instanceof InputProblem) main.prepend(problemBox(error.problem));
  }
}

document.getElementById("share").addEventListener("click", async () => {
  history.replaceState(null, "", address(name));
  try {
    await navigator.clipboard.writeText(location.href);
    toast("The link to this view is in the clipboard.");
  } catch {
    toast("The address bar holds the link to this view.");
  }
});
document.getElementById("export-json").addEventListener("click", () => saveJson(name, { view: name, model: info.model, grammask: info.version, link: location.href, ...wrap(view.data()) }));
document.getElementById("export-png").addEventListener("click", () => savePng(name, main).catch((error) => toast(error.message)));
const wrap = (data) => (data && typeof data === "object" ? data : { result: data });
document.getElementById("theme").addEventListener("click", () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try { localStorage.setItem("grammask-theme", next); } catch { /* then it lasts as long as the page */ }
});
const shortcuts = document.getElementById("shortcuts");
document.getElementById("help").addEventListener("click", () => shortcuts.showModal());

document.addEventListener("keydown", (event) => {
  if (event.altKey && event.key >= "1" && event.key <= "6") {
    event.preventDefault();
    go(Object.keys(VIEWS)[Number(event.key) - 1]);
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
    event.preventDefault();
    view?.keys["Ctrl+Enter"]?.();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || shortcuts.open) return;
  if (event.key === "Escape") { view?.keys.Escape?.(); return; }
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (event.key === "?") { shortcuts.showModal(); return; }
  const action = view?.keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (action) { event.preventDefault(); action(); }
});
window.addEventListener("popstate", () => show(readAddress()));
window.addEventListener("hashchange", () => { if (location.hash !== address(name)) show(readAddress()); });

async function begin() {
  try {
    info = await ask("state");
  } catch (error) {
    fill(main, problemBox({ kind: "no answer", message: `${error.message}. Is “grammask explore” still running?` }));
    return;
  }
  const first = info.examples[0];
  Object.assign(state, { prompt: first.prompt, kind: first.kind, text: first.text, output: first.output, sample: first.output, prefix: first.prefix });
  fill(document.getElementById("views"), ...Object.entries(VIEWS).map(([key, module], index) =>
    el("a", { href: `#${key}`, "data-view": key, title: `Alt+${index + 1}`, onclick: (event) => { event.preventDefault(); go(key); } }, module.title)));
  loadModel();
  show(readAddress());
}
begin();
