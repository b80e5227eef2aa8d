// A form for each task besides translation.

import { IS_LOCAL, post, retrying, stream } from "./api.js";
import { codeButton } from "./code.js";
import { el } from "./elements.js";
import { inspect, inspectButton } from "./inspect.js";
import { forgetLink, linkedInside, linkedText } from "./link.js";
import { written } from "./numbers.js";
import { kept } from "./session.js";
import { showStatus } from "./status.js";
import { t } from "./strings.js";

let count = 0;

/**
 * @param {string} label @param {number} rows
 * @returns {[input: HTMLInputElement | HTMLTextAreaElement, node: HTMLElement]}
 */
function field(label, rows, value = "") {
  const id = `field${(count += 1)}`;
  const input = rows > 1 ? el("textarea", { id, rows }) : el("input", { id });
  input.value = value;
  return [input, el("div", { class: "field" }, el("label", { for: id }, label), input)];
}

/**
 * @param {string} label @param {number} value @param {number} min @param {number} max @param {number} step
 * @returns {[input: HTMLInputElement, node: HTMLElement]}
 */
function number(label, value, min, max, step) {
  const id = `field${(count += 1)}`;
  const input = el("input", { id, type: "number", value, min, max, step });
  return [input, el("span", { class: "number" }, el("label", { for: id }, label), input)];
}

/**
 * What a model does, in the language of the interface.
 * @param {ModelRow} model
 */
export function taskName(model) {
  return t("tasks")[`${model.task} ${model.inputs.length}`] ?? t("tasks")[model.task] ?? t("tasks")[model.pipeline] ?? model.task;
}

/**
 * The form of a model.
 * @param {ModelRow} model @param {Settings} settings
 */
export function form(model, settings) {
  const result = el("div", { class: "result", "aria-live": "polite" });
  const view = (FORMS[model.pipeline] ?? plain)(model, result);
  const status = el("p", { class: "status problem", role: "status" });
  const stop = el("button", { type: "button", hidden: true }, t("stop"));
  /** @type {AbortController} */
  let controller;
  /** @param {Event} event */
  const run = async (event) => {
    event?.preventDefault();
    controller?.abort();
    const { signal } = (controller = new AbortController());
    /** @type {Say} */
    const say = (text, isProblem = true, ...more) => showStatus(status, text, isProblem, ...more);
    say();
    stop.hidden = false;
    try {
      await retrying(() => view.run(signal), say, signal);
    } catch (error) {
      if (error.name !== "AbortError") say(error.message);
    }
    if (!signal.aborted) stop.hidden = true;
  };
  stop.addEventListener("click", () => { controller?.abort(); stop.hidden = true; status.textContent = ""; });
  const inspectAction = model.features.includes("inspect") && view.text ? inspectButton(() => model.id, view.text) : "";
  const code = IS_LOCAL ? "" : codeButton(() => view.request(), settings.keyRequired);
  /** @type {(node: HTMLElement) => NodeListOf<HTMLInputElement | HTMLTextAreaElement>} */
  const inputsOf = (node) => node.querySelectorAll("input, textarea");
  [view.fields].flat().flatMap((node) => [...inputsOf(node)]).forEach((input, i) => {
    input.value = kept(`${model.id}.${i}`, () => input.value) ?? input.value;
  });
  if (linkedText !== null && view.text) {
    const fields = [view.fields].flat().flatMap((node) => [...inputsOf(node)]).filter(({ type }) => type !== "number");
    const texts = linkedText.split("\t");
    fields.forEach((each, i) => { each.value = i < fields.length - 1 ? texts[i] ?? "" : texts.slice(i).join("\t"); });
    setTimeout(forgetLink);
  }
  if (linkedInside && inspectAction) setTimeout(() => inspect(model.id, () => ({ text: view.text() }), alert, linkedInside)); // when the form is in the page
  return el("section", { class: "form" },
    el("h2", {}, model.id, " ", el("small", {}, taskName(model))),
    el("form", { onsubmit: run, onkeydown: (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && run(event) }, view.fields, el("p", { class: "buttons" }, el("button", { class: "primary" }, t("run")), stop, inspectAction, code)),
    status, result);
}

/**
 * The request for the output of a model: path and body.
 * @param {ModelRow} model @param {string | object} inputs @param {object} [parameters]
 * @returns {[path: string, body: object]}
 */
const inference = (model, inputs, parameters) => [`/models/${model.id}`, { inputs, ...(parameters ? { parameters } : {}) }];

/** @param {[name: string, p: number][]} rows */
function bars(rows) {
  return el("table", { class: "bars" }, rows.map(([name, p]) => el("tr", {},
    el("th", { scope: "row" }, name), el("td", {}, el("div", { role: "meter", "aria-label": name, "aria-valuenow": p, "aria-valuemin": 0, "aria-valuemax": 1, style: { "--p": p } })),
    el("td", { class: "value" }, p.toFixed(3)))));
}

/**
 * The output of a model, and notes: what of the text was cut off.
 * @param {[path: string, body: object]} request @param {AbortSignal} signal
 * @returns {Promise<[found: any, notes: HTMLElement[]]>}
 */
async function ask(request, signal) {
  const notes = [];
  const found = await post(...request, signal, (note) => notes.push(el("p", { class: "notice" }, note)));
  return [found, notes];
}

/**
 * Part of a text, with positions in characters.
 * @param {string} text @param {number} start @param {number} [end]
 */
const part = (text, start, end) => [...text].slice(start, end).join("");

/**
 * Classes, or a number, of a text or of a pair of texts. Of some models it is not known whether they were trained on
 * pairs.
 * @param {ModelRow} model @param {HTMLElement} result @returns {FormView}
 */
function classification(model, result) {
  const isPair = model.inputs.length === 2;
  const [input, node] = field(t(isPair ? "firstText" : "text"), isPair ? 3 : 5);
  const [other, otherNode] = field(t(isPair ? "secondText" : "maybeSecondText"), isPair ? 3 : 2);
  const request = () => inference(model, isPair || other.value.trim() ? { text: input.value, text_pair: other.value } : input.value);
  return { fields: model.inputs.length === 1 ? [node] : [node, otherNode], request, text: () => (other.value.trim() ? `${input.value}\t${other.value}` : input.value), async run(signal) {
    const [found, notes] = await ask(request(), signal);
    const labels = found.flat(); // a server has a list of them for each text
    if (model.task === "regression") {
      const [low, high] = model.labels.map((label) => Number(Number(label).toPrecision(4)));
      result.replaceChildren(el("p", {}, el("b", {}, written(labels[0].score, low, high)), " ", el("small", {}, t("range", low, high))), ...notes);
    } else result.replaceChildren(bars(labels.map((row) => [row.label, row.score])), ...notes);
  } };
}

/** @param {ModelRow} model @param {HTMLElement} result @returns {FormView} */
function tagging(model, result) {
  const [input, node] = field(t("text"), 5);
  const request = () => inference(model, input.value, { aggregation_strategy: "first" });
  return { fields: node, request, text: () => input.value, async run(signal) {
    const text = input.value;
    const [found, notes] = await ask(request(), signal);
    const parts = [];
    let end = 0;
    for (const { start, end: last, entity_group: name, score } of found) {
      parts.push(part(text, end, start));
      parts.push(el("mark", { title: `${name} ${score.toFixed(3)}` }, part(text, start, last), el("small", {}, name)));
      end = last;
    }
    result.replaceChildren(el("p", { class: "text tagged" }, parts, part(text, end)), ...notes);
  } };
}

/** @param {ModelRow} model @param {HTMLElement} result @returns {FormView} */
function answering(model, result) {
  const [question, first] = field(t("question"), 1);
  const [context, second] = field(t("context"), 8);
  const request = () => inference(model, { question: question.value, context: context.value });
  return { fields: [first, second], request, text: () => `${question.value}\t${context.value}`, async run(signal) {
    const text = context.value;
    const [found, notes] = await ask(request(), signal);
    const { answer, score, start, end } = [found].flat()[0];
    result.replaceChildren(
      el("p", {}, el("b", {}, answer || "–"), ` ${score.toFixed(3)}`),
      el("p", { class: "text" }, part(text, 0, start), el("mark", {}, part(text, start, end)), part(text, end)), ...notes);
  } };
}

/** @param {ModelRow} model @param {HTMLElement} result @returns {FormView} */
function generation(model, result) {
  const [input, node] = field(t("text"), 5);
  const [length, lengthNode] = number(t("length"), 100, 1, 1000, 1);
  const [temperature, temperatureNode] = number(t("temperature"), 0.8, 0, 2, 0.1);
  /** @returns {[path: string, body: object]} */
  const request = () => ["/v1/completions", { model: model.id, prompt: input.value, max_tokens: Number(length.value), temperature: Number(temperature.value) }];
  return { fields: [node, el("p", { class: "options" }, lengthNode, temperatureNode)], request, text: () => input.value, async run(signal) {
    const output = el("span", { class: "generated" });
    result.replaceChildren(el("p", { class: "text" }, input.value, output));
    for await (const record of stream(...request(), signal)) {
      for (const choice of record.choices) output.append(choice.text);
      if (record.note) result.append(el("p", { class: "notice" }, record.note));
    }
  } };
}

/** @param {ModelRow} model @param {HTMLElement} result @returns {FormView} */
function filling(model, result) {
  const [input, node] = field(`${t("text")} (<mask>)`, 3);
  const request = () => inference(model, input.value);
  return { fields: node, request, text: () => input.value, async run(signal) {
    const [found, notes] = await ask(request(), signal);
    const masks = Array.isArray(found[0]) ? found : [found];
    result.replaceChildren(...masks.map((rows) => bars(rows.map((row) => [row.token_str.trim(), row.score]))), ...notes);
  } };
}

/** @param {ModelRow} model @param {HTMLElement} result @returns {FormView} */
function similarity(model, result) {
  const [first, firstNode] = field(t("compareWith"), 1);
  const [others, othersNode] = field(t("texts"), 5);
  const sentences = () => others.value.split("\n").filter((line) => line.trim());
  const request = () => inference(model, { source_sentence: first.value, sentences: sentences() });
  return { fields: [firstNode, othersNode], request, text: () => first.value, async run(signal) {
    const texts = sentences();
    const [scores, notes] = await ask(request(), signal);
    result.replaceChildren(bars(texts.map((text, i) => [text, scores[i]])), ...notes);
  } };
}

/** @param {ModelRow} model @param {HTMLElement} result @returns {FormView} */
function plain(model, result) {
  const [input, node] = field(t("text"), 8);
  const request = () => inference(model, input.value);
  return { fields: node, request, text: () => input.value, async run(signal) {
    const [[found], notes] = await ask(request(), signal);
    result.replaceChildren(el("p", { class: "text" }, Object.values(found)[0]), ...notes);
  } };
}

/** @type {Record<string, (model: ModelRow, result: HTMLElement) => FormView>} */
const FORMS = {
  "text-classification": classification, "token-classification": tagging, "question-answering": answering,
  "text-generation": generation, "fill-mask": filling, "feature-extraction": similarity, "sentence-similarity": similarity,
};
