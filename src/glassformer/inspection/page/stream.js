// Norms of the residual stream after each sub-layer: one line for each token, and their mean.
import { digits, moduleParts, unpack, visible } from "./base.js";
import { el } from "./elements.js";

const [WIDTH, HEIGHT] = [720, 300];
const MARGIN = { top: 10, right: 10, bottom: 110, left: 50 };
const MAX_TICKS = 36; // that fit beside each other

/** @param {InspectionRecord} record */
export function stream(record) {
  return el("div", {}, Object.entries(record.stream).map(([name, norms]) => chart(record.sides[name], name, norms)));
}

/** @param {Side} side @param {string} name @param {Record<string, Packed>} packedNorms */
function chart(side, name, packedNorms) {
  const norms = Object.values(packedNorms).map(unpack);
  const parts = Object.keys(packedNorms).map(moduleParts);
  const means = norms.map((row) => d3.mean(row));
  const tokens = d3.range(norms[0].length);
  const x = d3.scaleLinear([-0.5, norms.length - 0.5], [MARGIN.left, WIDTH - MARGIN.right]);
  const y = d3.scaleLinear([0, d3.max(norms, (row) => d3.max(row)) || 1], [HEIGHT - MARGIN.bottom, MARGIN.top]).nice();
  const line = d3.line((_, i) => x(i), (value) => y(value));
  const svg = d3.create("svg").attr("viewBox", `0 0 ${WIDTH} ${HEIGHT}`).attr("class", "stream").attr("role", "img")
    .attr("aria-label", `norms of the residual stream of ${name}: mean ${digits(means[0], 2)} after the first sub-layer, ${digits(means.at(-1), 2)} after the last`);
  svg.append("g").attr("class", "axis").attr("transform", `translate(${MARGIN.left},0)`).call(d3.axisLeft(y).ticks(5).tickSizeInner(MARGIN.left + MARGIN.right - WIDTH));
  const layers = d3.rollups(parts.keys(), (group) => d3.mean(group), (i) => parts[i].layer);
  for (const i of d3.range(1, parts.length).filter((i) => parts[i].layer !== parts[i - 1].layer)) {
    svg.append("line").attr("class", "end").attr("x1", x(i - 0.5)).attr("x2", x(i - 0.5)).attr("y1", MARGIN.top).attr("y2", HEIGHT - MARGIN.bottom);
  }
  const step = Math.ceil(parts.length / MAX_TICKS);
  for (const i of d3.range(0, parts.length, step)) {
    svg.append("text").attr("transform", `translate(${x(i) + 4},${HEIGHT - MARGIN.bottom + 14}) rotate(-40)`).attr("text-anchor", "end").text(parts[i].part);
  }
  for (const [layer, i] of layers) svg.append("text").attr("x", x(i)).attr("y", HEIGHT - 4).attr("text-anchor", "middle").text(layers.length > 8 ? layer : `layer ${layer}`);
  const lines = tokens.map((token) => svg.append("path").attr("class", "token").attr("d", line(norms.map((row) => row[token]))));
  svg.append("path").attr("class", "mean").attr("d", line(means));
  const readout = el("output", { class: "readout" }, "\u00a0");
  let shown;
  svg.on("pointermove", (event) => {
    const [left, top] = d3.pointer(event);
    const i = Math.max(0, Math.min(norms.length - 1, Math.round(x.invert(left))));
    const token = d3.least(tokens, (other) => Math.abs(y(norms[i][other]) - top));
    shown?.classed("on", false);
    shown = lines[token].classed("on", true);
    readout.textContent = `“${visible(side.tokens[token])}” after ${parts[i].part} of layer ${parts[i].layer}: ${digits(norms[i][token], 3)}; mean ${digits(means[i], 3)}`;
  });
  return el("figure", {}, el("figcaption", {}, `${name}, layers of the ${parts[0].stack}`), el("div", { class: "scroll", tabindex: 0 }, svg.node()), readout);
}
