// Page of `glassformer ablate`: a map of layers and heads, and a table.
import { balance, ink, moduleParts, moduleTitle, redrawOnThemeChange, section } from "./base.js";
import { el } from "./elements.js";

const record = JSON.parse(document.getElementById("record").textContent);
const metrics = Object.keys(record.baseline);
const NAMES = { heads: "heads", sublayers: "sub-layers", layers: "layers" };

function format(metric, x) {
  return x.toFixed(record.digits[metric]);
}

/** A change with its sign, "0" if there is none. */
function formatChange(metric, x) {
  return x === 0 ? "0" : `${x > 0 ? "+" : ""}${format(metric, x)}`;
}

const ORDER = ["encoder", "decoder", "self-attention", "cross-attention", "feed-forward"];
const order = (key) => (typeof key === "number" ? key : ORDER.indexOf(key));

/** Row and column of a component in the map. */
function position({ name, head }) {
  const { stack, layer, part } = moduleParts(name);
  if (record.parts === "heads") return [moduleTitle(name), `head ${head + 1}`];
  return layer ? [`${stack} layer ${layer}`, part || "change"] : [part, "change"];
}

/** Changes of a metric by layer, and by head or sub-layer. */
function map(metric) {
  const title = `Change of ${record.names[metric]}. Full model: ${format(metric, record.baseline[metric])}`;
  if (record.losses.every((loss) => loss.change[metric] === 0)) {
    return el("p", {}, `${title}, and the same without any of the ${NAMES[record.parts]}.`);
  }
  const largest = d3.max(record.losses, (loss) => Math.abs(loss.change[metric]));
  const changes = new Map(record.losses.map((loss) => [position(loss).join(), loss.change[metric]]));
  const inOrder = d3.sort(record.losses, ...["stack", "layer", "part"].map((key) => (loss) => order(moduleParts(loss.name)[key])), (loss) => loss.head);
  const [rows, columns] = [0, 1].map((i) => [...new Set(inOrder.map((loss) => position(loss)[i]))]);
  const cell = (row, column) => {
    const x = changes.get([row, column].join());
    if (x === undefined) return el("td", {});
    const node = el("td", {}, formatChange(metric, x));
    redrawOnThemeChange(() => {
      node.style.background = balance(x / largest);
      node.style.color = ink(balance(x / largest));
    });
    return node;
  };
  return el("div", { class: "matrix" }, el("div", { class: "label" }, title),
    el("div", { class: "scroll", tabindex: 0 }, el("table", { "aria-label": title },
      el("thead", {}, el("tr", {}, el("th", {}), columns.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, el("th", { scope: "row" }, row), columns.map((column) => cell(row, column))))))));
}

function table() {
  const headings = ["component", ...metrics.flatMap((metric) => [record.names[metric], "change"]), "module path"];
  return el("div", { class: "scroll", tabindex: 0 }, el("table", {},
    el("thead", {}, el("tr", {}, headings.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, record.losses.map(({ name, head, metrics: values, change }) => el("tr", {},
      el("th", { scope: "row" }, moduleTitle(name) + (head === null ? "" : `, head ${head + 1}`)),
      metrics.flatMap((metric) => [format(metric, values[metric]), formatChange(metric, change[metric])]).map((text) => el("td", { class: "number" }, text)),
      el("td", {}, el("code", {}, name)))))));
}

document.querySelector("main").append(
  el("header", {}, el("h1", {}, "glassformer ablate"),
    el("p", { class: "facts" }, `Validation metrics with one of ${record.losses.length} ${NAMES[record.parts]} disabled at a time, on ${record.examples} examples. `
      + "Layers and heads are counted from 1, layers in module paths from 0.")),
  section("Map", "Blue: the metric is higher without the component. Orange: it is lower.", metrics.map(map)),
  section("Table", "Most important component first.", table()),
);
