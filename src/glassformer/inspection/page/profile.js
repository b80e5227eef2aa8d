// Page of `glassformer train --profile`.
import { section } from "./base.js";
import { el } from "./elements.js";

const DESCRIPTIONS = {
  data: "reading, collating and copying batches",
  forward: "forward pass of the model",
  loss: "projection to the vocabulary and cross-entropy, which compute their gradients at once",
  backward: "backward pass of the model",
  optimizer: "gradient norm, clipping, update of the weights",
  steps: "the CPU starts the work of steps, which the GPU does meanwhile",
  waiting: "the CPU waits for the GPU or for other processes",
  validation: "metrics on the dev set",
  saving: "checkpoints",
  profiling: "the profiled steps, and counting",
  other: "all other work of the training loop",
};

const percent = (x) => `${(100 * x).toFixed(x < 0.1 ? 1 : 0)}%`;
const count = (x) => Math.round(x).toLocaleString("en");

/** A number with three significant digits and a unit. */
function amount(x, unit, base = 1000) {
  const prefixes = base === 1024 ? ["", "Ki", "Mi", "Gi", "Ti"] : ["", "k", "M", "G", "T", "P"];
  const i = Math.min(prefixes.length - 1, Math.max(0, Math.floor(Math.log(Math.max(x, 1)) / Math.log(base))));
  return `${Number((x / base ** i).toPrecision(3))} ${prefixes[i]}${unit}`;
}

/** A table with numbers at the right. Cells are texts or elements. */
function table(headings, rows) {
  const isNumber = (x) => typeof x === "string" && /^\d/.test(x);
  const cell = (x) => el("td", isNumber(x) ? { class: "number" } : {}, x);
  return el("div", { class: "scroll", tabindex: 0 }, el("table", {},
    headings.length ? el("thead", {}, el("tr", {}, headings.map((text) => el("th", { scope: "col" }, text)))) : null,
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell))))));
}

/** A table of [name, value, text of the value, description?] with a bar for each value. */
function bars(rows, headings) {
  const largest = d3.max(rows, (row) => row[1]);
  const bar = (value) => el("span", { class: "measure", style: { "--length": value / largest } });
  return table(headings, rows.map(([name, value, text, ...rest]) => [name, bar(value), text, ...rest]));
}

function byPart(parts, total, format) {
  const rows = Object.entries(parts).filter(([, value]) => value / total >= 0.0005);
  return bars(rows.map(([name, value]) => [name, value, format(value), percent(value / total), el("small", {}, DESCRIPTIONS[name] || "")]),
    ["part", "", "time", "fraction", "what it is"]);
}

const record = JSON.parse(document.getElementById("record").textContent);
const seconds = (x) => `${Number(x.toPrecision(3))} s`;
const ms = (x) => `${Number(x.toPrecision(3))} ms`;
const isGpu = "steps" in record.seconds;
const stepTotal = d3.sum(Object.values(record.step_ms));
const memory = Object.entries(record.memory_bytes).filter(([, value]) => value !== null);
const facts = [
  `${count(record.steps)} steps in ${seconds(record.elapsed_s)}`, record.device,
  record.device === "cpu" ? `${record.threads} thread${record.threads === 1 ? "" : "s"}` : null, record.precision,
  record.compiled ? "compiled" : null, record.cuda_graphs ? "CUDA graphs" : null,
  record.processes > 1 ? `rank 0 of ${record.processes} processes` : null,
];
document.querySelector("main").append(...[
  el("header", {}, el("h1", {}, `glassformer train --profile: ${record.run}`), el("p", { class: "facts" }, facts.filter(Boolean).join(" · "))),
  section("Speed", record.processes > 1 ? "Of rank 0 only, with its part of each batch." : null, table([], [
    ["targets per second", count(record.targets_per_s)],
    ["operations per second", record.utilization === null ? "not known for this model family" : amount(record.flop_per_s, "FLOP/s")],
    ["the same of a matrix product", amount(record.product_flop_per_s, "FLOP/s")],
    ["model FLOP utilization", record.utilization === null ? "not known" : percent(record.utilization)],
    ...Object.entries(record.padding).map(([side, x]) => [`padding, ${side}`, percent(x)]),
  ]), el("p", { class: "why" }, "Speed without validation, checkpoints and profiling, and if the run is long enough without its first steps. "
    + "Operations are those of the matrix products of the Transformer blocks and of the projection to the vocabulary, without padding: "
    + "two for each multiplication, three times those of the forward pass, causal attention as half. The reference is a product of "
    + `two large square matrices in ${record.precision}, measured at the end of this run.`)),
  section("Time of the run", isGpu
    ? "The GPU works while the CPU goes on, so the time of the GPU is in the parts steps and waiting. Data, validation and saving are times of the CPU."
    : "Each moment of the run counts for one part.", byPart(record.seconds, record.elapsed_s, seconds)),
  stepTotal ? section("Time of a step", "Mean of a few steps after the warm-up."
    + (isGpu ? " These steps waited for the GPU at the end of each part" + (record.cuda_graphs ? " and ran without CUDA graphs, which cannot be timed by part" : "")
      + ": they are slower than the others." : ""), byPart(record.step_ms, stepTotal, ms)) : null,
  section("Memory", "Of this process. Activations: the tensors that the forward pass of a micro-batch saves for the backward pass, with 16-bit copies of weights"
    + (record.memory_bytes.activations === null ? "; not measured, because the run was too short." : ".")
    + (record.peak_bytes ? ` Peak of ${isGpu ? "the memory allocated on the GPU" : "the whole process, with libraries and data"}: ${amount(record.peak_bytes, "B", 1024)}.` : ""),
    bars(memory.map(([name, value]) => [name, value, amount(value, "B", 1024)]), [])),
  section("Most expensive operations", record.operations.length
    ? `Mean over a few steps after the warm-up. Time ${isGpu ? "of kernels on the GPU" : "of an operation without those that it calls"}.`
    : "Not measured, because the run was too short.",
    record.operations.length ? table(["operation", "calls per step", "ms per step", "of all operations"],
      record.operations.map(({ name, calls, ms, fraction }) => [el("code", {}, name), +calls.toFixed(1), ms.toPrecision(3), percent(fraction)])) : null),
].filter(Boolean));
