// Small helpers that every view uses: elements, requests, numbers and the visible form of tokens.

/** An element: el("button.primary", {onclick}, "Text", child, ...). Null children are left out. */
export function el(spec, attributes = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, v] of Object.entries(value)) node.style.setProperty(key, v);
    else if (name in node && !["list", "form", "role"].includes(name) && typeof value !== "string") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Replaces what an element holds; null children are left out, lists are flattened. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

const SVG = "http://www.w3.org/2000/svg";
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(name, value);
  node.append(...children.flat(Infinity).filter((child) => child !== null));
  return node;
}

/** What the server says is wrong with the input: `problem` has field, kind, message, hint, line, column, pointer. */
export class InputProblem extends Error {
  constructor(problem) {
    super(problem.message);
    this.problem = problem;
  }
}

const post = (name, body, signal) =>
  fetch(`api/${name}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal });

/** Asks one question. Throws InputProblem, or an Error that says why there is no answer. */
export async function ask(name, body = {}, signal = undefined) {
  const response = await post(name, body, signal);
  const answer = await response.json().catch(() => null);
  if (answer?.problem && !response.ok) throw new InputProblem(answer.problem);
  if (!response.ok || answer === null) throw new Error(`the server could not answer (status ${response.status})`);
  return answer;
}

/** Follows long work: calls `told` with each item. */
export async function follow(name, body, told, signal) {
  const response = await post(name, body, signal);
  if (!response.ok) {
    const answer = await response.json().catch(() => null);
    throw answer?.problem ? new InputProblem(answer.problem) : new Error(`the server could not answer (status ${response.status})`);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const item = JSON.parse(line);
      if (item.problem) throw new InputProblem(item.problem);
      told(item);
    }
  }
}

export const isAbort = (error) => error?.name === "AbortError";

export function percent(share) {
  if (share === null || share === undefined) return "–";
  if (share === 0) return "0 %";
  const value = 100 * share;
  if (value < 0.01) return "<0.01 %";
  return `${value >= 99.995 ? 100 : value >= 10 ? value.toFixed(1) : value.toFixed(2)} %`;
}
export const bits = (value) => `${value.toFixed(2)} bits`;
export const count = (value) => value.toLocaleString("en");

/** A token's text with its white space made visible, as nodes. */
export function visible(text) {
  const nodes = [];
  let plain = "";
  const flush = () => { if (plain) nodes.push(plain); plain = ""; };
  for (const character of text) {
    const mark = { " ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍" }[character];
    if (mark) { flush(); nodes.push(el("span.ws", {}, mark)); } else plain += character;
  }
  flush();
  return nodes.length ? nodes : ["∅"];
}
export const visibleText = (text) => text.replaceAll(" ", "·").replaceAll("\n", "⏎").replaceAll("\t", "⇥");

export function barCell(share, kind = "", most = 1) {
  return el(`div.bar-cell${kind ? `.${kind}` : ""}`, {}, el("i", { style: { "--v": most > 0 ? share / most : 0 } }), el("span", {}, percent(share)));
}

export function metric(name, value, detail = null) {
  return el("div.metric", {}, el("dt", {}, name), el("dd", {}, value, detail ? el("small", {}, ` ${detail}`) : null));
}

export function debounce(work, milliseconds) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
}

let toastTimer;
export function toast(message) {
  const node = document.getElementById("toast");
  node.textContent = message;
  node.classList.add("on");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => node.classList.remove("on"), 2600);
}

/** A problem as an alert; `goTo` is offered where the place in a text is known. */
export function problemBox(problem, goTo = null) {
  const place = problem.line ? `line ${problem.line}, column ${problem.column}` : problem.column ? `column ${problem.column}` : null;
  const where = [problem.pointer !== null && problem.pointer !== undefined ? `at ${problem.pointer || "(root)"}` : null, place].filter(Boolean).join(", ");
  return el("div.problem", { role: "alert" },
    el("b", {}, problem.kind), where ? ` ${where}: ` : ": ", problem.message,
    problem.hint ? el("div", {}, `→ ${problem.hint}`) : null,
    goTo && place ? el("div", {}, el("button.link", { type: "button", onclick: goTo }, "Show the place")) : null);
}

export function labelled(text, control) {
  return el("label", {}, text, control);
}

export function choice(options, value, onchange) {
  const select = el("select", { onchange: () => onchange(select.value) },
    options.map(([key, title]) => el("option", { value: key, selected: key === value }, title)));
  select.value = value;
  return select;
}

export function slider(title, value, { min, max, step, off = null, shown = (v) => v }, oninput) {
  const told = el("output", {}, off !== null && value === off ? "off" : String(shown(value)));
  const input = el("input", { type: "range", min: String(min), max: String(max), step: String(step), "aria-label": title,
    oninput: () => {
      const now = Number(input.value);
      told.textContent = off !== null && now === off ? "off" : String(shown(now));
      oninput(now);
    } });
  input.value = value;
  return el("div.field.slider", {}, el("span", {}, title), told, input);
}
