// One head of a live page, step by step: its queries, keys and values, and what is computed from them.
import { whenChosen } from "./attention.js";
import { digits, section } from "./base.js";
import { el } from "./elements.js";
import { ask } from "./live_controls.js";
import { matrix } from "./matrix.js";

export const STEPS_TITLE = "One head, step by step";

const all = (name, row, column) => ({ name, row, column, shift: 0 });

/** What the numbers of each matrix are computed from. */
const OPERANDS = {
  Q: [], K: [], V: [], scores: [all("Q", "row", null), all("K", "column", null)], weights: [all("scores", "row", null)],
  output: [all("weights", "row", null), all("V", null, "column")],
};

/** @param {InspectionRecord} record */
export function headSteps(record) {
  const content = el("div", { "aria-live": "polite" });
  const node = section(STEPS_TITLE, "The numbers of the head that is chosen above. A number under the pointer or the focus (arrow keys) highlights those that it is computed from.", content);
  let shown; // the choice that the content is of, or will be
  const update = (choice) => {
    const { kind, layer, head } = choice;
    const asked = { kind, layer, head: typeof head === "number" ? head : 0 };
    if (!node.open || JSON.stringify(asked) === shown) return;
    shown = JSON.stringify(asked);
    ask("head", asked, (answer) => content.replaceChildren(...steps(record, asked, answer)));
  };
  /** @type {HeadChoice} */
  let last;
  whenChosen((choice) => update(last = choice));
  node.addEventListener("toggle", () => last && update(last));
  return node;
}

/** @param {InspectionRecord} record @param {HeadName} name @param {HeadSteps} answer */
function steps(record, { kind, layer, head }, { scale, hasBias, matrices }) {
  const map = record.attention.find((x) => x.kind === kind && x.layer === layer);
  const [rows, columns] = [record.sides[map.queries].tokens, record.sides[map.keys].tokens];
  const labels = { Q: [rows, []], K: [columns, []], V: [columns, []], scores: [rows, columns], weights: [rows, columns], output: [rows, []] };
  const drawn = (name) => matrix({ name, shape: matrices[name].shape, values: Array.from(matrices[name].values, (x) => Number(x.toPrecision(6))), rows: labels[name][0], columns: labels[name][1], operands: OPERANDS[name] });
  const isMasked = kind === "decoder";
  return [
    el("p", {}, `${kind === "cross" ? "Cross-attention" : kind[0].toUpperCase() + kind.slice(1)}, layer ${layer + 1}, head ${head + 1}.`),
    el("h3", {}, "1. Queries, keys and values"), el("p", {}, "Each token has a query: what it looks for; a key: what it can be found by; and a value: what it passes on."), drawn("Q"), drawn("K"), drawn("V"),
    el("h3", {}, "2. Scores"), el("p", {}, `Q Kᵀ times ${digits(scale)}${hasBias ? ", and a bias for the distance of the tokens" : ""}: how well each query fits each key.`), drawn("scores"),
    el("h3", {}, "3. Softmax"), el("p", {}, `Each row becomes weights that sum to 1${isMasked ? "; later tokens have none" : ""}.`), drawn("weights"),
    el("h3", {}, "4. Sum of the weighted values"), el("p", {}, "weights V: the output of the head for each token, which the output projection adds to the residual stream together with those of the other heads."), drawn("output"),
  ];
}
