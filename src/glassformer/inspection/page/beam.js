// Search tree: one column per step, most probable hypotheses at the top, the best hypothesis highlighted.
import { digits, redrawOnThemeChange, tooltip, visible } from "./base.js";
import { el } from "./elements.js";
import { accent } from "./curves.js";

const [WIDTH, HEIGHT, GAP] = [104, 24, 34];

/** @param {InspectionRecord} record */
export function beam(record) {
  const nodes = record.beam.map(([parent, step, text, logProb, total, status, score, fullText], i) =>
    ({ i, parent, step, text, logProb, total, status, score, fullText, isBest: record.best_path.includes(i) }));
  const steps = d3.groups(nodes, (node) => node.step);
  for (const [, column] of steps) {
    column.sort((a, b) => b.total - a.total).forEach((node, row) => { node.row = row; });
  }
  const rows = d3.max(steps, ([, column]) => column.length);
  const x = (node) => node.step * (WIDTH + GAP);
  const y = (node) => node.row * (HEIGHT + 6) + HEIGHT / 2;
  const [width, height] = [steps.length * (WIDTH + GAP), rows * (HEIGHT + 6) + 4];
  const canvas = el("canvas", { style: { width: `${width}px`, height: `${height}px` } });
  const chips = nodes.map((node) =>
    el(
      "span",
      tooltip(
        `${visible(node.text)}: log-probability ${digits(node.logProb, 3)}, sum ${digits(node.total, 3)}, ${node.status}`
          + (node.score === null ? "" : `, score ${digits(node.score, 4)}`),
        {
          class: `node ${node.status}${node.isBest ? " best" : ""}`,
          style: { left: `${x(node)}px`, top: `${y(node) - HEIGHT / 2}px`, width: `${WIDTH}px` },
        },
      ),
      el("b", {}, visible(node.text)), el("small", {}, digits(node.total, 2)),
    ),
  );
  redrawOnThemeChange(() => {
    const ratio = Math.min(window.devicePixelRatio || 1, 16000 / width);
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    for (const node of nodes) {
      if (node.parent < 0) continue;
      const from = nodes[node.parent];
      context.strokeStyle = accent(node.isBest ? "--other" : "--line");
      context.lineWidth = node.isBest ? 2.5 : 1;
      context.beginPath();
      context.moveTo(x(from) + WIDTH, y(from));
      context.bezierCurveTo(x(from) + WIDTH + GAP / 2, y(from), x(node) - GAP / 2, y(node), x(node), y(node));
      context.stroke();
    }
  });
  return el("div", {}, completed(nodes),
    el("div", { class: "scroll", tabindex: 0 }, el("div", { class: "tree", style: { width: `${width}px`, height: `${height}px` } },
      canvas, chips)));
}

/** Completed hypotheses, best first, and how the best one was selected. */
function completed(nodes) {
  const ended = nodes.filter((node) => node.score !== null).sort((a, b) => b.score - a.score);
  if (!ended.length) return null;
  const [first, second] = ended;
  const mostProbable = d3.greatest(ended, (node) => node.total);
  const words = [`The best hypothesis has score ${digits(first.score, 4)}: its sum of log-probabilities divided by the length penalty`];
  if (second) words.push(`, ${digits(first.score - second.score, 4)} above the second best`);
  words.push(mostProbable === first ? ". It also has the highest sum."
    : `. Without the length penalty, “${visible(mostProbable.fullText)}” would be the best: the penalty favors longer texts.`);
  return el("div", {},
    el("p", {}, words.join("")),
    el("div", { class: "scroll", tabindex: 0 }, el("table", {},
      el("thead", {}, el("tr", {}, ["text", "tokens", "sum", "penalty", "score"].map((t) => el("th", { scope: "col" }, t)))),
      el("tbody", {}, ended.map((node) => el("tr", { class: node === first ? "on" : "" },
        el("td", { class: "text" }, visible(node.fullText)), el("td", { class: "number" }, String(node.step + 1)),
        el("td", { class: "number" }, digits(node.total, 3)),
        el("td", { class: "number" }, digits(node.total / node.score, 3)),
        el("td", { class: "number" }, digits(node.score, 4))))))));
}
