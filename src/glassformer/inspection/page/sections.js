// The sections of the page of an inspection.
import { section } from "./base.js";
import { el } from "./elements.js";
import { attention, mapsOf } from "./attention.js";
import { beam } from "./beam.js";
import { headSteps } from "./head_steps.js";
import { searchSliders, unchanged, withLens } from "./live_controls.js";
import { alignment, lens, predictions, saliency, tokens, vectors } from "./parts.js";
import { sampling } from "./sampling.js";
import { stream } from "./stream.js";
import { tour } from "./tour.js";
import { way } from "./way.js";

/**
 * Elements of the page of a record.
 * @param {InspectionRecord} record
 */
export function inspection(record) {
  const s = record.sizes;
  const layers = s.n_layers ?? `${s.n_encoder_layers} + ${s.n_decoder_layers}`;
  const facts = [record.task, record.family, `${layers} layers`, s.n_heads && `${s.n_heads} heads`, `d_model ${s.d_model}`];
  const sections = sectionsOf(record);
  return [
    el("header", {}, el("h1", {}, "glassformer inspect"), el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
      record.notes.map((note) => el("p", { class: "note" }, note)),
      Object.entries(record.sides).map(([name, side]) => el("blockquote", {}, el("small", {}, name), side.text)),
      unchanged(record),
      record.answer && el("blockquote", {}, el("small", {}, "answer"), record.answer),
      tour(sections, record)),
    ...sections,
  ];
}

let heightOfLayers = 0; // of the last record, in pixels

/** @param {InspectionRecord} record @returns {HTMLDetailsElement[]} */
function sectionsOf(record) {
  const maps = mapsOf(record);
  const whole = Object.keys(record.stream).length ? way(record, maps, () => attentionSection) : null;
  const layers = el("div", {});
  const hasLayers = record.live?.hasLens || Object.keys(record.lens).length;
  if (hasLayers) layers.style.minHeight = `${heightOfLayers}px`; // so that nothing moves until they come
  withLens(record, (predicted) => {
    whole?.show(predicted);
    if (!hasLayers) return;
    layers.replaceChildren(Object.keys(predicted).length ? lens(record, predicted) : el("p", {}, "Left out: for this model and sentence, they take too long."));
    layers.style.minHeight = "";
    requestAnimationFrame(() => { heightOfLayers = layers.clientHeight; });
  });
  const attentionSection = record.attention.length && section("Attention",
    "Attention weights; each row sums to 1. Layers and heads are counted from 1. Select a head by its thumbnail. Hover over the map or the lines for values, "
    + "click to pin.", attention(record, maps));
  return [
    section("Tokens", "The tokens of the text with their ids in the vocabulary. Hover for the character span.",
      Object.entries(record.sides).map(([name, side]) => [el("h3", {}, name), tokens(side)]).flat()),
    attentionSection && whole && section("The whole way",
      "A row for each token, a column for each layer. The small maps are heads: select one. A word is what the model would predict after this layer, the stronger the color the more "
      + "probable; the bar is the length of the token's vector. Hover over a row: the heads mark where its token takes information from.",
      whole.node),
    record.predictions.length && section("Predictions", record.predicts === "next"
      ? "Probability of each token of the target given the tokens before it, and the most probable alternatives."
      : "The most probable outputs of the model.", predictions(record)),
    record.live?.hasDistribution && section("Sampling",
      "What sampling could choose as the next token. A higher temperature makes the probabilities more equal; top-k and top-p leave out the least probable tokens.",
      sampling(record)),
    Object.keys(record.saliency).length && section("Token attribution",
      "Contribution of each token to the predicted class. Blue: positive. Orange: negative.", saliency(record)),
    attentionSection,
    record.live && record.attention.length && headSteps(record),
    record.alignment && section("Alignment",
      "Mean of all cross-attention heads: the source tokens that each target token attends to.", alignment(record)),
    record.beam.length && section("Search",
      "Hypotheses of the beam search: one column per step, the most probable at the top. Gray: pruned.",
      searchSliders(record), beam(record)),
    hasLayers && section("Layer by layer",
      "Predictions made from the output of each layer (logit lens). Stronger color: higher probability.",
      layers),
    Object.keys(record.stream).length && section("Residual stream",
      "Norm of each token's vector after every sub-layer. Thick line: mean of all tokens.", stream(record)),
    Object.keys(record.vectors).length && section("Vectors",
      "The vectors that the first layer is given, and what they are the sum of.", vectors(record)),
  ].filter(Boolean);
}
