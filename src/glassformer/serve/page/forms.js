// A form for each task besides translation.

import { post, retrying, stream } from "./api.js";
import { el } from "./elements.js";
import { inspectButton } from "./inspect.js";
import { t } from "./strings.js";

let count = 0;

function field(label, rows, value = "") {
  const id = `field${(count += 1)}`;
  const input = rows > 1 ? el("textarea", { id, rows }) : el("input", { id });
  input.value = value;
  return [input, el("div", { class: "field" }, el("label", { for: id }, label), input)];
}

function number(label, value, min, max, step) {
  const id = `field${(count += 1)}`;
  const input = el("input", { id, type: "number", value, min, max, step });
  return [input, el("span", { class: "number" }, el("label", { for: id }, label), input)];
}

/** The form of a model. */
export function form(model) {
  const result = el("div", { class: "result", "aria-live": "polite" });
  const view = (FORMS[model.pipeline] ?? plain)(model, result);
  const status = el("p", { class: "status problem", role: "status" });
  const stop = el("button", { type: "button", hidden: true }, t("stop"));
  let controller;
  const run = async (event) => {
    event?.preventDefault();
    controller?.abort();
    const { signal } = (controller = new AbortController());
    const say = (text) => { status.textContent = text ?? ""; };
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
  const inspect = model.features.includes("inspect") && view.text ? inspectButton(() => model.id, view.text) : "";
  return el("section", { class: "form" },
    el("h2", {}, model.id, " ", el("small", {}, t("tasks")[model.pipeline] ?? model.task)),
    el("form", { onsubmit: run, onkeydown: (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && run(event) }, view.fields, el("p", { class: "buttons" }, el("button", { class: "primary" }, t("run")), stop, inspect)),
    status, result);
}

const infer = (model, inputs, parameters, signal) => post(`/models/${model.id}`, { inputs, parameters }, signal);

function bars(rows) {
  return el("table", { class: "bars" }, rows.map(([name, p]) => el("tr", {},
    el("th", { scope: "row" }, name), el("td", {}, el("div", { role: "meter", "aria-label": name, "aria-valuenow": p, "aria-valuemin": 0, "aria-valuemax": 1, style: { "--p": p } })),
    el("td", { class: "value" }, p.toFixed(3)))));
}

function classification(model, result) {
  const [input, node] = field(t("text"), 5);
  return { fields: node, text: () => input.value, async run(signal) {
    const [labels] = await infer(model, input.value, {}, signal);
    result.replaceChildren(bars(labels.map((row) => [row.label, row.score])));
  } };
}

function tagging(model, result) {
  const [input, node] = field(t("text"), 5);
  return { fields: node, text: () => input.value, async run(signal) {
    const text = input.value;
    const found = await infer(model, text, { aggregation_strategy: "first" }, signal);
    const parts = [];
    let end = 0;
    for (const { start, end: last, entity_group: name, score } of found) {
      parts.push(text.slice(end, start));
      parts.push(el("mark", { title: `${name} ${score.toFixed(3)}` }, text.slice(start, last), el("small", {}, name)));
      end = last;
    }
    result.replaceChildren(el("p", { class: "text tagged" }, parts, text.slice(end)));
  } };
}

function answering(model, result) {
  const [question, first] = field(t("question"), 1);
  const [context, second] = field(t("context"), 8);
  return { fields: [first, second], async run(signal) {
    const inputs = { question: question.value, context: context.value };
    let found = await infer(model, inputs, {}, signal);
    found = Array.isArray(found) ? found[0] : found;
    const [start, end] = [found.start, found.end];
    result.replaceChildren(
      el("p", {}, el("b", {}, found.answer || "–"), ` ${found.score.toFixed(3)}`),
      el("p", { class: "text" }, inputs.context.slice(0, start), el("mark", {}, inputs.context.slice(start, end)), inputs.context.slice(end)));
  } };
}

function generation(model, result) {
  const [input, node] = field(t("text"), 5);
  const [length, lengthNode] = number(t("length"), 100, 1, 1000, 1);
  const [temperature, temperatureNode] = number(t("temperature"), 0.8, 0, 2, 0.1);
  return { fields: [node, el("p", { class: "options" }, lengthNode, temperatureNode)], text: () => input.value, async run(signal) {
    const output = el("span", { class: "generated" });
    result.replaceChildren(el("p", { class: "text" }, input.value, output));
    const body = { model: model.id, prompt: input.value, max_tokens: Number(length.value), temperature: Number(temperature.value) };
    for await (const record of stream("/v1/completions", body, signal)) {
      for (const choice of record.choices) output.append(choice.text);
    }
  } };
}

function filling(model, result) {
  const [input, node] = field(`${t("text")} (<mask>)`, 3);
  return { fields: node, text: () => input.value, async run(signal) {
    const found = await infer(model, input.value, {}, signal);
    const rows = Array.isArray(found[0]) ? found.flat() : found;
    result.replaceChildren(bars(rows.map((row) => [row.token_str.trim(), row.score])));
  } };
}

function similarity(model, result) {
  const [first, firstNode] = field(t("compareWith"), 1);
  const [others, othersNode] = field(t("texts"), 5);
  return { fields: [firstNode, othersNode], async run(signal) {
    const sentences = others.value.split("\n").filter((line) => line.trim());
    const scores = await infer(model, { source_sentence: first.value, sentences }, {}, signal);
    result.replaceChildren(bars(sentences.map((text, i) => [text, scores[i]])));
  } };
}

function plain(model, result) {
  const [input, node] = field(t("text"), 8);
  return { fields: node, text: () => input.value, async run(signal) {
    const [found] = await infer(model, input.value, {}, signal);
    result.replaceChildren(el("p", { class: "text" }, Object.values(found)[0]));
  } };
}

const FORMS = {
  "text-classification": classification, "token-classification": tagging, "question-answering": answering,
  "text-generation": generation, "fill-mask": filling, "feature-extraction": similarity, "sentence-similarity": similarity,
};
