// The schema doctor: what is enforced, what to mind, an instance, where an output breaks, and what providers offer.

import { ask, count, debounce, el, fill, InputProblem, metric, problemBox } from "./lib.js";
import { constraintEditor } from "./constraint.js";
import { constraintOf, remember, state } from "./state.js";

export const title = "Schema doctor";

export function mount(inputs, main, info) {
  let shown = null;
  let verdict = null;
  let turn = 0;
  if (state.kind !== "json_schema") {
    const example = info.examples.find((one) => one.kind === "json_schema");
    Object.assign(state, { kind: "json_schema", text: example.text, output: state.output || example.output });
  }
  const note = el("div");
  const cards = {
    summary: el("section.card", { "aria-label": "Summary" }), output: el("section.card", { "aria-label": "Output" }), findings: el("section.card", { "aria-label": "To mind" }),
    instance: el("section.card", { "aria-label": "Random instance" }), keywords: el("section.card", { "aria-label": "Keywords" }), providers: el("section.card", { "aria-label": "Providers" }),
  };
  fill(main, note, ...Object.values(cards));

  const update = debounce(async () => {
    const mine = ++turn;
    remember("doctor");
    if (!shown) fill(note, el("p.soft", { role: "status" }, "Examining …"));
    try {
      const answer = await ask("doctor", { constraint: constraintOf(), seed: state.instance });
      if (mine !== turn) return;
      shown = answer;
      fill(note);
      editor.show(answer.problem);
      draw();
      await judge();
    } catch (error) {
      if (mine !== turn) return;
      if (error instanceof InputProblem && error.problem.field === "constraint") editor.show(error.problem);
      else fill(note, problemBox(error instanceof InputProblem ? error.problem : { kind: "no answer", message: error.message }));
    }
  }, 200);
  const judge = async () => {
    remember("doctor");
    verdict = null;
    if (state.output && !shown?.problem) {
      try { verdict = await ask("judge", { constraint: constraintOf(), output: state.output }); } catch (error) { if (!(error instanceof InputProblem)) throw error; }
    }
    drawVerdict();
  };
  const judgeSoon = debounce(judge, 200);

  const output = el("textarea", { id: "output", rows: 6, spellcheck: "false", placeholder: "Paste what a model wrote" });
  output.value = state.output;
  output.addEventListener("input", () => { state.output = output.value; judgeSoon(); });
  const editor = constraintEditor(info, { legend: "Schema", kinds: ["json_schema"], onexample: () => { output.value = state.output; }, changed: (works) => { if (works !== null) update(); } });
  fill(inputs, el("div.card", {}, editor.node), el("div.card", {}, el("label", {}, "An output to check", output)));

  function draw() {
    const { counts, problem } = shown;
    fill(cards.summary,
      el("header", {}, el("h2", {}, problem ? "This schema is refused" : "This schema is enforced exactly"), problem ? null : el("span.badge.good", {}, "every valid instance, and no other")),
      problem ? problemBox(problem) : null,
      el("dl.metrics", {}, metric("Keywords enforced", count(counts.enforced)), metric("Annotations", count(counts.annotation), "by the specification"), metric("Refused", count(counts.refused)), metric("To mind", count(shown.findings.length))));
    fill(cards.findings, el("header", {}, el("h2", {}, "To mind"), el("p", {}, "Nothing is wrong with these; they are where schemas often say less than was meant.")),
      shown.findings.length ? el("ul.findings", {}, shown.findings.map((finding) => el(`li.${finding.level}`, {}, el("b", {}, finding.message), " ", el("span.badge", { title: "JSON pointer" }, finding.pointer || "(root)"), finding.level === "warning" ? el("span.badge.warn", {}, "warning") : null, el("p", {}, finding.advice)))) : el("p.empty", {}, "Nothing found."));
    fill(cards.instance, el("header", {}, el("h2", {}, "A random instance"), el("button", { type: "button", onclick: () => { state.instance += 1; update(); } }, "Another")),
      shown.instance ? el("pre.marked", {}, pretty(shown.instance)) : el("p.empty", {}, shown.problem ? "There is none: the schema is refused." : "None was found within reach."));
    fill(cards.keywords, el("details", { open: shown.entries.length <= 40 }, el("summary", {}, `Every keyword (${count(shown.entries.length)})`),
      el("div.scroll", {}, el("table", {}, el("thead", {}, el("tr", {}, ["Place", "Keyword", "Status", "How"].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, shown.entries.slice(0, 400).map((entry) => el("tr", {}, el("td.mono.small", {}, entry.pointer || "(root)"), el("td.mono", {}, entry.keyword), el("td", {}, el(`span.badge${entry.status === "enforced" ? ".good" : entry.status === "refused" ? ".bad" : ""}`, {}, entry.status)), el("td", {}, entry.how))))))));
    drawProviders();
  }
  function pretty(text) { try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; } }
  function drawProviders() {
    const cell = (feature) => el("td", { title: [feature.how, feature.source].filter(Boolean).join("\n") }, el(`span.badge${feature.status === "accepted" ? ".good" : feature.status === "unknown" ? "" : ".bad"}`, {}, feature.status === "accepted" ? "yes" : feature.status === "absent" ? "no" : feature.status), /subset/.test(feature.how) ? el("span.soft.small", {}, " subset") : null);
    const kinds = { whole: ["good", "all of it"], partly: ["warn", "partly"], none: ["bad", "not at all"], "as it is": ["", "sent as it is"] };
    const fitCell = (fit) => (fit ? el("td", { title: fit.source }, el(`span.badge${kinds[fit.kind][0] ? `.${kinds[fit.kind][0]}` : ""}`, {}, kinds[fit.kind][1]),
      fit.notes.length ? el("details.small", {}, el("summary", {}, fit.notes.length === 1 ? "1 note" : `${fit.notes.length} notes`), el("ul.plain", {}, fit.notes.map((note) => el("li", {}, note)))) : null) : el("td", {}, "–"));
    fill(cards.providers, el("details", { open: cards.providers.querySelector("details")?.open ?? false }, el("summary", {}, `This schema at ${shown.providers.length} APIs of providers`),
      el("p.soft.small", {}, "From the catalogue of documented facts, and the documented subsets of JSON Schema; hover a cell for the field and its source. What a provider leaves open, grammask checks afterwards on hosted models, and enforces when it runs the model itself."),
      el("div.scroll", { tabindex: "0", role: "group", "aria-label": "providers; scrolls" }, el("table", {}, el("thead", {}, el("tr", {}, ["API", "This schema", "JSON Schema", "strict", "JSON mode", "grammar", "regex", "facts of"].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, shown.providers.map((one) => el("tr", {}, el("td", {}, one.provider, el("span.soft.small", {}, ` ${one.api}`)), fitCell(one.fit), ["json_schema", "strict", "json_object", "grammar", "regex"].map((name) => cell(one.features[name])), el("td.small.number", {}, one.compiled, one.stale ? el("span.badge.warn", { title: one.stale }, "old") : null))))))));
  }
  function drawVerdict() {
    const heading = el("h2", {}, "Your output");
    if (!state.output) { fill(cards.output, el("header", {}, heading), el("p.empty", {}, "Paste an output on the left to see whether, and where, it leaves the schema.")); return; }
    if (!verdict) { fill(cards.output, el("header", {}, heading), el("p.empty", {}, "Not judged: the schema is refused.")); return; }
    if (verdict.valid) { fill(cards.output, el("header", {}, heading, el("span.badge.good", {}, "valid")), el("pre.marked", {}, el("span.ok", {}, state.output))); return; }
    const characters = Array.from(state.output);
    let units = 0, index = 0;
    while (index < characters.length && index < verdict.character) units += characters[index++].length;
    fill(cards.output,
      el("header", {}, heading, el("span.badge.bad", {}, `breaks at line ${verdict.line}, column ${verdict.column}`)),
      el("pre.marked", {}, el("span.ok", {}, state.output.slice(0, units)), units < state.output.length ? el("mark", {}, state.output.slice(units)) : el("mark", {}, "⟨end⟩")),
      el("p", {}, "Expected there: ", el("b", {}, verdict.expected)),
      verdict.pointer !== undefined ? el("p.soft.small", {}, `The value at ${verdict.pointer || "(root)"}; the schema speaks about it at ${verdict.schema_pointers?.join(", ") || "no place"}.`) : null,
      verdict.valid_in_any_order ? el("p.small", {}, el("span.badge.warn", {}, "only the order"), " The members are in another order than in the schema. With “Members: in any order” this output is valid.") : null);
  }

  editor.check();
  update();
  return { keys: { "Ctrl+Enter": update }, leave: () => {}, data: () => ({ schema: state.text, output: state.output, report: shown, verdict }) };
}
