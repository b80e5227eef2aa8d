// Page of `glassformer report`.
import { section, visible, digits } from "./base.js";
import { el } from "./elements.js";
import { accent, plotted } from "./curves.js";
import { heatmap } from "./heatmap.js";

const NAMES = { loss: "training loss", lr: "learning rate", grad_norm: "gradient norm", tokens_per_s: "tokens per second" };

function curve(name, points) {
  const rows = points.map(([step, value]) => ({ step, value }));
  const few = rows.length < 40;
  return el("figure", {}, el("figcaption", {}, NAMES[name] || name.replace("dev_", "dev ")), plotted(() => ({
    width: 540, height: 220, marginLeft: 60,
    x: { label: "step" }, y: { label: null, grid: true },
    marks: [
      Plot.line(rows, { x: "step", y: "value", stroke: accent(), strokeWidth: 1.8 }),
      few ? Plot.dot(rows, { x: "step", y: "value", fill: accent(), r: 2.5 }) : null,
      Plot.tip(rows, Plot.pointerX({ x: "step", y: "value", title: (row) => `step ${row.step}\n${digits(row.value)}` })),
    ],
  })));
}

function lengths(name, field) {
  const rows = field.histogram.map(([from, count], i) => ({
    from, to: i + 1 < field.histogram.length ? field.histogram[i + 1][0] : field.quantiles["100"], count,
  }));
  const q = field.quantiles;
  return el("div", {}, el("h3", {}, name),
    el("p", {}, `${field.tokens.toLocaleString("en")} tokens. Tokens per example: mean ${field.mean}, median ${q["50"]}, `
      + `95th percentile ${q["95"]}, maximum ${q["100"]}. ${field.entries_used.toLocaleString("en")} of `
      + `${field.vocab_size.toLocaleString("en")} vocabulary entries are used. Most frequent tokens:`),
    plotted(() => ({ width: 540, height: 180, x: { label: "tokens" }, y: { label: "examples", grid: true }, marginLeft: 60,
      marks: [Plot.rectY(rows, { x1: "from", x2: "to", y: "count", fill: accent(), inset: 0.5, tip: true })] })),
    el("ol", { class: "tokens" }, field.common.map(([token, n]) =>
      el("li", {}, el("b", {}, visible(token)), el("small", {}, n.toLocaleString("en"))))));
}

function table(headings, rows) {
  return el("div", { class: "scroll", tabindex: 0 }, el("table", {},
    el("thead", {}, el("tr", {}, headings.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, String(cell))))))));
}

function samples({ inputs, expected, outputs }) {
  const names = Object.keys(outputs).filter((name) => outputs[name].length);
  return el("div", {}, inputs.map((text, i) => el("div", {},
    el("blockquote", {}, text.length > 300 ? `${text.slice(0, 300)}…` : text),
    table(["", ""], [...names.map((name) => [name, outputs[name][i]]), ...(expected[i] ? [["reference", expected[i]]] : [])]))));
}

function confusion({ labels, counts }) {
  const totals = counts.map((row) => d3.sum(row));
  const values = Float32Array.from(counts.flatMap((row, i) => row.map((n) => n / (totals[i] || 1))));
  return heatmap({
    rows: labels, columns: labels, values: Object.assign(values, { shape: [labels.length, labels.length] }),
    label: "confusion",
    describe: (i, j) => `“${labels[i]}” was classified as “${labels[j]}” in ${counts[i][j]} of ${totals[i]} cases`,
  }).node;
}

function facts(record) {
  return table(["", ""], Object.entries(record).map(([name, value]) =>
    [name.replaceAll("_", " "), typeof value === "object" ? JSON.stringify(value) : value]));
}

const record = JSON.parse(document.getElementById("record").textContent);
const truncate = (text) => (text.length > 400 ? `${text.slice(0, 400)}…` : text);
const ranked = (rows) => table(["input", "reference", "output", record.ranked_by], rows.map((row) => row.map((x) => truncate(String(x)))));
const first = [`dev_${record.metric}`, "loss", "dev_loss"];
const names = Object.keys(record.curves);
names.sort((a, b) => (first.indexOf(a) + 10) % 10 - (first.indexOf(b) + 10) % 10);
document.querySelector("main").append(...[
  el("header", {}, el("h1", {}, `glassformer report: ${record.run}`),
    el("p", { class: "facts" }, `${record.task}`
      + (record.training.steps ? ` · ${record.training.steps} steps in ${record.training.minutes} minutes`
        + ` · dev ${record.score} (${record.training.weights})` : " · not finished"))),
  section("Curves", "Metrics of training and validation (metrics.jsonl). Hover for values.", el("div", { class: "curves" }, names.map((name) => curve(name, record.curves[name])))),
  record.data.fields && section("Data", `${record.data.examples.toLocaleString("en")} training examples.`,
    Object.entries(record.data.fields).map(([name, field]) => lengths(name, field))),
  Object.values(record.samples.outputs).some((texts) => texts.length) && section("Samples",
    "Outputs of the saved checkpoints for the same dev examples.", samples(record.samples)),
  record.worst && section("Worst examples", `Dev examples with the lowest ${record.ranked_by}.`, ranked(record.worst)),
  record.best && section("Best examples", `Dev examples with the highest ${record.ranked_by}.`, ranked(record.best)),
  record.confusion && section("Confusion matrix", "Rows: expected classes. Columns: predicted classes. Color: fraction of the row.", confusion(record.confusion)),
  record.errors && section("Types of errors", "Detected automatically from source, reference and output.",
    table(["", "fraction"], record.errors.map(([name, fraction]) => [name, `${(100 * fraction).toFixed(1)}%`]))),
  section("Reproduction", "Command, environment and options of this run.", el("pre", { class: "scroll", tabindex: 0 }, record.command), el("h3", {}, "Machine and versions"), facts(record.machine),
    el("h3", {}, "Options"), facts(record.options)),
].filter(Boolean));
