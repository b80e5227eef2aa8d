// A heat map with a token beside every row and over every column: hover, arrows and Enter to pin.
import { drawn, el, pixels, shade, table, visible } from "./base.js";

/**
 * @param {object} options
 * @param {string[]} options.rows labels
 * @param {string[]} options.columns labels
 * @param {Float32Array} options.values with shape [rows, columns]
 * @param {(x: number) => string} [options.colour] of a value; default: shades of 0 to the largest
 * @param {(row: number, column: number, x: number) => string} options.say what is read out of a cell
 * @param {(row: number | null, column: number | null) => void} [options.hover]
 * @param {(row: number) => number} [options.mark] column of each row to mark
 */
export function heatmap({ rows, columns, values, colour, say, hover, mark, label }) {
  const [n, m] = [rows.length, columns.length];
  const size = Math.max(11, Math.min(30, Math.floor(760 / m), Math.floor(760 / n)));
  const rowLabels = rows.map((text) => el("span", {}, visible(text)));
  const every = m > 64 ? Math.ceil(14 / size) * 4 : 1; // of so many columns a few are enough to count by
  const columnLabels = columns.map((text, j) => el("span", {}, el("b", {}, j % every ? "" : visible(text))));
  const longest = columns.reduce((a, text) => Math.max(a, visible(text).length), 1);
  const canvas = el("canvas", { class: "cells" });
  const frame = el("div", { class: "frame", hidden: true });
  const marks = mark ? rows.map((_, i) => el("i", { style: place(mark(i), i) })) : [];
  const cells = el(
    "div",
    {
      class: "cell-area", tabindex: 0, role: "application",
      "aria-label": `${label || "heat map"}: arrow keys move, Enter pins`,
      style: { width: `${m * size}px`, height: `${n * size}px`, "--cell": `${size}px` },
      onpointermove: (event) => {
        if (!pinned) follow(event);
      },
      onpointerleave: () => pinned || show(null, null),
      onclick: (event) => {
        const was = at;
        if (event.detail) { // a pointer's click, or a tap, which nothing hovered before
          pinned = false;
          follow(event);
        }
        pinned = at !== null && !(cells.classList.contains("pinned") && was && was[0] === at[0] && was[1] === at[1]);
        cells.classList.toggle("pinned", pinned);
      },
      onkeydown: (event) => {
        const [row, column] = at || [0, 0];
        const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
        if (step) show(Math.max(0, Math.min(n - 1, row + step[0])), Math.max(0, Math.min(m - 1, column + step[1])));
        else if (event.key === "Enter") cells.click();
        else if (event.key === "Escape") { pinned = false; cells.classList.remove("pinned"); show(null, null); }
        else return;
        event.preventDefault();
      },
    },
    canvas, frame, marks,
  );
  const largest = values.reduce((a, b) => Math.max(a, b), 1e-9);
  const rest = colour ? "\u00a0" : `the deepest shade is ${largest.toPrecision(3)}`;
  const readout = el("output", { class: "readout" }, rest);
  let at = null;
  let pinned = false;

  function place(column, row) {
    return { left: `${column * size + size / 2}px`, top: `${row * size + size / 2}px` };
  }

  function follow(event) {
    const box = cells.getBoundingClientRect();
    show(Math.floor((event.clientY - box.top) / size), Math.floor((event.clientX - box.left) / size));
  }

  function show(row, column) {
    if (row !== null && (row < 0 || row >= n || column < 0 || column >= m)) return;
    if (at && row !== null && at[0] === row && at[1] === column) return;
    if (at) {
      rowLabels[at[0]].classList.remove("on");
      columnLabels[at[1]].classList.remove("on");
    }
    at = row === null ? null : [row, column];
    frame.hidden = at === null;
    if (at) {
      rowLabels[row].classList.add("on");
      columnLabels[column].classList.add("on");
      frame.style.transform = `translate(${column * size}px, ${row * size}px)`;
      readout.textContent = say(row, column, values[row * m + column]);
    } else readout.textContent = rest;
    if (hover) hover(row, column);
  }
  drawn(() => {
    pixels(canvas, values, colour ? colour() : ((look) => (x) => look(x / largest))(table(shade)));
  });
  return el(
    "div", { class: "heat", style: { "--cell": `${size}px` } },
    readout,
    el(
      "div", { class: "scroll" },
      el("div", { class: "heat-grid" }, el("div", { class: "corner" }), el("div", { class: "columns", style: { height: `${Math.min(6.5, 1 + 0.4 * longest)}rem` } }, columnLabels),
        el("div", { class: "rows" }, rowLabels), cells),
    ),
  );
}
