// What sampling could choose as the next token: the probabilities, with temperature, top-k and top-p.
import { digits, visible } from "./base.js";
import { el } from "./elements.js";
import { ask, slider } from "./live_controls.js";

const N_ROWS = 12;
const K_ALL = 51; // the slider's last value: all tokens
/** @type {{ temperature: number, topK: number, topP: number, position: number | null }} */
const chosen = { temperature: 1, topK: K_ALL, topP: 1, position: null }; // kept from one record to the next

/**
 * Probabilities of the tokens, the most probable first, as sampling uses them: with temperature, of the k most
 * probable, and of the fewest with probability p together.
 * @param {Float64Array} logProbs @param {{ temperature: number, topK: number, topP: number }} options
 */
export function sampled(logProbs, { temperature, topK, topP }) {
  const n = topK >= K_ALL ? logProbs.length : Math.min(topK, logProbs.length);
  const weights = Array.from(logProbs.subarray(0, n), (x) => Math.exp((x - logProbs[0]) / temperature));
  const sum = weights.reduce((a, b) => a + b, 0);
  let [before, kept] = [0, 0];
  while (kept < n && (topP >= 1 || kept === 0 || before < topP * sum)) before += weights[kept++];
  return weights.slice(0, kept).map((x) => x / before);
}

/** @param {InspectionRecord} record */
export function sampling(record) {
  const side = record.sides.target ?? record.sides.text;
  const positions = record.predictions.map(([position]) => position);
  const last = positions.at(-1);
  const position = positions.includes(chosen.position) ? chosen.position : record.sides.target ? positions[0] : last;
  const table = el("div", { "aria-live": "polite" });
  /** @type {Distribution} */
  let distribution;
  const draw = () => {
    if (!distribution) return;
    const { texts, logProbs } = distribution;
    const probs = sampled(logProbs, chosen);
    const entropy = -probs.reduce((sum, p) => sum + (p > 0 ? p * Math.log2(p) : 0), 0);
    table.replaceChildren(
      el("p", {}, `${probs.length.toLocaleString("en")} of ${logProbs.length.toLocaleString("en")} tokens can be chosen. Entropy: ${entropy.toFixed(2)} bits.`),
      el("table", { class: "sampling" },
        el("thead", {}, el("tr", {}, ["token", "probability of the model", "chosen with probability"].map((text) => el("th", { scope: "col" }, text)))),
        el("tbody", {}, texts.slice(0, N_ROWS).map((text, i) => el("tr", { class: i < probs.length ? "" : "excluded" },
          el("th", { scope: "row" }, visible(text)),
          [Math.exp(logProbs[i]), probs[i] ?? 0].map((p) => el("td", { class: "number share", style: { "--fraction": `${100 * p}%` } }, digits(p, 3))))))));
  };
  const choose = (name) => (value) => {
    chosen[name] = value;
    draw();
  };
  const receive = (answer) => {
    distribution = answer;
    draw();
  };
  const askFor = (i) => ask("distribution", { position: i }, receive);
  const select = el("select", { "aria-label": "token before the next one", onchange: () => askFor(chosen.position = Number(select.value)) },
    positions.map((i) => el("option", { value: String(i), selected: i === position }, `${i + 1}. ${visible(side.tokens[i])}`)));
  const percent = (x) => `${Math.round(100 * x)}%`;
  const node = el("div", {}, el("div", { class: "sliders" },
    el("label", { class: "slider" }, el("span", {}, "after token"), select),
    slider("temperature", { value: chosen.temperature, min: 0.1, max: 2, step: 0.05, shown: (x) => x.toFixed(2) }, choose("temperature")),
    slider("top-k", { value: chosen.topK, min: 1, max: K_ALL, step: 1, shown: (x) => (x >= K_ALL ? "all" : String(x)) }, choose("topK")),
    slider("top-p", { value: chosen.topP, min: 0.05, max: 1, step: 0.05, shown: percent }, choose("topP"))), table);
  askFor(position);
  return node;
}
