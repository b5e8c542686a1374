// The step view: an output as chips, and at one step the model's distribution beside the masked one.

import { ask, barCell, bits, count, el, fill, follow, InputProblem, isAbort, labelled, metric, percent, problemBox, slider, toast, visible, visibleText } from "./lib.js";
import { constraintEditor } from "./constraint.js";
import { positionOf, remember, state } from "./state.js";

export const title = "Step";

export function mount(inputs, main, info) {
  let chips = [];        // of the constrained output, one per token of state.path
  let free = [];         // of the free continuation
  let ending = null;
  let freeEnding = null;
  let detail = null;
  let running = null;    // AbortController
  let stepping = false;  // single steps are under way
  let waiting = 0;       // further ones that were asked for meanwhile
  const undoStack = [];

  const note = el("div");
  const remembered = () => remember("step");

  // -- inputs

  const prompt = el("textarea.prose", { id: "prompt", rows: 3 });
  const setPrompt = () => { prompt.value = state.prompt; };
  setPrompt();
  prompt.addEventListener("input", () => { state.prompt = prompt.value; restart(false); });
  const editor = constraintEditor(info, {
    onexample: () => { setPrompt(); restart(false); },
    changed: (works) => {
      if (works === null) restart(false);
      else if (works) inspectSoon();
    },
  });
  const chat = el("input", { type: "checkbox", checked: state.chat, onchange: () => { state.chat = chat.checked; restart(false); inspectSoon(); } });
  const compare = el("input", { type: "checkbox", id: "compare", checked: state.free, onchange: () => { state.free = compare.checked; remembered(); draw(); if (state.free && !free.length) runFree(); } });
  const seed = el("input", { type: "number", min: "0", step: "1", value: String(state.seed), onchange: () => { state.seed = Math.max(0, Math.floor(Number(seed.value) || 0)); remembered(); } });
  const buttons = {
    step: el("button", { type: "button", onclick: () => advance(1) }, "Step"),
    run: el("button.primary", { type: "button", onclick: () => advance(160) }, "Run"),
    stop: el("button", { type: "button", onclick: () => stop() }, "Stop"),
    undo: el("button", { type: "button", onclick: () => undo() }, "Undo"),
    restart: el("button", { type: "button", onclick: () => { restart(true); inspectSoon(); } }, "Restart"),
  };
  const knob = (name, titleText, options) => slider(titleText, state[name], options, (value) => { state[name] = value; remembered(); inspectSoon(); });
  fill(inputs,
    el("div.card", {},
      labelled("Prompt", prompt),
      el("label.check", {}, chat, "as a message in a chat"),
      el("div.row", { role: "group", "aria-label": "Generation" }, buttons.run, buttons.step, buttons.undo, buttons.restart, buttons.stop),
      el("label.check", {}, compare, "free continuation side by side"),
    ),
    el("div.card", {}, editor.node),
    el("div.card", {}, el("fieldset", {}, el("legend", {}, "Sampling"),
      knob("temperature", "Temperature", { min: 0, max: 2, step: 0.05, shown: (v) => (v === 0 ? "0 (greedy)" : v.toFixed(2)) }),
      knob("top_k", "Top-k", { min: 0, max: 100, step: 1, off: 0 }),
      knob("top_p", "Top-p", { min: 0.01, max: 1, step: 0.01, off: 1, shown: (v) => v.toFixed(2) }),
      knob("min_p", "Min-p", { min: 0, max: 0.5, step: 0.01, off: 0, shown: (v) => v.toFixed(2) }),
      labelled("Seed", seed))),
  );

  // -- what happens

  function fail(error) {
    if (isAbort(error)) return;
    if (!(error instanceof InputProblem)) { fill(note, problemBox({ kind: "no answer", message: error.message })); return; }
    if (error.problem.field === "constraint") editor.show(error.problem);
    fill(note, problemBox(error.problem));
  }
  function stop() { running?.abort(); running = null; waiting = 0; draw(); }
  function restart(keepUndo) {
    stop();
    if (keepUndo && state.path.length) undoStack.push([...state.path]);
    state.path = []; state.at = null; chips = []; ending = null; free = []; freeEnding = null; detail = null;
    fill(note);
    remembered();
    draw();
  }
  async function advance(steps) {
    if (stepping && steps === 1) { waiting += 1; return; }
    stop();
    if (ending?.end === "stop" && state.at === null) { toast("The output is complete. Undo, or pick another token to branch."); return; }
    if (state.at !== null) { state.path = state.path.slice(0, state.at + 1); chips = chips.slice(0, state.at + 1); state.at = null; ending = null; }
    if (steps > 1) undoStack.push([...state.path]);
    stepping = steps === 1;
    await generate(steps);
    while (waiting > 0 && ending?.end !== "stop") { waiting -= 1; await generate(1); }
    stepping = false;
    waiting = 0;
    if (state.free && steps > 1 && ending?.end !== "cancelled") await runFree();
  }
  async function generate(steps) {
    const control = running = new AbortController();
    const known = chips.length;
    fill(note);
    draw();
    try {
      await follow("run", { ...positionOf(), steps, known }, (item) => {
        if (item.chip) {
          chips.push(item.chip);
          if (chips.length > state.path.length) state.path.push(item.chip.id);
          drawOutputs();
        } else ending = item;
      }, control.signal);
    } catch (error) { fail(error); }
    if (running === control) running = null;
    remembered();
    draw();
    await inspect();
  }
  async function runFree() {
    stop();
    const control = running = new AbortController();
    free = []; freeEnding = null;
    draw();
    try {
      const wanted = { ...positionOf([]), constraint: { kind: "none" }, steps: Math.min(160, (state.path.length || 40) + 16) };
      await follow("run", wanted, (item) => {
        if (item.chip) { free.push(item.chip); drawOutputs(); } else freeEnding = item;
      }, control.signal);
    } catch (error) { fail(error); }
    if (running === control) running = null;
    draw();
  }
  let inspecting = 0;
  async function inspect() {
    const turn = ++inspecting;
    const path = state.at === null ? state.path : state.path.slice(0, state.at);
    try {
      const answer = await ask("inspect", positionOf(path));
      if (turn !== inspecting) return;
      detail = answer;
      drawDetail();
    } catch (error) { if (turn === inspecting) { detail = null; drawDetail(); fail(error); } }
  }
  const inspectSoon = () => { clearTimeout(inspect.timer); inspect.timer = setTimeout(inspect, 120); };
  function undo() {
    stop();
    if (!state.path.length && !undoStack.length) { toast("There is nothing to undo."); return; }
    state.path = undoStack.length ? undoStack.pop() : state.path.slice(0, -1);
    chips = sameBeginning(chips, state.path);
    state.at = null; ending = null;
    remembered();
    generate(0);
  }
  function sameBeginning(list, path) {
    let length = 0;
    while (length < list.length && length < path.length && list[length].id === path[length]) length++;
    return list.slice(0, length);
  }
  function branch(candidate) {
    stop();
    undoStack.push([...state.path]);
    const at = state.at ?? state.path.length;
    state.path = [...state.path.slice(0, at), candidate.id];
    chips = chips.slice(0, at);
    state.at = null; ending = null;
    generate(0);
  }
  function choose(index) {
    state.at = index === state.path.length ? null : index;
    remembered();
    drawOutputs();
    inspect();
  }
  function move(by) {
    const at = (state.at ?? state.path.length) + by;
    if (at < 0 || at > state.path.length) return;
    choose(at);
  }

  // -- what is seen

  const outputs = el("section.card", { id: "outputs", "aria-label": "Outputs" });
  const details = el("section.card", { id: "details", "aria-label": "One step" });
  fill(main, note, outputs, details);

  function chipNode(chip, index, pressed, onclick) {
    const tip = `token ${chip.id}${chip.forced ? ", certain" : ""}\nmodel: ${percent(chip.raw)}\nunder the constraint: ${percent(chip.masked)}\nmass kept: ${percent(chip.kept)}\nallowed tokens: ${count(chip.allowed)}`;
    return el(`button.chip${chip.forced ? ".forced" : ""}${chip.special ? ".special" : ""}`, {
      type: "button", title: tip, style: { "--p": chip.raw }, "aria-pressed": String(pressed), onclick,
      "aria-label": `${visibleText(chip.text)}, ${chip.forced ? "forced" : percent(chip.raw)}`,
    }, visible(chip.text));
  }
  function strip(list, selectable) {
    const nodes = [];
    list.forEach((chip, index) => {
      nodes.push(chipNode(chip, index, selectable && state.at === index, selectable ? () => choose(index) : null));
      if (chip.text.includes("\n")) nodes.push(el("span.break", {}));
    });
    if (selectable) nodes.push(el("button.chip.special", { type: "button", "aria-pressed": String(state.at === null), title: "the next token", "aria-label": "the next token", onclick: () => choose(state.path.length) }, ending?.end === "stop" ? "■" : "…"));
    return el("div.chips", { role: "group" }, nodes);
  }
  function said(end) {
    if (!end) return null;
    const words = { stop: "complete", steps: "goes on", context: "the model's context is full", cancelled: "stopped" }[end.end];
    return el(`span.badge${end.complete ? ".good" : ""}`, {}, end.end === "stop" && !end.complete ? "ended" : words);
  }
  function summary(list) {
    const drawn = list.filter((chip) => !chip.forced);
    const kept = list.reduce((product, chip) => product * chip.kept, 1);
    return `${list.length} tokens, ${list.length - drawn.length} forced; the model would have stayed inside by itself with ${percent(kept)}`;
  }
  function drawOutputs() {
    const constrained = el("div.card-part", {}, el("h3", {}, "Under the constraint ", running ? el("span.badge", {}, "running") : said(ending)), strip(chips, true), el("p.soft.small", {}, chips.length ? summary(chips) : "Press Run (R) to generate, or Step (S) for one token."));
    const beside = state.free ? el("div.card-part", {}, el("h3", {}, "Free continuation ", said(freeEnding)), free.length ? strip(free, false) : el("p.soft.small", {}, "Runs after the constrained output."), free.length ? el("p.soft.small", {}, `${free.length} tokens of what the model writes without a constraint`) : null) : null;
    fill(outputs,
      el("header", {}, el("h2", {}, "Output"), el("div.legend", {}, el("span", {}, "model's probability 0 ", el("i", {}), " 1"), el("span", {}, el("span.chip.forced", {}, "a"), " forced: nothing else was possible"))),
      el("div.columns", {}, constrained, beside),
    );
  }
  function drawDetail() {
    if (!detail) { fill(details, el("p.empty", {}, "No distribution yet.")); return; }
    const at = state.at ?? state.path.length;
    if (detail.ended) {
      fill(details, el("header", {}, el("h2", {}, `After ${at} tokens`), el("p", {}, "The output is complete: nothing but the end can follow.")), el("pre.marked", {}, detail.text));
      return;
    }
    const chosen = state.at === null ? null : state.path[state.at];
    const most = Math.max(...detail.candidates.map((one) => Math.max(one.raw, one.masked)), 1e-9);
    const plain = state.kind === "none";
    fill(details,
      el("header", {}, el("h2", {}, `Step ${at + 1}`), el("p", {}, detail.pointer !== null ? `at ${detail.pointer || "(root)"}: ` : "", plain ? "anything may follow" : `${detail.expected} is expected`)),
      el("dl.metrics", {},
        metric("Mass kept", percent(detail.kept), "of the model's probability"),
        metric("Allowed", count(detail.allowed), `of ${count(detail.vocabulary)}`),
        metric("Entropy", bits(detail.entropy), `→ ${bits(detail.entropy_masked)}`),
        metric("Can be drawn", count(detail.drawable), "after all settings"),
        detail.forced.length ? metric("Forced", el("span.mono", {}, detail.forced.map((token) => visibleText(token.text)).join("")), "certain to come") : null,
        metric("May end here", detail.complete ? "yes" : "no")),
      el("div.scroll", {}, el("table.distribution", {},
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Token"), el("th", { scope: "col" }, "What the model wanted"), el("th", { scope: "col" }, "What is left, renormalized; or why it is out"))),
        el("tbody", {}, detail.candidates.map((one) => el(`tr${one.allowed ? "" : ".out"}${one.id === chosen ? ".chosen" : ""}`, {},
          el("td", {}, one.allowed
            ? el("button.token", { type: "button", title: `token ${one.id}: go on with it`, "aria-label": `branch with ${visibleText(one.text)}`, onclick: () => branch(one) }, visible(one.text))
            : el("s.token", { title: `token ${one.id}` }, visible(one.text))),
          el("td", {}, barCell(one.raw, one.allowed ? "" : "gone", most)),
          el("td", {}, one.allowed ? barCell(one.masked, "kept", most) : el("span.why", {}, one.why))))))),
      el("p.soft.small", {}, "Pick a token to branch there. Ties and settings are those of the left column; bars share one scale."),
    );
  }
  function draw() {
    const busy = running !== null;
    buttons.stop.disabled = !busy;
    buttons.undo.disabled = !state.path.length && !undoStack.length;
    buttons.restart.disabled = !state.path.length;
    drawOutputs();
    drawDetail();
  }

  draw();
  editor.check();
  if (state.path.length) generate(0);
  return {
    keys: { s: () => advance(1), r: () => advance(160), u: undo, Escape: stop, ArrowLeft: () => move(-1), ArrowRight: () => move(1), "Ctrl+Enter": () => advance(160) },
    leave: stop,
    data: () => ({ request: positionOf(), chips, free, step: detail }),
  };
}
