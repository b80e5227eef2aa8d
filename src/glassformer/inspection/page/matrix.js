// Matrices of the worked example. A number under the pointer or the focus highlights the numbers that it is computed from.
import { balance, digits, ink, packed, redrawOnThemeChange, tooltip, unpack, visible } from "./base.js";
import { el } from "./elements.js";
import { heatmap } from "./heatmap.js";

const MAX_TABLE_COLUMNS = 20;

/** @type {Map<string, MatrixLight>} */
const lights = new Map(); // by the name of a matrix: function that highlights a row, a column or a cell

/**
 * The parts of matrices that number [i, j] is computed from, as [name, row, column]; null: all rows or columns.
 * @param {Operand[]} operands @param {number} i @param {number} j
 * @returns {[name: string, row: number | null, column: number | null][]}
 */
function sourcesOf(operands, i, j) {
  /** @param {Operand["row"]} index @param {number} shift */
  const resolve = (index, shift) => (index === "row" ? i : index === "column" ? j - shift : index);
  /** @type {[name: string, row: number | null, column: number | null][]} */
  const sources = operands.map(({ name, row, column, shift }) => [name, resolve(row, 0), resolve(column, shift)]);
  return sources
    .filter(([name, , column]) => lights.has(name) && (column === null || lights.get(name).isColumn(column)));
}

/** @param {MatrixRecord} record @param {number} i @param {number} j @param {string} text */
function describe({ name, operands }, i, j, text) {
  const sources = sourcesOf(operands, i, j).map(([source, row, column]) =>
    `${[row !== null && `row ${row + 1}`, column !== null && `column ${column + 1}`].filter(Boolean).join(", ")} of ${source}`);
  return `${name}[${i + 1}, ${j + 1}] = ${text}${sources.length ? `, from ${sources.join(" and ")}` : ""}`;
}

/**
 * Highlight what number [i, j] is computed from; null: nothing.
 * @param {Operand[]} operands @param {number | null} i @param {number | null} j
 */
function highlight(operands, i, j) {
  for (const { light } of lights.values()) light(null, null);
  if (i !== null) for (const [name, row, column] of sourcesOf(operands, i, j)) lights.get(name).light(row, column);
}

/**
 * A small matrix as a table of colored numbers, a large one as a heat map.
 * @param {MatrixRecord} record
 */
export function matrix(record) {
  const { name, shape, values, rows, columns, operands } = record;
  const [n, m] = shape;
  const flat = Array.isArray(values) ? values : Array.from(unpack(values));
  const largest = flat.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
  const title = `${name} [${n} x ${m}]`;
  const isColumn = (j) => j >= 0 && j < m;
  if (m > MAX_TABLE_COLUMNS || n > 3 * MAX_TABLE_COLUMNS) {
    const labels = (texts, count) => (texts.length ? texts : d3.range(count).map((i) => String(i + 1)));
    const { node, light } = heatmap({
      rows: labels(rows, n), columns: labels(columns, m), values: Object.assign(Float32Array.from(flat), { shape }),
      color: () => (x) => packed(balance(x / largest)), label: name,
      describe: (i, j, x) => describe(record, i, j, digits(x, 6)),
      hover: (i, j) => highlight(operands, i, j),
    });
    lights.set(name, { light, isColumn });
    return el("figure", { class: "matrix" }, el("figcaption", {}, title), node);
  }
  const cells = d3.range(n).map((i) => d3.range(m).map((j) => cell(i, j)));
  const rowHeads = rows.map((text) => el("th", { scope: "row" }, visible(text)));
  const columnHeads = columns.map((text) => el("th", { scope: "col" }, visible(text)));

  function cell(i, j) {
    const x = flat[i * m + j];
    const text = describe(record, i, j, String(x));
    const node = el("td", tooltip(text, {}, (isOn) => highlight(operands, isOn ? i : null, isOn ? j : null)),
      Number.isInteger(x) ? String(x) : digits(x, 4));
    node.tabIndex = i + j ? -1 : 0; // the arrow keys reach the others
    redrawOnThemeChange(() => {
      node.style.background = balance(x / largest);
      node.style.color = ink(balance(x / largest));
    });
    return node;
  }

  function key(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const i = cells.findIndex((row) => row.includes(event.target));
    const next = cells[i + step[0]]?.[cells[i].indexOf(event.target) + step[1]];
    if (!next) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  function light(row, column) {
    const isOn = (i, j) => (row !== null || column !== null) && (row ?? i) === i && (column ?? j) === j;
    cells.forEach((line, i) => line.forEach((node, j) => node.classList.toggle("on", isOn(i, j))));
    rowHeads.forEach((head, i) => head.classList.toggle("on", i === row));
    columnHeads.forEach((head, j) => head.classList.toggle("on", j === column));
  }
  lights.set(name, { light, isColumn });
  return el("div", { class: "matrix" }, el("div", { class: "label" }, title),
    el("div", { class: "scroll", tabindex: 0 }, el("table", { "aria-label": title, onkeydown: key }, el("tbody", {},
      columns.length ? el("tr", {}, el("th", {}), columnHeads) : null,
      cells.map((line, i) => el("tr", {}, rowHeads[i] ?? null, line))))));
}
