// The page of `glassformer ablate`: a map of layers and heads, and the table.
import { balance, digits, el, section } from "./base.js";
import { heatmap } from "./heatmap.js";

function bytes(colour) {
  const { r, g, b } = d3.rgb(colour);
  return (255 << 24) | (b << 16) | (g << 8) | r;
}

function map(record, figure) {
  const modules = [...new Set(record.losses.map((loss) => loss.name))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const n = d3.max(record.losses, (loss) => loss.head ?? 0) + 1;
  const values = new Float32Array(modules.length * n);
  for (const loss of record.losses) values[modules.indexOf(loss.name) * n + (loss.head ?? 0)] = loss.change[figure];
  const largest = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
  return el("figure", {}, el("figcaption", {}, `change of ${figure}; the whole model has ${digits(record.whole[figure])}`), heatmap({
    rows: modules, columns: record.parts === "heads" ? d3.range(n).map((i) => `head ${i + 1}`) : ["off"],
    values: Object.assign(values, { shape: [modules.length, n] }),
    colour: () => (x) => bytes(balance(x / largest)), label: figure,
    say: (i, j, x) => `without ${modules[i]}${record.parts === "heads" ? ` head ${j + 1}` : ""}: ${figure} ${x >= 0 ? "+" : ""}${digits(x)}`,
  }));
}

const record = JSON.parse(document.getElementById("record").textContent);
const figures = Object.keys(record.whole);
document.querySelector("main").append(
  el("header", {}, el("h1", {}, "glassformer ablate"),
    el("p", { class: "facts" }, `${record.losses.length} ${record.parts} switched off one at a time, on ${record.examples} examples`)),
  section("Map", "Blue: the figure rises without it. Orange: it falls.", figures.map((figure) => map(record, figure))),
  section("Table", "What is missed most first.", el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["part", ...figures.flatMap((name) => [name, "change"])].map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, record.losses.map((loss) => el("tr", {},
      el("td", {}, loss.head === null ? loss.name : `${loss.name} head ${loss.head + 1}`),
      figures.flatMap((name) => [loss.metrics[name], loss.change[name]]).map((x) => el("td", { class: "number" }, digits(x))))))))),
);
