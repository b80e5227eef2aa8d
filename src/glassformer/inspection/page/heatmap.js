// Heat map with labeled rows and columns. Hover or arrow keys select a cell, click or Enter pins it.
import { redrawOnThemeChange, pixels, shade, table, visible } from "./base.js";
import { el } from "./elements.js";

/**
 * @param {object} options
 * @param {string[]} options.rows labels
 * @param {string[]} options.columns labels
 * @param {Matrix} options.values with shape [rows, columns]
 * @param {() => (x: number) => number} [options.color] color scale; default: 0 to the largest value
 * @param {(row: number, column: number, x: number) => string} options.describe text for a selected cell
 * @param {(row: number | null, column: number | null) => void} [options.hover]
 * @param {string} [options.label] what the map shows
 * @param {(row: number) => number} [options.mark] column to mark in each row
 * @returns {{node: HTMLElement, light: (row: number | null, column: number | null) => void}} the element, and a function
 *   that highlights a row, a column, or both
 */
export function heatmap({ rows, columns, values, color, describe, hover, mark, label }) {
  const [n, m] = [rows.length, columns.length];
  const size = Math.max(11, Math.min(30, Math.floor(760 / m), Math.floor(760 / n)));
  const rowLabels = rows.map((text) => el("span", {}, visible(text)));
  const labelStep = m > 64 ? Math.ceil(14 / size) * 4 : 1; // many columns: label only some of them
  const columnLabels = columns.map((text, j) => el("span", {}, el("b", {}, j % labelStep ? "" : visible(text))));
  const maxLength = columns.reduce((a, text) => Math.max(a, visible(text).length), 1);
  const canvas = el("canvas", { class: "cells" });
  const frame = el("div", { class: "frame", hidden: true });
  const bands = ["row", "column"].map((side) => el("div", { class: `band ${side}`, hidden: true }));
  const marks = mark ? rows.map((_, i) => el("i", { style: center(mark(i), i) })) : [];
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
        const previous = selected;
        if (event.detail) { // click or tap; a tap is not preceded by a pointermove event
          pinned = false;
          follow(event);
        }
        pinned = selected !== null && !(cells.classList.contains("pinned") && previous && previous[0] === selected[0] && previous[1] === selected[1]);
        cells.classList.toggle("pinned", pinned);
      },
      onkeydown: (event) => {
        const [row, column] = selected || [0, 0];
        const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
        if (step) show(Math.max(0, Math.min(n - 1, row + step[0])), Math.max(0, Math.min(m - 1, column + step[1])));
        else if (event.key === "Enter") cells.click();
        else if (event.key === "Escape") { pinned = false; cells.classList.remove("pinned"); show(null, null); }
        else return;
        event.preventDefault();
      },
    },
    canvas, bands, frame, marks,
  );
  const largest = values.reduce((a, b) => Math.max(a, b), 1e-9);
  const idle = color ? "\u00a0" : `Color scale: 0 to ${largest.toPrecision(3)}`;
  const readout = el("output", { class: "readout" }, idle);
  let selected = null;
  let pinned = false;

  function center(column, row) {
    return { left: `${column * size + size / 2}px`, top: `${row * size + size / 2}px` };
  }

  function follow(event) {
    const box = cells.getBoundingClientRect();
    show(Math.floor((event.clientY - box.top) / size), Math.floor((event.clientX - box.left) / size));
  }

  function show(row, column) {
    if (row !== null && (row < 0 || row >= n || column < 0 || column >= m)) return;
    if (selected && row !== null && selected[0] === row && selected[1] === column) return;
    if (selected) {
      rowLabels[selected[0]].classList.remove("on");
      columnLabels[selected[1]].classList.remove("on");
    }
    selected = row === null ? null : [row, column];
    frame.hidden = selected === null;
    if (selected) {
      rowLabels[row].classList.add("on");
      columnLabels[column].classList.add("on");
      frame.style.transform = `translate(${column * size}px, ${row * size}px)`;
      readout.textContent = describe(row, column, values[row * m + column]);
    } else readout.textContent = idle;
    if (hover) hover(row, column);
  }
  /** Highlight a row, a column, or both; null: none. */
  function light(row, column) {
    [[row, "top"], [column, "left"]].forEach(([index, side], i) => {
      bands[i].hidden = index === null;
      bands[i].style.setProperty(side, `${index * size}px`);
    });
  }

  redrawOnThemeChange(() => {
    pixels(canvas, values, color ? color() : ((colorOf) => (x) => colorOf(x / largest))(table(shade)));
  });
  const node = el(
    "div", { class: "heat", style: { "--cell": `${size}px` } },
    readout,
    el(
      "div", { class: "scroll", tabindex: 0 },
      el("div", { class: "heat-grid" }, el("div", { class: "corner" }), el("div", { class: "columns", style: { height: `${Math.min(6.5, 1 + 0.4 * maxLength)}rem` } }, columnLabels),
        el("div", { class: "rows" }, rowLabels), cells),
    ),
  );
  return { node, light };
}
