// The automaton view: where the constraint stands after a text, its open frames, and the states around.

import { ask, count, debounce, el, fill, InputProblem, metric, problemBox, slider, svg, visibleText } from "./lib.js";
import { constraintEditor } from "./constraint.js";
import { constraintOf, remember, state } from "./state.js";

export const title = "Automaton";

export function mount(inputs, main, info) {
  let shown = null;
  let turn = 0;
  const note = el("div");
  const place = el("section.card", { "aria-label": "Place" });
  const frames = el("section.card", { "aria-label": "Frames" });
  const picture = el("section.card", { "aria-label": "Local automaton" });
  fill(main, note, place, picture, frames);

  const request = () => ({ constraint: constraintOf(), text: state.prefix, depth: state.depth, blanks: state.blanks });
  const update = debounce(async () => {
    const mine = ++turn;
    remember("automaton");
    try {
      const answer = await ask("automaton", request());
      if (mine === turn) { shown = answer; fill(note); draw(); }
    } catch (error) {
      if (mine !== turn) return;
      if (error instanceof InputProblem && error.problem.field === "constraint") editor.show(error.problem);
      else fill(note, problemBox(error instanceof InputProblem ? error.problem : { kind: "no answer", message: error.message }));
    }
  }, 120);

  const prefix = el("textarea", { id: "prefix", rows: 4, spellcheck: "false" });
  prefix.value = state.prefix;
  prefix.addEventListener("input", () => { state.prefix = prefix.value; update(); });
  const blanks = el("input", { type: "checkbox", checked: state.blanks, onchange: () => { state.blanks = blanks.checked; update(); } });
  const editor = constraintEditor(info, { onexample: () => { prefix.value = state.prefix; }, changed: (works) => { if (works) update(); } });
  fill(inputs,
    el("div.card", {}, el("label", {}, "Text so far", prefix),
      el("div.row", {}, el("button", { type: "button", onclick: () => { state.prefix = prefix.value = prefix.value.slice(0, -1); update(); } }, "Back"), el("button", { type: "button", onclick: takeForced }, "Take what is certain")),
      slider("Steps shown", state.depth, { min: 1, max: 6, step: 1 }, (value) => { state.depth = value; update(); }),
      el("label.check", {}, blanks, "follow white space everywhere")),
    el("div.card", {}, editor.node),
  );
  function takeForced() {
    if (shown?.certain) { state.prefix = prefix.value = shown.text + shown.certain; update(); }
  }

  function draw() {
    const heights = shown.heights;
    fill(place,
      el("header", {}, el("h2", {}, "Where it stands"), el("p", {}, `${shown.expected} is expected`)),
      el("pre.marked", { "aria-label": "text so far" }, el("span.ok", {}, shown.text), shown.rest ? el("mark", { title: "cannot stand here" }, shown.rest) : null, el("span", { "aria-hidden": "true" }, "▏")),
      shown.rest ? el("p.small", {}, "The part that is marked cannot stand there: ", el("b", {}, shown.expected), " is expected.") : null,
      el("dl.metrics", {},
        shown.pointer !== null ? metric("JSON pointer", shown.pointer || "(root)") : null,
        shown.schema_pointers.length ? metric("Schema", shown.schema_pointers.slice(0, 3).join(", ")) : null,
        shown.rules.length ? metric("Rules", shown.rules[0].names.join(" › ") || "the start", shown.rules.length > 1 ? `and ${shown.rules.length - 1} other ways` : undefined) : null,
        metric("Frames open", count(shown.frames.length)),
        metric("Next bytes", count(shown.next.count), "of 256"),
        shown.forced ? metric("Certain next", el("span.mono", {}, shown.forced)) : null,
        metric("May end here", shown.complete ? "yes" : "no")),
      el("div.columns", {}, el("div", {}, el("h3", {}, "Bytes that may come next"), el("p.soft.small", {}, shown.next.words || "none: only the end of the text"), byteMap()), heights.length ? el("div", {}, el("h3", {}, "The stack along the text"), heightChart(heights)) : null),
    );
    fill(frames,
      el("header", {}, el("h2", {}, "The stack"), el("p", {}, "What remains to be matched in each open frame, the outermost first. The cursor is in the last.")),
      el("ol.frames", {}, shown.frames.map((frame, index) => el("li", { style: { "--depth": Math.min(index, 8) } }, frame.text, frame.length > frame.text.length ? el("span.soft", {}, ` (${count(frame.length)} characters)`) : null))),
    );
    const { nodes, cut, blanks_left_out: left } = shown.graph;
    fill(picture,
      el("header", {}, el("h2", {}, "The automaton from here"), el("p", {}, `${nodes.length} states${cut ? ", more are not shown" : ""}${left ? "; optional white space is left out" : ""}. A double ring may end; runs without a choice are one step.`)),
      el("div.graph", { tabindex: "0", role: "group", "aria-label": "graph of states; scrolls" }, graphPicture(shown.graph)),
    );
  }
  function byteMap() {
    const on = new Set(shown.next.bytes);
    return el("div.bytes", { role: "img", "aria-label": `the bytes that may come next: ${shown.next.words || "none"}` }, Array.from({ length: 256 }, (_, byte) =>
      el(`span${on.has(byte) ? ".on" : ""}`, { title: `0x${byte.toString(16).padStart(2, "0")}` }, byte > 32 && byte < 127 ? String.fromCharCode(byte) : byte === 32 ? "␣" : byte === 10 ? "⏎" : byte === 9 ? "⇥" : "")));
  }

  editor.check();
  update();
  return { keys: { "Ctrl+Enter": update }, leave: () => {}, data: () => ({ request: request(), result: shown }) };
}

function heightChart(heights) {
  const width = 520, height = 120, top = Math.max(...heights.map((one) => one.height), 1);
  const x = (index) => 26 + (index * (width - 34)) / Math.max(1, heights.length);
  const y = (value) => height - 22 - (value * (height - 36)) / top;
  let path = `M${x(0)},${y(0)}`;
  heights.forEach((one, index) => { path += `L${x(index)},${y(one.height)}L${x(index + 1)},${y(one.height)}`; });
  path += `L${x(heights.length)},${y(0)}Z`;
  const every = Math.ceil(heights.length / 40);
  return el("div.chart", {}, svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `frames open after each character, at most ${top}` },
    svg("path", { class: "area", d: path }),
    svg("text", { x: 4, y: y(top) + 4, class: "soft-text" }, String(top)), svg("text", { x: 4, y: y(0), class: "soft-text" }, "0"),
    heights.map((one, index) => (index % every ? null : svg("text", { x: x(index + 0.5), y: height - 6, "text-anchor": "middle", class: "soft-text" }, visibleText(one.text))))));
}

/** Layers from left to right; within a layer, states in the order in which they were found. */
function graphPicture({ nodes, edges }) {
  const columns = [];
  for (const node of nodes) (columns[node.layer] ??= []).push(node);
  const rows = Math.max(...columns.map((column) => column.length));
  const rowHeight = 58, columnWidth = 232, height = rows * rowHeight + 50, width = columns.length * columnWidth + 60;
  const at = new Map();
  columns.forEach((column, layer) => column.forEach((node, index) => at.set(node.id, { x: 46 + layer * columnWidth, y: (height * (index + 0.5)) / column.length })));
  const lines = edges.map(({ from, to }) => {
    const a = at.get(from), b = at.get(to);
    if (from === to) return `M${a.x - 9},${a.y - 13} C${a.x - 34},${a.y - 52} ${a.x + 34},${a.y - 52} ${a.x + 9},${a.y - 13}`;
    if (b.x > a.x) return `M${a.x + 16},${a.y} C${a.x + 90},${a.y} ${b.x - 90},${b.y} ${b.x - 18},${b.y}`;
    const bend = Math.max(40, Math.abs(b.y - a.y) / 2);
    return `M${a.x},${a.y + 15} C${a.x + 20},${a.y + bend + 20} ${b.x - 20},${b.y + bend + 20} ${b.x},${b.y + 17}`;
  });
  const spot = ({ from, to }) => {
    const a = at.get(from), b = at.get(to);
    if (from === to) return { x: a.x, y: a.y - 46, anchor: "middle" };
    if (b.x > a.x) return { x: b.x - 24, y: b.y - 6, anchor: "end" };
    return { x: (a.x + b.x) / 2, y: Math.max(a.y, b.y) + 34, anchor: "middle" };
  };
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `automaton of ${nodes.length} states and ${edges.length} transitions` },
    svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, svg("path", { d: "M0,0L8,4L0,8z", fill: "currentColor" }))),
    lines.map((line) => svg("path", { class: "edge", d: line, "marker-end": "url(#arrow)" })),
    nodes.map((node) => {
      const { x, y } = at.get(node.id);
      return svg("g", {}, svg("title", {}, `${node.label}; ${node.height} frames open`),
        node.complete ? svg("circle", { class: "node complete", cx: x, cy: y, r: 18 }) : null,
        svg("circle", { class: `node${node.id === 0 ? " here" : ""}${node.complete ? " complete" : ""}`, cx: x, cy: y, r: 14 }),
        svg("text", { x, y: y + 4, "text-anchor": "middle" }, String(node.id)),
        node.expanded ? null : svg("text", { x: x + 22, y: y + 4, class: "soft-text" }, node.label === "end" ? "end" : "…"));
    }),
    edges.map((edge) => { const { x, y, anchor } = spot(edge); return svg("text", { class: "edge-label", x, y, "text-anchor": anchor }, edge.label.length > 30 ? `${edge.label.slice(0, 29)}…` : edge.label); }),
  );
}
