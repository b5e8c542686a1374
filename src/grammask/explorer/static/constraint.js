// The constraint editor, which several views share: kind, text, options, and what is wrong with it, beside it.

import { ask, choice, debounce, el, fill, InputProblem, labelled, problemBox } from "./lib.js";
import { constraintOf, state } from "./state.js";

const TEXTS = {
  json_schema: "Schema", regex: "Pattern", choice: "Texts, one a line", gbnf: "Grammar", lark: "Grammar", tools: "Tools (a JSON list)",
};

/** The editor. `changed` is called when the constraint compiles, and with false while it does not. */
export function constraintEditor(info, { changed, kinds = null, withExamples = true, onexample = () => {}, legend = "Constraint" }) {
  const place = el("div");
  const check = debounce(async () => {
    const wanted = JSON.stringify(constraintOf());
    try {
      await ask("check", { constraint: constraintOf() });
      if (JSON.stringify(constraintOf()) === wanted) show(null);
      changed(true);
    } catch (error) {
      if (!(error instanceof InputProblem)) throw error;
      if (JSON.stringify(constraintOf()) === wanted) show(error.problem);
      changed(false);
    }
  }, 300);

  let area = null;
  function show(problem) {
    fill(place, ...(problem ? [problemBox(problem, area && problem.line ? () => select(problem.line, problem.column) : null)] : []));
    if (area) area.setAttribute("aria-invalid", problem ? "true" : "false");
  }
  function select(line, column) {
    const lines = area.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0) + Math.max(0, column - 1);
    area.focus();
    area.setSelectionRange(start, Math.max(start + 1, start + (lines[line - 1]?.length ?? 1) - column + 1));
    area.scrollTop = Math.max(0, (line - 4) * 18);
  }

  const body = el("fieldset", {}, el("legend", {}, legend));
  function draw() {
    const wantsText = state.kind in TEXTS;
    area = wantsText ? el("textarea", { id: "constraint-text", rows: state.kind === "json_schema" || state.kind === "tools" ? 14 : 6, spellcheck: "false", autocapitalize: "off", "aria-describedby": "constraint-problem" }) : null;
    if (area) {
      area.value = state.text;
      area.addEventListener("input", () => { state.text = area.value; changed(null); check(); });
    }
    place.id = "constraint-problem";
    const offered = Object.entries(info.kinds).filter(([kind]) => !kinds || kinds.includes(kind));
    const examples = info.examples.map((example, index) => [String(index), example.title]).filter(([index]) => !kinds || kinds.includes(info.examples[index].kind));
    const json = ["json_schema", "tools"].includes(state.kind);
    fill(body,
      el("legend", {}, legend),
      withExamples ? labelled("Begin with an example", choice([["", "…"], ...examples], "", (index) => {
        if (index === "") return;
        const example = info.examples[index];
        Object.assign(state, { kind: example.kind, text: example.text, prompt: example.prompt, output: example.output, prefix: example.prefix, sample: example.output, path: [], at: null });
        draw();
        onexample();
        changed(null);
        check();
      })) : null,
      offered.length > 1 ? labelled("Kind", choice(offered, state.kind, (kind) => {
        const example = info.examples.find((one) => one.kind === kind);
        if (example && state.text !== example.text) state.text = example.text;
        state.kind = kind;
        draw();
        changed(null);
        check();
      })) : null,
      area ? labelled(TEXTS[state.kind], area) : null,
      place,
      json || state.kind === "json" ? el("div.row", {},
        json ? labelled("Members", choice([["schema", "in the schema's order"], ["any", "in any order"]], state.order, (value) => { state.order = value; changed(null); check(); })) : null,
        labelled("White space", choice([["flexible", "flexible"], ["compact", "none"], ["python", "as json.dumps"]], state.ws, (value) => { state.ws = value; changed(null); check(); })),
        state.kind === "tools" ? labelled("Format", choice(info.tool_formats.map((name) => [name, name]), state.tool, (value) => { state.tool = value; changed(null); check(); })) : null) : null,
    );
  }
  draw();
  return { node: body, redraw: draw, check, show };
}
