// The other parts of an inspection: tokens, predictions, layers, the residual stream, vectors, alignment, tokens that matter.
import { balance, choice, digits, drawn, el, ink, pixels, shade, table, told, unpack, visible } from "./base.js";
import { accent, plotted } from "./curves.js";
import { heatmap } from "./heatmap.js";

/** The tokens of a side, each with its id and the stretch of text that it stands for. */
export function tokens(side) {
  return el(
    "ol", { class: "tokens" },
    side.tokens.map((token, i) => {
      const offset = side.offsets[i];
      const where = offset ? `characters ${offset[0]} to ${offset[1]}` : "a special token";
      return el(
        "li", told(`token ${i}, id ${side.ids[i]}, ${where}`, { class: offset ? "" : "special" }),
        el("b", {}, visible(token)), el("small", {}, String(side.ids[i])),
      );
    }),
  );
}

const HEADINGS = { next: "what follows", words: "what stands here", tags: "tag", span: "ends of the answer", label: "class",
  number: "number" };

/** A row for each place: what was expected, and the alternatives as bars. */
export function predictions(record) {
  const side = record.sides.target || record.sides.text;
  const single = ["label", "number"].includes(record.predicts);
  const list = record.predictions.filter(([place]) => place >= record.first_predicted);
  const told = list.filter(([, expected]) => expected !== null);
  const loss = -d3.mean(told, ([, , logProb]) => logProb);
  const body = list.map(([place, expected, logProb, rank, best]) =>
    el(
      "tr", {},
      single ? null : el("th", { scope: "row" }, visible(side.tokens[place])),
      expected === null ? null : el("td", { class: "expected" }, visible(expected)),
      expected === null ? null : cell(Math.exp(logProb)),
      expected === null ? null : el("td", { class: "number" }, digits(-logProb, 3)),
      expected === null ? null : el("td", { class: "number" }, String(rank + 1)),
      el("td", {}, el("ol", { class: "guesses" }, best.map(([text, p]) =>
        el("li", { style: { "--share": `${100 * p}%` }, class: text === expected ? "on" : "" },
          el("span", {}, visible(text)), el("b", {}, digits(p, 3)))))),
    ),
  );
  const heads = told.length
    ? ["after", "came", "probability", "loss", "rank", "the model's best"]
    : [...(single ? [] : ["at"]), HEADINGS[record.predicts]];
  return el(
    "div", {},
    told.length
      ? el("p", {}, `Mean loss ${digits(loss, 4)} nats a token, perplexity ${digits(Math.exp(loss), 2)}.`)
      : null,
    el("div", { class: "scroll" },
      el("table", { class: "predictions" },
        el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, body))),
  );
}

function cell(p) {
  const node = el("td", { class: "number" }, digits(p, 3));
  drawn(() => {
    node.style.background = shade(p);
    node.style.color = ink(shade(p));
  });
  return node;
}

/** What would be said at each place if the stack ended at each layer. */
export function lens(record) {
  const side = record.sides.target || record.sides.text;
  const rows = [...Object.entries(record.lens), ["the whole", record.predictions]].reverse();
  const single = ["label", "number"].includes(record.predicts);
  const places = record.predictions.map(([place]) => place).filter((place) => place >= record.first_predicted);
  return el(
    "div", { class: "scroll" },
    el(
      "table", { class: "lens" },
      el("thead", {}, el("tr", {}, el("th", {}, ""),
        places.map((i) => el("th", { scope: "col" }, single ? record.predicts : visible(side.tokens[i]))))),
      el("tbody", {}, rows.map(([name, row]) =>
        el("tr", {}, el("th", { scope: "row" }, name), places.map((i) => {
          const [, , , , best] = row.find(([place]) => place === i);
          const node = el("td", told(best.map(([text, p]) => `${visible(text)} ${digits(p, 3)}`).join(", ")),
            visible(best[0][0]));
          drawn(() => {
            node.style.background = shade(best[0][1]);
            node.style.color = ink(shade(best[0][1]));
          });
          return node;
        })))),
    ),
  );
}

/** Lengths of the residual stream from sub-layer to sub-layer: each token, and their mean. */
export function stream(record) {
  return el("div", {}, Object.entries(record.stream).map(([name, norms]) => {
    const steps = Object.keys(norms);
    const rows = steps.flatMap((step, i) => [...unpack(norms[step])].map((x, token) => ({ step: i, token, length: x })));
    const means = d3.rollups(rows, (group) => d3.mean(group, (row) => row.length), (row) => row.step);
    const short = (i) => (steps[i] || "").replace("encoder.", "e").replace("decoder.", "d").replace(".", " ");
    return el("figure", {}, el("figcaption", {}, name), plotted(() => ({
      x: { ticks: steps.length > 14 ? d3.range(0, steps.length, Math.ceil(steps.length / 14)) : d3.range(steps.length),
        tickFormat: short, tickRotate: -40, label: null },
      y: { label: "length", grid: true, zero: true },
      marginBottom: 90,
      marks: [
        Plot.line(rows, { x: "step", y: "length", z: "token", stroke: accent(), strokeOpacity: 0.25, strokeWidth: 1 }),
        Plot.line(means, { x: "0", y: "1", stroke: accent("--other"), strokeWidth: 2.5 }),
        Plot.tip(rows, Plot.pointer({ x: "step", y: "length",
          title: (row) => `${visible(record.sides[name].tokens[row.token] || "")}\n${digits(row.length, 3)}` })),
      ],
    })));
  }));
}

/** Embedding, positions and sum of each token, a stripe of colours for its numbers. */
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
            `“${visible(record.sides[name].tokens[i])}”, dimension ${j}: ${digits(values[i * width + j])}`;
        }
      });
      drawn(() => {
        const look = table(balance, -1, 1);
        pixels(canvas, values, (x) => look(x / largest));
      });
      return el("figure", {}, el("figcaption", {}, `${kind}: ${n} tokens of ${width} numbers within ±${digits(largest, 3)}`),
        canvas, readout);
    }))));
}

/** Which source token each target token comes from, and how many heads agree. */
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
      say: (i, j, x) => `“${visible(rows[i])}” comes from “${visible(columns[j])}”: ${digits(x)}; `
        + `${Math.round(100 * agreement[i])}% of heads look most at “${visible(columns[best[i]])}”`,
    }),
    el("p", {}, `On average ${Math.round(100 * d3.mean(agreement))}% of the heads look most at the same token.`));
}

/** How much each token counts for the answer. */
export function saliency(record) {
  const kinds = Object.fromEntries(Object.entries(record.saliency).map(([name, packed]) => [name, unpack(packed)]));
  const holder = el("p", { class: "salient" });
  const show = (name) => {
    const values = kinds[name];
    const largest = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
    holder.replaceChildren(...record.sides.text.tokens.map((token, i) => {
      const node = el("span", told(digits(values[i], 5)), visible(token));
      drawn(() => {
        node.style.background = balance(values[i] / largest);
        node.style.color = ink(balance(values[i] / largest));
      });
      return node;
    }));
  };
  const names = Object.keys(kinds);
  show(names[0]);
  return el("div", {}, choice("by", names.map((name) => [name, name]), names[0], show), holder);
}
