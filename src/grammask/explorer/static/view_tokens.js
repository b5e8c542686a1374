// The tokenization view: one text, many spellings in tokens, judged by one constraint over bytes.

import { ask, count, debounce, el, fill, InputProblem, problemBox, slider, visible, visibleText } from "./lib.js";
import { constraintEditor } from "./constraint.js";
import { constraintOf, remember, state } from "./state.js";

export const title = "Tokens";

export function mount(inputs, main, info) {
  let shown = null;
  let turn = 0;
  const note = el("div");
  const results = el("div", { style: { display: "grid", gap: "1rem" } });
  fill(main, note, results);
  if (!state.tokenizers.length) state.tokenizers = info.tokenizers.slice(0, 2);

  const request = (names) => ({
    text: state.sample, tokenizers: names, samples: state.samples, seed: state.shuffle,
    constraint: state.judged ? constraintOf() : { kind: "none" },
  });
  const wanted = () => state.tokenizers.filter((name) => info.tokenizers.includes(name));
  const update = debounce(async () => {
    const mine = ++turn;
    remember("tokens");
    results.setAttribute("aria-busy", "true");
    const found = [];
    try {
      // One at a time: a large tokenizer takes seconds to read, and the others need not wait for it.
      for (const name of wanted()) {
        fill(note, el("p.soft", { role: "status" }, `Reading ${name} …`));
        const answer = await ask("tokenization", request([name]));
        if (mine !== turn) return;
        found.push(...answer.tokenizers);
        shown = { ...answer, tokenizers: found };
        draw();
      }
      fill(note);
    } catch (error) {
      if (mine !== turn) return;
      fill(note);
      if (error instanceof InputProblem && error.problem.field === "constraint") editor.show(error.problem);
      else fill(note, problemBox(error instanceof InputProblem ? error.problem : { kind: "no answer", message: error.message }));
    } finally { if (mine === turn) results.removeAttribute("aria-busy"); }
  }, 200);

  const sample = el("textarea", { id: "sample", rows: 4, spellcheck: "false" });
  sample.value = state.sample;
  sample.addEventListener("input", () => { state.sample = sample.value; update(); });
  const judged = el("input", { type: "checkbox", checked: state.judged, onchange: () => { state.judged = judged.checked; update(); } });
  const editor = constraintEditor(info, { onexample: () => { sample.value = state.sample; }, changed: (works) => { if (works) update(); } });
  fill(inputs,
    el("div.card", {}, el("label", {}, "Text", sample),
      el("fieldset", {}, el("legend", {}, "Tokenizers"), info.tokenizers.map((name) => {
        const box = el("input", { type: "checkbox", checked: state.tokenizers.includes(name), onchange: () => {
          state.tokenizers = info.tokenizers.filter((one) => (one === name ? box.checked : state.tokenizers.includes(one)));
          update();
        } });
        return el("label.check", {}, box, name);
      })),
      slider("Random spellings each", state.samples, { min: 0, max: 6, step: 1 }, (value) => { state.samples = value; update(); }),
      el("button", { type: "button", onclick: () => { state.shuffle += 1; update(); } }, "Draw others"),
      el("label.check", {}, judged, "judged by the constraint below")),
    el("div.card", {}, editor.node),
  );

  function piece(token) {
    const kinds = token.parts ? `holds ${token.parts.join(", then ")}` : token.half ? "holds part of a character" : "";
    return el(`span.piece${token.half ? ".half" : token.parts ? ".cut" : ""}`, { title: `token ${token.id}${kinds ? `: ${kinds}` : ""}` }, visible(token.text));
  }
  function verdict(spelling) {
    if (!state.judged) return null;
    if (spelling.complete) return el("span.badge.good", {}, "accepted, complete");
    if (spelling.accepted === spelling.tokens.length) return el("span.badge.warn", {}, "accepted, not complete yet");
    return el("span.badge.bad", {}, `refused at token ${spelling.accepted + 1}: ${visibleText(spelling.tokens[spelling.accepted].text)}`);
  }
  function draw() {
    const legend = el("div.legend", {}, el("span", {}, el("span.piece.cut", {}, "\":"), " cuts across parts of a JSON text"), el("span", {}, el("span.piece.half", {}, "\\xe2"), " holds part of a character"));
    fill(results, ...(shown.text ? [] : [el("p.empty", {}, "Write a text to see how tokenizers split it.")]), ...shown.tokenizers.map((one, index) => el("section.card", { "aria-label": one.name },
      el("header", {}, el("h2", {}, one.name), el("p", {}, `${count(one.size)} tokens; ${one.ways} ways to spell these ${count(shown.bytes)} bytes`)),
      index === 0 ? legend : null,
      one.spellings.length ? one.spellings.map((spelling) => el("div.spelling", {},
        el("header", {}, el("b", {}, spelling.title), el("span.soft", {}, `${spelling.tokens.length} tokens`), spelling.tokens.some((token) => token.parts) ? el("span.badge.warn", {}, `${spelling.tokens.filter((token) => token.parts).length} misaligned`) : null, verdict(spelling)),
        el("div.pieces", {}, spelling.tokens.map(piece)))) : el("p.empty", {}, shown.text ? "This vocabulary cannot spell the text." : ""))));
  }

  editor.check();
  update();
  return { keys: { "Ctrl+Enter": update }, leave: () => {}, data: () => ({ request: request(wanted()), result: shown }) };
}
