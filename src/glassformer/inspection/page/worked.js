// Page of `glassformer worked-example`: the ten steps, position encodings, effect of the scale.
import { balance, digits, moduleTitle, packed, section, unpack, visible } from "./base.js";
import { el } from "./elements.js";
import { accent, plotted } from "./curves.js";
import { heatmap } from "./heatmap.js";
import { matrix } from "./matrix.js";

function positions(p) {
  const maps = Object.entries({ "Formula of the paper": p.paper, "Incorrect loop with a doubled exponent": p.doubled });
  return el("div", {},
    el("p", {}, "The paper divides a position by 10000 to the power of 2i/d. A common error is a loop over i = 0, 2, 4, … that uses 2i "
      + "again and thus divides by 10000 to the power of 4i/d. The wavelengths then grow twice as fast, and half of the "
      + "dimensions are almost constant."),
    el("p", {}, `Cosine similarity of positions ${p.first} and ${p.second}: ${p.cosines[0].toFixed(7)} with the formula of the paper, `
      + `${p.cosines[1].toFixed(7)} with the doubled exponent.`),
    maps.map(([name, table]) => {
      const values = unpack(table);
      const [n, d] = values.shape;
      const rows = [p.first, p.second].flatMap((position) => d3.range(d).map((i) =>
        ({ position: `position ${position}`, dimension: i, value: values[position * d + i] })));
      return el("figure", {}, el("figcaption", {}, name),
        plotted(() => ({ height: 180, x: { label: "dimension" }, y: { label: null, grid: true },
          color: { domain: [`position ${p.first}`, `position ${p.second}`], range: [accent(), accent("--other")], legend: true },
          marks: [Plot.line(rows, { x: "dimension", y: "value", stroke: "position", strokeWidth: 1 })] })),
        heatmap({
          rows: d3.range(n).map(String), columns: d3.range(0, d, Math.ceil(d / 128)).map(String), label: name,
          values: Object.assign(Float32Array.from(d3.range(n).flatMap((i) =>
            d3.range(0, d, Math.ceil(d / 128)).map((j) => values[i * d + j]))), { shape: [n, Math.ceil(d / Math.ceil(d / 128))] }),
          color: () => (x) => packed(balance(x)),
          describe: (i, j, x) => `position ${i}, dimension ${j * Math.ceil(d / 128)}: ${digits(x, 6)}`,
        }).node);
    }));
}

function similarities(s) {
  return el("p", {}, `“${visible(s.words[0])}” (position ${s.positions[0]}) and “${visible(s.words[1])}” (position ${s.positions[1]}): `
    + `cosine similarity of the embeddings ${digits(s.word)}, of the position encodings ${digits(s.position)}, of the sums ${digits(s.sum)}.`);
}

function saturation(rows) {
  const kinds = ["unscaled", "scaled by 1/√d_k", "additive"];
  const points = rows.flatMap((row) => row.largest.map((value, i) => ({ d_k: row.d_k, kind: kinds[i], value })));
  return el("div", {},
    el("p", {}, "The variance of the dot product of two vectors with unit variance is d_k. Without the scale, the softmax puts nearly "
      + "all weight on one key as d_k grows, and its derivative, and with it the gradient, approaches 0."),
    plotted(() => ({ height: 240, x: { type: "log", base: 4, label: "d_k", tickFormat: "d", ticks: rows.map((row) => row.d_k) },
      y: { label: "largest weight", domain: [0, 1], grid: true },
      color: { legend: true, domain: kinds, range: [accent("--other"), accent(), accent("--soft")] },
      marks: [Plot.line(points, { x: "d_k", y: "value", stroke: "kind", strokeWidth: 2 }),
        Plot.dot(points, { x: "d_k", y: "value", fill: "kind", tip: true })] })),
    el("div", { class: "scroll", tabindex: 0 }, el("table", {},
      el("thead", {}, el("tr", {}, ["d_k", "standard deviation of q·k", ...kinds.map((kind) => `largest weight, ${kind}`),
        "derivative, unscaled", "derivative, scaled"].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, [row.d_k, row.deviation, ...row.largest, ...row.gradient].map((x, i) =>
        el("td", { class: "number" }, i ? digits(x) : String(x)))))))));
}

const record = JSON.parse(document.getElementById("record").textContent);
const title = record.module ? record.title.replace(record.module, moduleTitle(record.module)) : record.title;
document.querySelector("main").append(...[
  el("header", {}, el("h1", {}, title), el("p", { class: "facts" }, "Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V, computed step by step. "
    + "A number under the pointer or the focus (arrow keys) highlights the numbers that it is computed from."),
    record.module && el("p", { class: "facts" }, "Module path, which counts layers from 0: ", el("code", {}, record.module)),
    record.notes.map((note) => el("p", { class: "note" }, note))),
  ...record.steps.map((step, i) => section(`${i + 1}. ${step.title}`, step.text, step.matrices.map(matrix))),
  record.similarities && section("Cosine similarities", "Similarities of two tokens: of their embeddings, of their position encodings, and of the sums that the model uses as input.",
    similarities(record.similarities)),
  record.positions && section("Position encodings", null, positions(record.positions)),
  record.saturation.length && section("Effect of the scale 1/√d_k", null, saturation(record.saturation)),
].filter(Boolean));
