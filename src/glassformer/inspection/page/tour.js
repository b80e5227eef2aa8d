// A tour of the page: one section after another, with what to look for.
import { reveal } from "./base.js";
import { el } from "./elements.js";

/** @type {Record<string, (record: InspectionRecord) => string>} */
const STEPS = {
  Tokens: () => "The model reads numbers. Each piece of the text here, a token, has one, which is below it. Look for words that are divided: rare words have several tokens.",
  "The whole way": () => "From the left to the right: each token is a vector, each layer adds to it what its heads take from other tokens. Follow a row. Look for the layer in which the word of the output appears first, and point at a row to see in the small maps where its token takes information from.",
  Predictions: ({ predicts }) => (predicts === "next"
    ? "The model writes one token after another. A row is a step: how probable the token was that comes next. Look for a pale cell: there the model was uncertain, and on the right is what it would have written instead."
    : "What the model predicts, and how probable it is. Change a word of the text, and see which predictions change."),
  Sampling: () => "Move the temperature to 2: the probabilities become more equal. Move top-k to 3: only three tokens can be chosen. A translation is made of the most probable tokens; for stories, tokens are sampled like this.",
  "Token attribution": () => "Which words the predicted class comes from. Look for words that you would have named yourself, and for those that you would not.",
  Attention: ({ live }) => "Each small map is a head: strong cells show from which tokens (columns) a token (row) takes information. Select some. Look for a diagonal, "
    + `a column that all rows attend to, and pairs of words that belong together.${live?.canSwitch ? " Then switch a head off: does the output change? And without all heads of the layer?" : ""}`,
  "One head, step by step": () => "The same head in numbers. Point at a number of the weights, and see from which scores it comes; then at a score, and see its query and its key. Attention is nothing but these products.",
  Alignment: () => "The mean of the heads by which the target attends to the source. Look for words in another order, and for one word that has become two.",
  Search: ({ live }) => `Several beginnings of the translation compete, and after each step the most probable ones are kept. Look for a step where the later winner was not the first.${
    live ? " With a beam of 1, there is no competition: is the translation another one?" : ""}`,
  "Layer by layer": () => "What would the model say after an earlier layer? Read a column from below: the word becomes clearer. Look for the layer in which the final word appears.",
  "Residual stream": () => "Each token is a vector that every layer changes; its length is shown. Look for lines that leave the others: often a punctuation mark, or the end of the sentence.",
  Vectors: () => "The numbers that the first layer is given: one row for each token. Tokens with similar meanings often have similar rows.",
};

let current = -1; // the step that is shown; -1: none
/** @param {Element} section */
const titleOf = (section) => section.querySelector("h2").textContent;

/**
 * A button that starts the tour of the sections of a record. It goes on in the sections of the next record.
 * @param {HTMLDetailsElement[]} sections @param {InspectionRecord} record
 */
export function tour(sections, record) {
  const steps = sections.filter((section) => titleOf(section) in STEPS);
  const show = (step, isMoved = true) => {
    for (const section of steps) section.querySelector(".tour")?.remove();
    current = step < steps.length ? step : -1;
    const section = steps[current];
    if (!section) return;
    section.open = true;
    const next = el("button", { type: "button", onclick: () => show(current + 1) }, current + 1 < steps.length ? "Next" : "End of the tour");
    section.querySelector("summary").after(el("aside", { class: "tour", "aria-label": "tour" },
      el("p", {}, STEPS[titleOf(section)](record)),
      el("p", { class: "buttons" }, next, current > 0 && el("button", { type: "button", onclick: () => show(current - 1) }, "Back"),
        el("button", { type: "button", onclick: () => show(-1) }, "Close"), el("small", {}, `${current + 1} of ${steps.length}`))));
    if (!isMoved) return;
    next.focus({ preventScroll: true });
    reveal(section);
  };
  if (current >= 0) show(Math.min(current, steps.length - 1), false);
  return steps.length ? el("p", { class: "buttons" }, el("button", { type: "button", onclick: () => show(0) }, "Tour: what to look for")) : null;
}
