// Page of `glassformer ablate`: a map of layers and heads, and a table.
import { balance, digits, section } from "./base.js";
import { el } from "./elements.js";
import { heatmap } from "./heatmap.js";

function bytes(color) {
  const { r, g, b } = d3.rgb(color);
  return (255 << 24) | (b << 16) | (g << 8) | r;
}

function map(record, metric) {
  const modules = [...new Set(record.losses.map((loss) => loss.name))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const n = d3.max(record.losses, (loss) => loss.head ?? 0) + 1;
  const values = new Float32Array(modules.length * n);
  for (const loss of record.losses) values[modules.indexOf(loss.name) * n + (loss.head ?? 0)] = loss.change[metric];
  const largest = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
  return el("figure", {}, el("figcaption", {}, `Change of ${metric}. Full model: ${digits(record.baseline[metric], record.digits[metric])}`), heatmap({
    rows: modules, columns: record.parts === "heads" ? d3.range(n).map((i) => `head ${i + 1}`) : ["change"],
    values: Object.assign(values, { shape: [modules.length, n] }),
    color: () => (x) => bytes(balance(x / largest)), label: metric,
    describe: (i, j, x) => `without ${modules[i]}${record.parts === "heads" ? ` head ${j + 1}` : ""}: ${metric} ${x >= 0 ? "+" : ""}${digits(x, record.digits[metric])}`,
  }));
}

const record = JSON.parse(document.getElementById("record").textContent);
const metrics = Object.keys(record.baseline);
document.querySelector("main").append(
  el("header", {}, el("h1", {}, "glassformer ablate"),
    el("p", { class: "facts" }, `Validation metrics with one of ${record.losses.length} ${record.parts} disabled at a time, on ${record.examples} examples. Heads are counted from 1, layers in module names from 0.`)),
  section("Map", "Blue: the metric is higher without the component. Orange: it is lower.", metrics.map((metric) => map(record, metric))),
  section("Table", "Most important component first.", el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["component", ...metrics.flatMap((name) => [name, "change"])].map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, record.losses.map((loss) => el("tr", {},
      el("td", {}, loss.head === null ? loss.name : `${loss.name} head ${loss.head + 1}`),
      metrics.flatMap((name) => [loss.metrics[name], loss.change[name]].map((x) => el("td", { class: "number" }, digits(x, record.digits[name])))))))))),
);
