// The whole way of a text through the model: a row for each token, a column for each layer.
import { showHead, thumbnail } from "./attention.js";
import { balance, digits, ink, moduleParts, pixels, redrawOnThemeChange, reveal, shade, table, tooltip, unpack, visible } from "./base.js";
import { el } from "./elements.js";

/**
 * The picture, and a function that shows the predictions of each layer in it.
 * @param {InspectionRecord} record @param {AttentionMap<Matrix>[]} maps
 * @param {() => HTMLDetailsElement} attentionSection
 */
export function way(record, maps, attentionSection) {
  const sides = Object.keys(record.stream);
  /** @type {WayCells} */
  const cells = new Map();
  /** @param {Record<string, Prediction[]>} lens */
  const show = (lens) => {
    for (const [path, row] of Object.entries(lens)) {
      const ofLayer = cells.get(moduleParts(path).layer);
      for (const prediction of row) ofLayer?.[prediction[0]]?.(prediction);
    }
  };
  const node = el("div", {}, sides.map((name, i) => [
    el("h3", {}, name),
    picture(record, name, maps.filter((a) => a.queries === name), attentionSection, i + 1 === sides.length ? cells : new Map()),
    i + 1 < sides.length && el("p", { class: "way-on" }, "↓ what the encoder made of each token: the cross-attention of the decoder takes information from there"),
  ]).flat());
  return { node, show };
}

/**
 * The way of one side: tokens, vectors, layers, output.
 * @param {InspectionRecord} record @param {string} name @param {AttentionMap<Matrix>[]} maps
 * @param {() => HTMLDetailsElement} attentionSection @param {WayCells} cells get the functions of its layers
 */
function picture(record, name, maps, attentionSection, cells) {
  const side = record.sides[name];
  const isLast = name === Object.keys(record.stream).at(-1);
  const columns = [...vectorColumns(record, name), ...layerColumns(record, name, maps, attentionSection, cells)];
  if (isLast) columns.push({ head: [el("b", {}, "output")], cell: (i) => word(record.predictions.find(([position]) => position === i)) });
  const arrow = () => el("span", { class: "arrow", "aria-hidden": "true" }, "→");
  const body = side.tokens.map((token, i) => el("tr", { onpointerenter: () => light(i), onpointerleave: () => light(null) },
    el("th", { scope: "row" }, visible(token)), columns.map(({ cell }) => cell(i))));
  const node = el("table", { class: "way" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "token"), columns.map(({ head }) => el("th", { scope: "col" }, arrow(), ...head)))),
    el("tbody", {}, body));
  /** Mark the row of a token in the maps: where it takes information from. */
  function light(i) {
    node.classList.toggle("lit", i !== null);
    node.style.setProperty("--row", String(i ?? 0));
    node.style.setProperty("--rows", String(side.tokens.length));
  }
  return el("div", { class: "scroll", tabindex: 0 }, node);
}

/**
 * The vectors of the first layer, if the record has them: a strip for each token.
 * @param {InspectionRecord} record @param {string} name @returns {WayColumn[]}
 */
function vectorColumns(record, name) {
  return Object.entries(record.vectors[name] ?? {}).map(([kind, packed]) => {
    const values = unpack(packed);
    const [, width] = values.shape;
    const largest = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
    return { head: [el("b", {}, kind)], cell: (i) => {
      const canvas = el("canvas", { class: "strip" });
      const row = Object.assign(values.subarray(i * width, (i + 1) * width), { shape: [1, width] });
      redrawOnThemeChange(() => {
        const colorOf = table(balance, -1, 1);
        pixels(canvas, row, (x) => colorOf(x / largest));
      });
      return el("td", {}, canvas);
    } };
  });
}

/**
 * For each layer: its heads, and what it made of each token.
 * @param {InspectionRecord} record @param {string} name @param {AttentionMap<Matrix>[]} maps
 * @param {() => HTMLDetailsElement} attentionSection @param {WayCells} cells get the functions of the layers
 * @returns {WayColumn[]}
 */
function layerColumns(record, name, maps, attentionSection, cells) {
  const layers = d3.groups(Object.keys(record.stream[name]), (path) => moduleParts(path).layer);
  const norms = layers.map(([, paths]) => unpack(record.stream[name][paths.at(-1)]));
  const largest = d3.max(norms, (row) => d3.max(row)) || 1;
  return layers.map(([layer], k) => {
    const ofLayer = [];
    cells.set(layer, ofLayer);
    /** @param {number} i @param {Prediction} [prediction] */
    const withNorm = (i, prediction) => {
      const node = word(prediction);
      node.style.setProperty("--fraction", `${(100 * norms[k][i]) / largest}%`);
      node.classList.add("norm");
      node.title = `length of the vector: ${digits(norms[k][i], 2)}`;
      return node;
    };
    return {
      head: [el("b", {}, `layer ${layer}`), ...maps.filter((a) => a.layer + 1 === layer).map((a) => el("span", { class: "heads" },
        a.kind === "cross" && el("small", {}, "cross-attention"), Array.from({ length: a.weights.shape[0] }, (_, head) => thumbnail(record, a, head, () => {
          showHead({ kind: a.kind, layer: a.layer, head });
          reveal(attentionSection());
        }))))],
      cell: (i) => {
        const node = withNorm(i);
        ofLayer[i] = (prediction) => node.replaceWith(withNorm(i, prediction));
        return node;
      },
    };
  });
}

/**
 * A cell with the most probable token of a prediction; empty without one.
 * @param {Prediction} [prediction]
 */
function word(prediction) {
  if (!prediction) return el("td", {});
  const [[text, p]] = prediction[4];
  const node = el("td", tooltip(`“${visible(text)}” ${digits(p, 3)}`), visible(text));
  redrawOnThemeChange(() => {
    node.style.background = shade(p);
    node.style.color = ink(shade(p));
  });
  return node;
}
