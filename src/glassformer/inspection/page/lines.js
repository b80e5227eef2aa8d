// Attention weights as lines between two columns of tokens. Hovering shows the lines of one token, a click pins them.
import { redrawOnThemeChange, visible } from "./base.js";
import { el } from "./elements.js";

const HEIGHT = 22;
const WIDTH = Math.min(220, Math.round(innerWidth / 4)); // both columns of tokens fit beside it

/**
 * @param {object} options
 * @param {string[]} options.rows @param {string[]} options.columns @param {Float32Array} options.values
 * @param {string} options.rowTitle @param {string} options.columnTitle
 * @param {(row: number | null, column: number | null) => void} options.hover called with the token whose lines are
 *   shown
 * @returns the element, and a function that shows the lines of a row, a column, or of a row with that to a column in another color
 */
export function lines({ rows, columns, values, rowTitle, columnTitle, hover }) {
  const [n, m] = [rows.length, columns.length];
  const height = Math.max(n, m) * HEIGHT;
  const canvas = el("canvas", { style: { width: `${WIDTH}px`, height: `${height}px` } });
  const none = { row: null, column: null };
  let selected = none;
  let pinned = none;

  const isSame = (a, b) => a.row === b.row && a.column === b.column;

  function token(text, own) {
    const choose = (next) => {
      show(next);
      hover(selected.row, selected.column);
    };
    return el(
      "button",
      {
        type: "button",
        onpointerenter: () => choose(own),
        onpointerleave: () => choose(none),
        onfocus: () => choose(own),
        onblur: () => choose(none),
        onclick: () => {
          pinned = isSame(pinned, own) ? none : own;
          choose(own);
        },
      },
      visible(text),
    );
  }
  const left = rows.map((text, row) => token(text, { row, column: null }));
  const right = columns.map((text, column) => token(text, { row: null, column }));

  function show(next) {
    selected = isSame(next, none) ? pinned : next;
    const { row, column } = selected;
    mark(left, row, pinned.row, (i) => (row === null && column !== null ? values[i * m + column] : 0));
    mark(right, column, pinned.column, (j) => (row !== null ? values[row * m + j] : 0));
    draw();
  }

  function mark(buttons, on, pressed, weightOf) {
    buttons.forEach((button, i) => {
      button.classList.toggle("on", i === on);
      button.setAttribute("aria-pressed", String(i === pressed));
      button.style.setProperty("--weight", `${Math.round(weightOf(i) * 100)}%`);
    });
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = WIDTH * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const colorOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
    const { row, column } = selected;
    const isCell = row !== null && column !== null;
    const stroke = (i, j) => {
      const weight = values[i * m + j];
      const isOn = isCell && j === column;
      if (weight < 0.02 && !isOn) return;
      context.strokeStyle = colorOf(isOn ? "--other" : "--accent");
      context.globalAlpha = isOn ? 1 : Math.min(1, weight);
      context.lineWidth = 0.5 + 3 * weight + Number(isOn);
      const [from, to] = [i * HEIGHT + HEIGHT / 2, j * HEIGHT + HEIGHT / 2];
      context.beginPath();
      context.moveTo(0, from);
      context.bezierCurveTo(WIDTH / 2, from, WIDTH / 2, to, WIDTH, to);
      context.stroke();
    };
    for (let i = 0; i < n; i++) {
      if (row !== null && i !== row) continue;
      for (let j = 0; j < m; j++) if (row !== null || column === null || j === column) stroke(i, j);
    }
  }
  redrawOnThemeChange(draw);
  const node = el(
    "div", { class: "scroll", tabindex: 0 },
    el(
      "div", { class: "lines" },
      el("div", { class: "column left" }, el("div", { class: "label" }, rowTitle), left),
      el("div", {}, el("div", { class: "label" }, "\u00a0"), canvas),
      el("div", { class: "column" }, el("div", { class: "label" }, columnTitle), right),
    ),
  );
  return { node, show: (row, column) => show({ row, column }) };
}
