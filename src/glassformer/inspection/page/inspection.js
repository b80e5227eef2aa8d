// The page of `glassformer inspect`, from the record in the element "record".
import { el, section } from "./base.js";
import { attention } from "./attention.js";
import { beam } from "./beam.js";
import { alignment, lens, predictions, saliency, stream, tokens, vectors } from "./parts.js";

/** What there is to see of a record, as elements. */
export function inspection(record) {
  const s = record.sizes;
  const layers = s.n_layers ?? `${s.n_encoder_layers} + ${s.n_decoder_layers}`;
  const facts = [record.task, record.family, `${layers} layers`, s.n_heads && `${s.n_heads} heads`, `d_model ${s.d_model}`];
  return [
    el("header", {}, el("h1", {}, "glassformer inspect"), el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
      record.notes.map((note) => el("p", { class: "note" }, note)),
      Object.entries(record.sides).map(([name, side]) => el("blockquote", {}, el("small", {}, name), side.text)),
      record.answer && el("blockquote", {}, el("small", {}, "answer"), record.answer)),
    section("Tokens", "What the text is cut into. Under each token stands its number in the vocabulary; hover for the "
      + "characters it stands for.", Object.entries(record.sides).map(([name, side]) => [el("h3", {}, name), tokens(side)]).flat()),
    record.predictions.length && section("Predictions", record.predicts === "next"
      ? "At each place of the target, how probable the model found what came, and what it would rather have said."
      : "What the model makes of the text.", predictions(record)),
    Object.keys(record.saliency).length && section("Tokens that matter",
      "Blue speaks for the answer, orange against it.", saliency(record)),
    record.attention.length && section("Attention",
      "Each row shares out a weight of 1 over what it looks at. Pick a head among the thumbnails; hover the map or the "
      + "lines, click to keep.", attention(record)),
    record.alignment && section("Alignment",
      "All heads of cross-attention together: where each token of the target comes from.", alignment(record)),
    record.beam.length && section("Search",
      "What beam search looked at, a column a step, the most probable above. Grey was pruned.", beam(record)),
    Object.keys(record.lens).length && section("Layer by layer",
      "What the model would say if it ended at this layer (the logit lens). Darker in the light, lighter in the dark: surer.",
      lens(record)),
    Object.keys(record.stream).length && section("The residual stream",
      "How long each token's vector is after every sub-layer; the thick line is their mean.", stream(record)),
    Object.keys(record.vectors).length && section("Vectors",
      "What each token begins as: its embedding, its position, their sum.", vectors(record)),
  ].filter(Boolean);
}

document.querySelector("main").append(...inspection(JSON.parse(document.getElementById("record").textContent)));
