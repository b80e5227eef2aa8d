// Arrays and colors shared by all parts of a page.

import { el } from "./elements.js";

/**
 * Decode an array encoded by `pack` in arrays.py: a flat Float32Array with a `shape` property. One with `values` is not
 * encoded.
 * @param {Packed} packed @returns {Matrix}
 */
export function unpack(packed) {
  if (packed.values) return Object.assign(packed.values, { shape: packed.shape });
  const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
  const steps = new Uint16Array(bytes.buffer);
  const values = new Float32Array(steps.length);
  const step = (packed.high - packed.low) / 65535;
  for (let i = 0; i < steps.length; i++) values[i] = packed.low + steps[i] * step;
  return Object.assign(values, { shape: packed.shape, low: packed.low, high: packed.high });
}

/**
 * Item i of an array along its first axis.
 * @param {Matrix} values @param {number} i @returns {Matrix}
 */
export function part(values, i) {
  const [, ...shape] = values.shape;
  const size = shape.reduce((a, b) => a * b, 1);
  return Object.assign(values.subarray(i * size, (i + 1) * size), { shape });
}

/**
 * The mean over the first axis.
 * @param {Matrix} values @returns {Matrix}
 */
export function mean(values) {
  const [n, ...shape] = values.shape;
  const size = shape.reduce((a, b) => a * b, 1);
  const result = new Float32Array(size);
  for (let i = 0; i < n; i++) for (let j = 0; j < size; j++) result[j] += values[i * size + j] / n;
  return Object.assign(result, { shape });
}

/**
 * A token with visible white space: "·" for a space, "↵" for a line end, "⇥" for a tab, "∅" for an empty token.
 * @param {string} token
 */
export function visible(token) {
  return token.replace(/^ | $/g, "·").replace(/\n/g, "↵").replace(/\t/g, "⇥") || "∅";
}

const PARTS = {
  self_attention: "self-attention", self_attn_residual: "self-attention", cross_attention: "cross-attention",
  cross_attn_residual: "cross-attention", feedforward: "feed-forward", feedforward_residual: "feed-forward",
};

/**
 * Stack, number of the layer and part of a module path, "decoder.0.cross_attention": "decoder", 1, "cross-attention".
 * @param {string} path @returns {{ part: string, stack?: string, layer?: number }}
 */
export function moduleParts(path) {
  const names = path.split(".");
  const layer = names.findIndex((name) => /^\d+$/.test(name));
  const part = names.slice(layer + 1).map((name) => PARTS[name] || name).join(" ");
  return layer < 0 ? { part } : { stack: names.slice(0, layer).join(" "), layer: Number(names[layer]) + 1, part };
}

/**
 * A module path as text that counts layers from 1: "decoder layer 1, cross-attention".
 * @param {string} path
 */
export function moduleTitle(path) {
  const { stack, layer, part } = moduleParts(path);
  return [layer && `${stack} layer ${layer}`, part].filter(Boolean).join(", ");
}

/**
 * Format a number with n decimals, or in scientific notation if it is very small or large.
 * @param {number | null} x @param {number} n
 */
export function digits(x, n = 4) {
  if (x === null || x === undefined) return "";
  const size = Math.abs(x);
  return size !== 0 && (size < 10 ** -n || size >= 1e6) ? x.toExponential(2) : x.toFixed(n);
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");
/** @type {Set<() => void>} */
const redraws = new Set();
dark.addEventListener("change", () => redraws.forEach((draw) => draw()));

/**
 * Call a drawing function now, and again whenever the color scheme changes.
 * @param {() => void} draw
 */
export function redrawOnThemeChange(draw) {
  redraws.add(draw);
  draw();
}

/** Forget what is drawn again when the color scheme changes: it is no longer shown. */
export function forgetRedraws() {
  redraws.clear();
}

// Sequential and diverging color scales that are distinguishable with any kind of color vision.
const light = d3.interpolateRgbBasis(["#ffffff", "#d6e6f4", "#89bedc", "#3787c0", "#08488e", "#08306b"]);
const night = d3.interpolateRgbBasis(["#14171c", "#12355c", "#1c5c93", "#3f8fc9", "#8cc4ea", "#e3f2fd"]);

/**
 * Color of x, from 0 to 1.
 * @param {number} x @returns {string}
 */
export function shade(x) {
  return (dark.matches ? night : light)(Math.max(0, Math.min(1, x)));
}

/**
 * Color of x, from -1 to 1: orange below 0, blue above.
 * @param {number} x @returns {string}
 */
export function balance(x) {
  const zero = dark.matches ? "#14171c" : "#ffffff";
  const end = x < 0 ? (dark.matches ? "#f39c50" : "#b35806") : dark.matches ? "#8cc4ea" : "#08488e";
  return d3.interpolateRgb(zero, end)(Math.min(1, Math.abs(x)));
}

/**
 * A color packed as a 32-bit integer, as canvas pixels are.
 * @param {string} color
 */
export function packed(color) {
  const { r, g, b } = d3.rgb(color);
  return (255 << 24) | (b << 16) | (g << 8) | r;
}

/**
 * A lookup table of 256 colors of a scale, packed as 32-bit integers.
 * @param {(x: number) => string} scale @returns {(x: number) => number}
 */
export function table(scale, from = 0, to = 1) {
  const colors = new Uint32Array(256);
  for (let i = 0; i < 256; i++) colors[i] = packed(scale(from + ((to - from) * i) / 255));
  return (x) => colors[Math.max(0, Math.min(255, Math.round(((x - from) / (to - from)) * 255)))];
}

/**
 * Text color that is readable on a background color.
 * @param {string} color
 */
export function ink(color) {
  return d3.lab(color).l > 60 ? "#111" : "#fff";
}

/**
 * Draw a matrix on a canvas, one pixel per value.
 * @param {HTMLCanvasElement} canvas @param {Matrix} values @param {(x: number) => number} color
 */
export function pixels(canvas, values, color) {
  const [rows, columns] = values.shape;
  canvas.width = columns;
  canvas.height = rows;
  const image = new ImageData(columns, rows);
  const target = new Uint32Array(image.data.buffer);
  for (let i = 0; i < target.length; i++) target[i] = color(values[i]);
  canvas.getContext("2d").putImageData(image, 0, 0);
}

const bar = el("output", { class: "bar", hidden: true });

/**
 * Attributes of an element with a tooltip, shown at the foot of the page on hover, tap or focus; `changed` is called
 * with whether it is shown.
 * @param {string} text @param {Record<string, any>} attributes @param {(isShown: boolean) => void} changed
 */
export function tooltip(text, attributes = {}, changed = () => {}) {
  const show = (event) => {
    changed(true);
    bar.textContent = text;
    bar.hidden = false;
    if (!bar.isConnected) document.body.append(bar);
    // In a frame that is as high as its content, the foot may be out of sight: the text is below the element.
    if (window !== parent) bar.style.inset = `${event.currentTarget.getBoundingClientRect().bottom + 4}px auto auto 0`;
  };
  const hide = () => {
    changed(false);
    bar.hidden = true;
  };
  return { ...attributes, tabindex: 0, onpointerenter: show, onclick: show, onfocus: show, onpointerleave: hide, onblur: hide };
}

/**
 * A titled, collapsible section of the page.
 * @param {string} title @param {string | null} description @param {...(Child | Child[])} children
 */
export function section(title, description, ...children) {
  return el(
    "details", { class: "section", open: true },
    el("summary", {}, el("h2", {}, title)),
    description ? el("p", { class: "why" }, description) : null,
    ...children,
  );
}

/**
 * Open a section and scroll to it.
 * @param {HTMLDetailsElement} section
 */
export function reveal(section) {
  section.open = true;
  section.scrollIntoView();
  if (window !== parent) parent.postMessage({ scrollTo: section.getBoundingClientRect().top }, "*"); // a frame that is as high as its content
}

/**
 * A group of radio buttons.
 * @template T @param {string} label @param {[value: T, text: string][]} items @param {T} selected
 * @param {(value: T) => void} select
 */
export function choice(label, items, selected, select) {
  const name = `choice-${Math.random().toString(36).slice(2)}`;
  return el(
    "fieldset", { class: "choice" },
    el("legend", {}, label),
    items.map(([value, text]) =>
      el(
        "label", {},
        el("input", {
          type: "radio", name, value: String(value), checked: value === selected, onchange: () => select(value),
        }),
        el("span", {}, text),
      ),
    ),
  );
}
