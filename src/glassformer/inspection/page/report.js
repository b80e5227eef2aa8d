// The page of `glassformer report`.
import { el, section, visible, digits } from "./base.js";
import { accent, plotted } from "./curves.js";
import { heatmap } from "./heatmap.js";

const NAMES = { loss: "training loss", lr: "learning rate", grad_norm: "gradient norm", tokens_per_s: "tokens a second" };

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
    el("p", {}, `${field.tokens.toLocaleString("en")} tokens; ${field.mean} an example, half have at most ${q["50"]}, 95% at `
      + `most ${q["95"]}, the longest ${q["100"]}. ${field.units_used.toLocaleString("en")} of `
      + `${field.units.toLocaleString("en")} units occur.`),
    plotted(() => ({ width: 540, height: 180, x: { label: "tokens" }, y: { label: "examples", grid: true }, marginLeft: 60,
      marks: [Plot.rectY(rows, { x1: "from", x2: "to", y: "count", fill: accent(), inset: 0.5, tip: true })] })),
    el("ol", { class: "tokens" }, field.common.map(([token, n]) =>
      el("li", {}, el("b", {}, visible(token)), el("small", {}, n.toLocaleString("en"))))));
}

function table(heads, rows) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, String(cell))))))));
}

function samples({ inputs, expected, outputs }) {
  const names = Object.keys(outputs).filter((name) => outputs[name].length);
  return el("div", {}, inputs.map((text, i) => el("div", {},
    el("blockquote", {}, text.length > 300 ? `${text.slice(0, 300)}…` : text),
    table(["", ""], [...names.map((name) => [name, outputs[name][i]]), ...(expected[i] ? [["right", expected[i]]] : [])]))));
}

function confusion({ labels, counts }) {
  const totals = counts.map((row) => d3.sum(row));
  const values = Float32Array.from(counts.flatMap((row, i) => row.map((n) => n / (totals[i] || 1))));
  return heatmap({
    rows: labels, columns: labels, values: Object.assign(values, { shape: [labels.length, labels.length] }),
    label: "confusion",
    say: (i, j) => `“${labels[i]}” was taken for “${labels[j]}” ${counts[i][j]} times of ${totals[i]}`,
  });
}

function facts(record) {
  return table(["", ""], Object.entries(record).map(([name, value]) =>
    [name.replaceAll("_", " "), typeof value === "object" ? JSON.stringify(value) : value]));
}

const record = JSON.parse(document.getElementById("record").textContent);
const cut = (text) => (text.length > 400 ? `${text.slice(0, 400)}…` : text);
const judged = (rows) => table(["input", "expected", "output", record.ranked_by], rows.map((row) => row.map((x) => cut(String(x)))));
const first = [`dev_${record.metric}`, "loss", "dev_loss"];
const names = Object.keys(record.curves);
names.sort((a, b) => (first.indexOf(a) + 10) % 10 - (first.indexOf(b) + 10) % 10);
document.querySelector("main").append(...[
  el("header", {}, el("h1", {}, `glassformer report: ${record.run}`),
    el("p", { class: "facts" }, `${record.task}`
      + (record.training.steps ? ` · ${record.training.steps} steps in ${record.training.minutes} minutes`
        + ` · dev ${record.metric} ${record.training[`dev_${record.metric}`]} (${record.training.weights})` : " · not finished"))),
  section("Curves", "From metrics.jsonl; hover for the values.", el("div", { class: "curves" }, names.map((name) => curve(name, record.curves[name])))),
  record.data.fields && section("Data", `${record.data.examples.toLocaleString("en")} training rows.`,
    Object.entries(record.data.fields).map(([name, field]) => lengths(name, field))),
  Object.values(record.samples.outputs).some((texts) => texts.length) && section("Samples",
    "What the checkpoints that are kept say to the same dev examples.", samples(record.samples)),
  record.worst && section("Worst", `Dev examples, by ${record.ranked_by}.`, judged(record.worst)),
  record.best && section("Best", `Dev examples, by ${record.ranked_by}.`, judged(record.best)),
  record.confusion && section("Confusions", "Rows are what was right, columns what was said; shares of each row.", confusion(record.confusion)),
  record.errors && section("Kinds of error", "What can be told from the texts alone.",
    table(["", "share"], record.errors.map(([name, share]) => [name, `${(100 * share).toFixed(1)}%`]))),
  section("To repeat it", null, el("pre", { class: "scroll" }, record.command), el("h3", {}, "Machine and versions"), facts(record.machine),
    el("h3", {}, "Options"), facts(record.options)),
].filter(Boolean));
