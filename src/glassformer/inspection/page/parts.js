// The other sections of an inspection: tokens, predictions, layers, residual stream, vectors, alignment, attribution.
import { balance, choice, digits, moduleTitle, redrawOnThemeChange, ink, pixels, shade, table, tooltip, unpack, visible } from "./base.js";
import { el } from "./elements.js";
import { heatmap } from "./heatmap.js";

/**
 * The tokens of a side with their ids and character spans.
 * @param {Side} side
 */
export function tokens(side) {
  return el(
    "ol", { class: "tokens" },
    side.tokens.map((token, i) => {
      const offset = side.offsets[i];
      const position = offset ? `characters ${offset[0] + 1} to ${offset[1]}` : "special token";
      return el(
        "li", tooltip(`token ${i + 1}, id ${side.ids[i]}, ${position}`, { class: offset ? "" : "special" }),
        el("b", {}, visible(token)), el("small", {}, String(side.ids[i])),
      );
    }),
  );
}

const HEADINGS = { next: "next token", words: "token", tags: "tag", span: "start and end of the answer", label: "class",
  number: "number" };

/**
 * Table of predictions: one row per position with the expected token and the candidates as bars.
 * @param {InspectionRecord} record
 */
export function predictions(record) {
  const side = record.sides.target || record.sides.text;
  const single = ["label", "number"].includes(record.predicts);
  const list = record.predictions.filter(([position]) => position >= record.first_predicted);
  const scored = list.filter(([, expected]) => expected !== null);
  const loss = -d3.mean(scored, ([, , logProb]) => logProb);
  const body = list.map(([position, expected, logProb, rank, best]) =>
    el(
      "tr", {},
      single ? null : el("th", { scope: "row" }, visible(side.tokens[position])),
      expected === null ? null : el("td", { class: "expected" }, visible(expected)),
      expected === null ? null : cell(Math.exp(logProb)),
      expected === null ? null : el("td", { class: "number" }, digits(-logProb, 3)),
      expected === null ? null : el("td", { class: "number" }, String(rank + 1)),
      el("td", {}, el("ol", { class: "guesses" }, best.map(([text, p]) =>
        el("li", { style: { "--fraction": `${100 * p}%` }, class: text === expected ? "on" : "" },
          el("span", {}, visible(text)), el("b", {}, digits(p, 3)))))),
    ),
  );
  const headings = scored.length
    ? ["previous token", "expected token", "probability", "loss", "rank", "most probable tokens"]
    : [...(single ? [] : ["position"]), HEADINGS[record.predicts]];
  return el(
    "div", {},
    scored.length
      ? el("p", {}, `Mean loss ${digits(loss, 4)} nats per token, perplexity ${digits(Math.exp(loss), 2)}.`)
      : null,
    el("div", { class: "scroll", tabindex: 0 },
      el("table", { class: "predictions" },
        el("thead", {}, el("tr", {}, headings.map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, body))),
  );
}

function cell(p) {
  const node = el("td", { class: "number" }, digits(p, 3));
  redrawOnThemeChange(() => {
    node.style.background = shade(p);
    node.style.color = ink(shade(p));
  });
  return node;
}

/**
 * Logit lens: most probable prediction at each position from the output of each layer.
 * @param {InspectionRecord} record @param {Record<string, Prediction[]>} predicted by layer
 */
export function lens(record, predicted) {
  const side = record.sides.target || record.sides.text;
  const rows = Object.entries({ ...predicted, "final output": record.predictions }).reverse();
  const single = ["label", "number"].includes(record.predicts);
  const positions = record.predictions.map(([position]) => position).filter((i) => i >= record.first_predicted);
  return el(
    "div", { class: "scroll", tabindex: 0 },
    el(
      "table", { class: "lens" },
      el("thead", {}, el("tr", {}, el("th", {}, ""),
        positions.map((i) => el("th", { scope: "col" }, single ? record.predicts : visible(side.tokens[i]))))),
      el("tbody", {}, rows.map(([name, row]) =>
        el("tr", {}, el("th", { scope: "row", title: name in predicted ? `module path ${name}` : null }, moduleTitle(name)), positions.map((i) => {
          const [, , , , best] = row.find(([position]) => position === i);
          const node = el("td", tooltip(best.map(([text, p]) => `${visible(text)} ${digits(p, 3)}`).join(", ")),
            visible(best[0][0]));
          redrawOnThemeChange(() => {
            node.style.background = shade(best[0][1]);
            node.style.color = ink(shade(best[0][1]));
          });
          return node;
        })))),
    ),
  );
}

/**
 * Input vectors of each token: one row of colored cells per token.
 * @param {InspectionRecord} record
 */
export function vectors(record) {
  return el("div", {}, Object.entries(record.vectors).map(([name, kinds]) =>
    el("div", {}, el("h3", {}, name), Object.entries(kinds).map(([kind, packed]) => {
      const values = unpack(packed);
      const largest = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
      const canvas = el("canvas", { class: "stripes" });
      const readout = el("output", { class: "readout" }, "\u00a0");
      const [n, width] = values.shape;
      canvas.style.height = `${Math.min(18, Math.max(6, 260 / n)) * n}px`;
      canvas.addEventListener("pointermove", (event) => {
        const box = canvas.getBoundingClientRect();
        const i = Math.min(n - 1, Math.floor(((event.clientY - box.top) / box.height) * n));
        const j = Math.min(width - 1, Math.floor(((event.clientX - box.left) / box.width) * width));
        if (i >= 0 && j >= 0) {
          readout.textContent =
            `“${visible(record.sides[name].tokens[i])}”, dimension ${j + 1}: ${digits(values[i * width + j])}`;
        }
      });
      redrawOnThemeChange(() => {
        const colorOf = table(balance, -1, 1);
        pixels(canvas, values, (x) => colorOf(x / largest));
      });
      return el("figure", {}, el("figcaption", {}, `${kind}: ${n} tokens x ${width} dimensions, range ±${digits(largest, 3)}`),
        canvas, readout);
    }))));
}

/**
 * Cross-attention averaged over all heads, and the fraction of heads that agree with it.
 * @param {InspectionRecord} record
 */
export function alignment(record) {
  const values = unpack(record.alignment);
  const agreement = unpack(record.agreement);
  const rows = record.predictions.map(([, expected]) => expected);
  const columns = record.sides.source.tokens;
  const best = rows.map((_, i) => {
    const row = values.subarray(i * columns.length, (i + 1) * columns.length);
    return row.indexOf(Math.max(...row));
  });
  return el("div", {},
    heatmap({
      rows, columns, values, mark: (i) => best[i], label: "alignment",
      describe: (i, j, x) => `“${visible(rows[i])}” attends to “${visible(columns[j])}”: ${digits(x)}; `
        + `the largest weight of ${Math.round(100 * agreement[i])}% of the heads is on “${visible(columns[best[i]])}”`,
    }).node,
    el("p", {}, `On average, ${Math.round(100 * d3.mean(agreement))}% of the heads have their largest weight on the same token as the mean.`));
}

/**
 * Contribution of each token to the predicted class.
 * @param {InspectionRecord} record
 */
export function saliency(record) {
  const kinds = Object.fromEntries(Object.entries(record.saliency).map(([name, packed]) => [name, unpack(packed)]));
  const container = el("p", { class: "salient" });
  const show = (name) => {
    const values = kinds[name];
    const largest = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
    container.replaceChildren(...record.sides.text.tokens.map((token, i) => {
      const node = el("span", tooltip(digits(values[i], 5)), visible(token));
      redrawOnThemeChange(() => {
        node.style.background = balance(values[i] / largest);
        node.style.color = ink(balance(values[i] / largest));
      });
      return node;
    }));
  };
  const names = Object.keys(kinds);
  show(names[0]);
  return el("div", {}, choice("method", names.map((name) => [name, name]), names[0], show), container);
}
