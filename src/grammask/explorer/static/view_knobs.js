// The knobs: what each sampling setting does to one distribution, redrawn while a slider moves.

import { ask, barCell, bits, choice, count, debounce, el, fill, InputProblem, labelled, metric, percent, problemBox, slider, visible } from "./lib.js";
import { KNOBS, positionOf, remember, state } from "./state.js";

export const title = "Knobs";

export function mount(inputs, main, info) {
  const { stages: allStages, orders, examples } = info.knobs;
  let shown = null;
  let turn = 0;

  const settings = () => ({
    temperature: state.k_temperature,
    top_k: state.k_top_k || null,
    top_p: state.k_top_p < 1 ? state.k_top_p : null,
    min_p: state.k_min_p > 0 ? state.k_min_p : null,
    typical_p: state.k_typical < 1 ? state.k_typical : null,
    top_n_sigma: state.k_sigma > 0 ? state.k_sigma : null,
    presence_penalty: state.presence,
    frequency_penalty: state.frequency,
    repetition_penalty: state.repetition,
    penalize_structured: true,
    order: state.stages.length ? state.stages : null,
  });
  const request = () => {
    const path = state.at === null ? state.path : state.path.slice(0, state.at);
    return { source: state.source, sampling: settings(), ...(state.source === "model" ? { position: positionOf(path) } : {}) };
  };
  const update = debounce(async () => {
    const mine = ++turn;
    remember("knobs");
    try {
      const answer = await ask("knobs", request());
      if (mine === turn) { shown = answer; fill(note); draw(); }
    } catch (error) {
      if (mine === turn) fill(note, problemBox(error instanceof InputProblem ? error.problem : { kind: "no answer", message: error.message }));
    }
  }, 25);

  const note = el("div");
  const order = el("section.card", { "aria-label": "Order of stages" });
  const before = el("section.card", { "aria-label": "Distribution" });
  const temperatures = el("section.card", { "aria-label": "Four temperatures" });
  fill(main, note, order, before, temperatures);

  function drawInputs() {
    const knob = (name, text, options) => slider(text, state[name], options, (value) => { state[name] = value; update(); });
    const two = (v) => v.toFixed(2);
    const sources = [...Object.entries(examples).map(([name, example]) => [name, example.title]), ["model", "The model, at the step view's position"]];
    fill(inputs,
      el("div.card", {}, labelled("Distribution", choice(sources, state.source, (value) => { state.source = value; update(); })),
        el("p.soft.small", {}, "The first four are made up, to learn with. The last takes the model's logits where the step view stands, behind its constraint if it has one.")),
      el("div.card", {}, el("fieldset", {}, el("legend", {}, "Temperature and cuts"),
        knob("k_temperature", "Temperature", { min: 0, max: 2, step: 0.05, shown: (v) => (v === 0 ? "0 (greedy)" : two(v)) }),
        knob("k_top_k", "Top-k", { min: 0, max: 40, step: 1, off: 0 }),
        knob("k_top_p", "Top-p (nucleus)", { min: 0.01, max: 1, step: 0.01, off: 1, shown: two }),
        knob("k_min_p", "Min-p", { min: 0, max: 0.6, step: 0.01, off: 0, shown: two }),
        knob("k_typical", "Typical-p", { min: 0.05, max: 1, step: 0.01, off: 1, shown: two }),
        knob("k_sigma", "Top-nσ", { min: 0, max: 3, step: 0.05, off: 0, shown: two }))),
      el("div.card", {}, el("fieldset", {}, el("legend", {}, "Penalties"),
        knob("presence", "Presence", { min: -2, max: 4, step: 0.1, off: 0, shown: two }),
        knob("frequency", "Frequency", { min: -2, max: 4, step: 0.1, off: 0, shown: two }),
        knob("repetition", "Repetition", { min: 0.5, max: 2, step: 0.05, off: 1, shown: two }),
        el("button", { type: "button", onclick: () => { Object.assign(state, { k_temperature: 1, k_top_k: 0, k_top_p: 1, k_min_p: 0, k_typical: 1, k_sigma: 0, presence: 0, frequency: 0, repetition: 1, stages: [] }); drawInputs(); update(); } }, "All off"))),
    );
  }

  // -- the order of stages, by dragging or with the arrow keys

  function currentOrder() { return state.stages.length ? state.stages : shown?.order ?? orders.default; }
  function moveStage(from, to) {
    const stages = [...currentOrder()];
    if (to < 0 || to >= stages.length) return;
    stages.splice(to, 0, ...stages.splice(from, 1));
    state.stages = stages;
    update();
    drawOrder(stages[to]);
  }
  let dragged = null;
  function drawOrder(focus = null) {
    const stages = currentOrder();
    const active = new Set(shown?.active ?? []);
    const preset = Object.entries(orders).find(([, list]) => JSON.stringify(list) === JSON.stringify(stages))?.[0] ?? "";
    const list = el("ol.stages", { id: "stages" }, stages.map((stage, index) => el("li", {}, el(`button.stage${active.has(stage) ? ".on" : ".off"}`, {
      type: "button", draggable: "true", "data-stage": stage, title: active.has(stage) ? "acts with these settings" : "off with these settings",
      "aria-label": `${stage}, stage ${index + 1} of ${stages.length}, ${active.has(stage) ? "on" : "off"}; arrow keys move it`,
      onkeydown: (event) => {
        if (event.key === "ArrowLeft" || event.key === "ArrowRight") { event.preventDefault(); event.stopPropagation(); moveStage(index, index + (event.key === "ArrowLeft" ? -1 : 1)); }
      },
      ondragstart: (event) => { dragged = index; event.dataTransfer.effectAllowed = "move"; event.dataTransfer.setData("text/plain", stage); },
      ondragover: (event) => { event.preventDefault(); event.currentTarget.classList.add("over"); },
      ondragleave: (event) => event.currentTarget.classList.remove("over"),
      ondrop: (event) => { event.preventDefault(); if (dragged !== null) moveStage(dragged, index); dragged = null; },
    }, stage.replaceAll("_", " ")))), el("li", {}, el("span.badge", {}, "draw")));
    fill(order,
      el("header", {}, el("h2", {}, "Order of stages"), el("p", {}, "Drag a stage, or move it with the arrow keys: the same settings in another order are another distribution.")),
      list,
      el("div.row", {}, labelled("As in", choice([["", "an order of your own"], ...Object.keys(orders).map((name) => [name, name])], preset, (name) => { if (name) { state.stages = name === "default" ? [] : orders[name]; update(); } }))),
    );
    if (focus) list.querySelector(`[data-stage="${focus}"]`)?.focus();
  }

  function removedBy(token) {
    const at = token.shares.findIndex((share, index) => index > 0 && share === 0 && token.shares[index - 1] > 0);
    return at < 0 ? null : shown.stages[at].stage;
  }
  function draw() {
    const focused = document.activeElement?.dataset?.stage ?? null;
    drawOrder(focused);
    const last = shown.stages.length - 1;
    const most = Math.max(...shown.tokens.map((token) => Math.max(token.shares[0], token.shares[last])));
    const final = shown.stages[last];
    fill(before,
      el("header", {}, el("h2", {}, "The distribution"), el("p.mono", {}, `${shown.context.slice(-90)} ▁`)),
      el("dl.metrics", {}, metric("Survivors", count(shown.survivors), `of ${count(shown.vocabulary)}`), metric("Entropy", bits(shown.stages[0].entropy), `→ ${bits(final.entropy)}`), metric("Best token", percent(Math.max(...shown.tokens.map((token) => token.shares[last]))))),
      el("div.columns", {},
        el("div.scroll", {}, el("table.distribution", {}, el("thead", {}, el("tr", {}, ["Token", "Model", "Drawn from"].map((name) => el("th", { scope: "col" }, name)))),
          el("tbody", {}, shown.tokens.map((token) => {
            const gone = token.shares[last] === 0;
            return el(`tr${gone ? ".out" : ""}`, {}, el("td", {}, el("span.token", { title: `logit ${token.logit.toFixed(2)}` }, visible(token.text))), el("td", {}, barCell(token.shares[0], gone ? "gone" : "", most)),
              el("td", {}, gone ? el("span.why", {}, removedBy(token) ? `cut by ${removedBy(token).replaceAll("_", " ")}` : "out") : barCell(token.shares[last], "kept", most)));
          })))),
        el("div.scroll", {}, el("h3", {}, "Stage by stage"), el("table", {}, el("thead", {}, el("tr", {}, ["Stage", "Setting", "Survivors", "Mass kept", "Entropy"].map((name, i) => el(i > 1 ? "th.number" : "th", { scope: "col" }, name)))),
          el("tbody", {}, shown.stages.map((stage) => el("tr", {}, el("td", {}, stage.stage.replaceAll("_", " ")), el("td", {}, stage.setting), el("td.number", {}, count(stage.survivors)), el("td.number", {}, percent(stage.kept)), el("td.number", {}, bits(stage.entropy)))))))),
    );
    const top = shown.tokens.slice(0, 12);
    const highest = Math.max(...shown.temperatures.flatMap((one) => one.shares));
    fill(temperatures,
      el("header", {}, el("h2", {}, "Four temperatures"), el("p", {}, "The same settings otherwise, all on one scale.")),
      el("div.four", {}, shown.temperatures.map((one) => el("div", {}, el("h3", {}, `T = ${one.temperature}`), el("p.soft.small", {}, `${count(one.survivors)} survivors, ${bits(one.entropy)}`),
        el("div.mini", {}, top.map((token, index) => el(`div${one.shares[index] === 0 ? ".zero" : ""}`, { title: percent(one.shares[index]) }, el("span", {}, visible(token.text)), el("i", { style: { "--v": one.shares[index] / highest } }))))))),
    );
  }

  drawInputs();
  drawOrder();
  update();
  return { keys: {}, leave: () => {}, data: () => ({ settings: Object.fromEntries(KNOBS.map((key) => [key, state[key]])), request: request(), result: shown }), allStages };
}
