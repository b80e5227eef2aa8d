// What a reader changes in a live page: heads that are switched off, and the search. The page around this one then sends another record.
import { el } from "./elements.js";

/** @type {InsideBegin["wanted"]} */
const wanted = { off: [], search: {} };

/**
 * Begin with settings of a link, which the page around this one knows.
 * @param {InsideBegin["wanted"]} settings
 */
export function begin(settings) {
  Object.assign(wanted, settings);
}

/**
 * Ask for a record with other settings.
 * @param {InsideBegin["wanted"]} settings
 */
function change(settings) {
  Object.assign(wanted, settings);
  parent.postMessage({ wanted }, "*");
}

/** @type {Map<string, (data: InsideAnswer) => void>} */
const receivers = new Map(); // of answers, by what was asked

/**
 * Ask the page around this one. An answer comes too late if something else was asked in the meantime.
 * @param {string} name @param {object} values @param {(answer: any) => void} receive
 */
export function ask(name, values, receive) {
  expect(name, values, receive);
  parent.postMessage({ ask: name, values }, "*");
}

/**
 * Expect the answer to what the page around this one asks by itself.
 * @param {string} name @param {object} values @param {(answer: any) => void} receive
 */
function expect(name, values, receive) {
  receivers.set(name, (data) => { if (JSON.stringify(data.values) === JSON.stringify(values)) receive(data.answer); });
}

/**
 * Receive the predictions of each layer; of a live page, they come after the record.
 * @param {InspectionRecord} record @param {(lens: Record<string, Prediction[]>) => void} receive
 */
export function withLens(record, receive) {
  if (record.live?.hasLens) expect("lens", {}, receive);
  else receive(record.lens);
}

/**
 * Take an answer.
 * @param {InsideAnswer} data
 */
export function answered(data) {
  receivers.get(data.ask)?.(data);
}

/** @param {HeadOff} off @param {AttentionMap<unknown>} a @param {number} other */
const same = ([kind, layer, head], a, other) => kind === a.kind && layer === a.layer && head === other;

/**
 * Whether a head is switched off.
 * @param {InspectionRecord} record @param {AttentionMap<unknown>} a @param {number} head
 */
export function isOff(record, a, head) {
  return Boolean(record.live?.off.some((row) => same(row, a, head)));
}

/**
 * Buttons that switch off a head, or all heads of a layer, and on again.
 * @param {InspectionRecord} record @param {AttentionMap<Matrix>} a @param {number | string} head
 */
export function switchButtons({ live }, a, head) {
  if (!live?.canSwitch || head === "roll-out") return "";
  const heads = typeof head === "number" ? [head] : Array.from({ length: a.weights.shape[0] }, (_, i) => i);
  /** @type {HeadOff[]} */
  const own = heads.map((other) => [a.kind, a.layer, other]);
  const others = live.off.filter((row) => !heads.some((other) => same(row, a, other)));
  const areOff = live.off.length - others.length === heads.length;
  const what = typeof head === "number" ? "this head" : "the heads of this layer";
  return el("p", { class: "buttons" },
    el("button", { type: "button", class: "switch", onclick: () => change({ off: areOff ? others : [...others, ...own] }) },
      `Switch ${what} ${areOff ? "on" : "off"}`),
    live.off.length > 0 && el("button", { type: "button", class: "all-on", onclick: () => change({ off: [] }) }, `Switch all ${live.off.length} on`));
}

const KINDS = { encoder: "encoder", decoder: "decoder", cross: "cross-attention" };

/**
 * Heads by attention: "cross-attention layer 2, heads 1, 3".
 * @param {HeadOff[]} off
 */
function namesOf(off) {
  const groups = d3.rollups(off, (rows) => rows.map(([, , head]) => head + 1).sort((a, b) => a - b), ([kind, layer]) => `${KINDS[kind]} layer ${layer + 1}`);
  return groups.map(([name, heads]) => `${name}, head${heads.length > 1 ? "s" : ""} ${heads.join(", ")}`).join("; ");
}

/**
 * Which heads are switched off, and the output of all heads, if it is another one.
 * @param {InspectionRecord} record
 */
export function unchanged({ live }) {
  if (!live?.off.length) return null;
  const isSame = live.unchanged === live.output;
  return [
    el("p", { class: "note" }, `Switched off: ${namesOf(live.off)}.`, isSame ? " The output is the same as with all heads." : ""),
    !isSame && el("blockquote", { class: "unchanged" }, el("small", {}, "output"), live.output),
    !isSame && el("blockquote", { class: "unchanged" }, el("small", {}, "output with all heads"), live.unchanged),
  ];
}

/**
 * A slider with its value. `shown`: how the value is written.
 * @param {string} label @param {SliderOptions} options @param {(value: number) => void} [moved]
 * @param {(value: number) => void} [released]
 */
export function slider(label, { value, min, max, step, shown = String }, moved, released) {
  const output = el("output", {}, shown(value));
  const input = el("input", {
    type: "range", min, max, step, value: String(value), "aria-label": label,
    oninput: () => { output.textContent = shown(Number(input.value)); moved?.(Number(input.value)); },
    onchange: () => released?.(Number(input.value)),
  });
  return el("label", { class: "slider" }, el("span", {}, label), input, output);
}

/**
 * Sliders for the beam and the length penalty of the search.
 * @param {InspectionRecord} record
 */
export function searchSliders({ live }) {
  if (!live?.search) return null;
  const set = (name) => (value) => change({ search: { ...live.search, [name]: value } });
  return el("div", { class: "sliders" },
    slider("beam", { value: live.search.beam, min: 1, max: 12, step: 1 }, undefined, set("beam")),
    slider("length penalty", { value: live.search.alpha, min: 0, max: 2, step: 0.1, shown: (x) => x.toFixed(1) }, undefined, set("alpha")));
}
