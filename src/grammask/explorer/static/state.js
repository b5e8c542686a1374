// The whole state of the page, which the address bar mirrors: a link shows the same view to someone else.

const DEFAULTS = {
  prompt: "", chat: true, kind: "json_schema", text: "", order: "schema", ws: "flexible", tool: "hermes",
  temperature: 0, top_k: 0, top_p: 1, min_p: 0, seed: 0, path: [], at: null, free: false,
  source: "open", k_temperature: 0.8, k_top_k: 0, k_top_p: 0.9, k_min_p: 0, k_typical: 1, k_sigma: 0,
  presence: 0, frequency: 0, repetition: 1, stages: [],
  prefix: "", depth: 3, blanks: false,
  sample: "", tokenizers: [], samples: 2, shuffle: 0, judged: true,
  output: "", instance: 0,
  experiment: "batching", steps: 12,
};

export const CONSTRAINT = ["kind", "text", "order", "ws", "tool"];
export const KNOBS = ["k_temperature", "k_top_k", "k_top_p", "k_min_p", "k_typical", "k_sigma", "presence", "frequency", "repetition", "stages"];

export const KEYS = {
  step: ["prompt", "chat", ...CONSTRAINT, "temperature", "top_k", "top_p", "min_p", "seed", "path", "at", "free"],
  knobs: ["source", ...KNOBS, "prompt", "chat", ...CONSTRAINT, "path", "at"],
  automaton: [...CONSTRAINT, "prefix", "depth", "blanks"],
  tokens: ["sample", "tokenizers", "samples", "shuffle", "judged", ...CONSTRAINT],
  doctor: [...CONSTRAINT, "output", "instance"],
  determinism: ["experiment", "steps", "seed"],
};

export const state = structuredClone(DEFAULTS);

/** Reads the address: "#step?prompt=...". Returns the view's name. */
export function readAddress() {
  const [view, query = ""] = location.hash.replace(/^#/, "").split(/\?(.*)/s);
  for (const [key, written] of new URLSearchParams(query)) {
    if (!(key in DEFAULTS)) continue;
    try { state[key] = typeof DEFAULTS[key] === "string" ? written : JSON.parse(written); } catch { /* a broken link keeps the default */ }
  }
  return view in KEYS ? view : "step";
}

export function address(view) {
  const query = new URLSearchParams();
  for (const key of KEYS[view]) {
    if (JSON.stringify(state[key]) === JSON.stringify(DEFAULTS[key])) continue;
    query.set(key, typeof state[key] === "string" ? state[key] : JSON.stringify(state[key]));
  }
  const text = query.toString();
  return `#${view}${text ? `?${text}` : ""}`;
}

let timer;
/** Mirrors the state into the address, soon. */
export function remember(view) {
  clearTimeout(timer);
  timer = setTimeout(() => history.replaceState(null, "", address(view)), 150);
}

export const constraintOf = () => ({ kind: state.kind, text: state.text, property_order: state.order, whitespace: state.ws, tool_format: state.tool });
export const samplingOf = () => ({
  temperature: state.temperature, top_k: state.top_k || null, top_p: state.top_p < 1 ? state.top_p : null, min_p: state.min_p > 0 ? state.min_p : null,
});
export const positionOf = (path = state.path) => ({
  prompt: state.prompt, chat: state.chat, constraint: constraintOf(), sampling: samplingOf(), seed: state.seed, path,
});
