// The determinism view: the lab's comparisons of logits, run here, with the step at which outputs part.

import { choice, el, fill, follow, InputProblem, isAbort, labelled, problemBox, slider, svg } from "./lib.js";
import { remember, state } from "./state.js";

export const title = "Determinism";

export function mount(inputs, main, info) {
  let running = null;
  let shown = null;
  const note = el("div");
  const progress = el("section.card", { "aria-label": "Progress", hidden: true });
  const results = el("div", { style: { display: "grid", gap: "1rem" } });
  fill(main, note, progress, results);
  const about = el("p.soft.small");
  const titles = Object.fromEntries(info.experiments.map((one) => [one.name, one.title]));
  const setAbout = () => { about.textContent = `Measures ${titles[state.experiment]}.`; };
  setAbout();
  const buttons = { run: el("button.primary", { type: "button", onclick: () => run() }, "Run"), stop: el("button", { type: "button", onclick: () => running?.abort(), disabled: true }, "Stop") };
  fill(inputs, el("div.card", {}, el("fieldset", {}, el("legend", {}, "Experiment"),
    labelled("What is changed", choice(info.experiments.map((one) => [one.name, one.name]), state.experiment, (value) => { state.experiment = value; setAbout(); remember("determinism"); })), about,
    slider("Decoding steps", state.steps, { min: 4, max: 48, step: 1 }, (value) => { state.steps = value; remember("determinism"); }),
    el("div.row", {}, buttons.run, buttons.stop))),
    el("div.card", {}, el("h2", {}, "What this shows"), el("p.small.soft", {}, "The same text is read again by another computation of the same model: in a batch, in fewer bits, by another kernel. Logits differ a little; what matters is whether the difference is larger than the gap between the two best tokens, for there greedy outputs part.")));

  async function run() {
    running?.abort();
    const control = running = new AbortController();
    buttons.run.disabled = true; buttons.stop.disabled = false;
    fill(note);
    const bar = el("progress", { "aria-label": "forward passes" });
    const said = el("p.soft.small", { role: "status" }, "starting …");
    fill(progress, el("h2", {}, `Running ${state.experiment}`), bar, said);
    progress.hidden = false;
    try {
      await follow("measure", { experiment: state.experiment, steps: state.steps, seed: state.seed }, (item) => {
        if (item.total) { bar.max = item.total; bar.value = item.done; said.textContent = `${item.done} of ${item.total} forward passes`; }
        if (item.result) { shown = item.result; draw(); }
      }, control.signal);
    } catch (error) {
      if (isAbort(error)) fill(note, el("p.soft", { role: "status" }, "Stopped."));
      else fill(note, problemBox(error instanceof InputProblem ? error.problem : { kind: "no answer", message: error.message }));
    }
    if (running === control) { running = null; progress.hidden = true; buttons.run.disabled = false; buttons.stop.disabled = true; }
  }
  function draw() {
    fill(results,
      el("section.card", { "aria-label": "Findings" }, el("header", {}, el("h2", {}, shown.title)), el("p.soft.small", {}, shown.method), el("ul.plain", {}, shown.findings.map((text) => el("li", {}, text)))),
      ...shown.plots.filter((plot) => plot.kind === "bar").map((plot) => el("section.card", { "aria-label": plot.title }, el("header", {}, el("h2", {}, plot.title), el("p", {}, plot.log_y ? `${plot.y_label}, logarithmic` : plot.y_label)), barChart(plot))),
      ...shown.tables.map((table) => el("section.card", { "aria-label": table.title }, el("header", {}, el("h2", {}, table.title)), el("div.scroll", {}, el("table", {},
        el("thead", {}, el("tr", {}, table.columns.map((name, index) => el(index ? "th.number" : "th", { scope: "col" }, name)))),
        el("tbody", {}, table.rows.map((row) => el("tr", {}, row.map((cell, index) => el(index ? "td.number" : "td", {}, cell))))))))),
      el("section.card", { "aria-label": "Set-up" }, el("details", {}, el("summary", {}, "Set-up"), el("dl.metrics", {}, Object.entries(shown.setup).map(([name, value]) => el("div.metric", {}, el("dt", {}, name), el("dd.small", {}, value)))))));
  }

  if (!shown) fill(results, el("section.card", {}, el("p.empty", {}, "Choose an experiment and run it. It takes some forward passes of the model; you can stop it at any time.")));
  return { keys: { "Ctrl+Enter": run, r: run, Escape: () => running?.abort() }, leave: () => running?.abort(), data: () => shown };
}

function barChart(plot) {
  // A series that is the same everywhere is a mark to compare with, not a bar for each.
  const level = (series) => series.y.length > 1 && series.y.every((value) => value === series.y[0]);
  const marks = plot.series.filter(level);
  const drawn = plot.series.filter((series) => !level(series));
  const bars = drawn.flatMap((series) => series.x.map((name, index) => ({ name: drawn.length > 1 ? `${name}: ${series.name}` : String(name), value: series.y[index] })));
  const values = [...bars.map((bar) => bar.value), ...marks.map((mark) => mark.y[0])];
  const positive = values.filter((value) => value > 0);
  const low = plot.log_y ? Math.floor(Math.log10(Math.min(...positive, 1))) - 0.3 : 0;
  const high = plot.log_y ? Math.log10(Math.max(...positive, 1e-12)) : Math.max(...values, 1e-12);
  const share = (value) => (value <= 0 ? 0 : plot.log_y ? (Math.log10(value) - low) / (high - low) : value / high);
  const rowHeight = 26, left = 210, width = 760, height = bars.length * rowHeight + 8;
  const x = (value) => left + Math.max(1, share(value) * (width - left - 110));
  return el("div.chart", {}, svg("svg", { viewBox: `0 0 ${width} ${height + 18 * marks.length}`, role: "img", "aria-label": bars.map((bar) => `${bar.name}: ${bar.value}`).join("; ") },
    bars.map((bar, index) => [
      svg("text", { x: left - 10, y: index * rowHeight + 19, "text-anchor": "end" }, bar.name),
      svg("rect", { class: "area", x: left, y: index * rowHeight + 6, width: x(bar.value) - left, height: 16, rx: 3 }),
      svg("text", { x: x(bar.value) + 8, y: index * rowHeight + 19, class: "soft-text" }, bar.value === 0 ? "0" : bar.value.toPrecision(2)),
    ]),
    marks.map((mark, index) => [
      svg("line", { class: "mark", x1: x(mark.y[0]), x2: x(mark.y[0]), y1: 2, y2: height }),
      svg("text", { x: x(mark.y[0]), y: height + 14 + 18 * index, "text-anchor": "middle", class: "soft-text" }, `${mark.name}: ${mark.y[0].toPrecision(2)}`),
    ])));
}
