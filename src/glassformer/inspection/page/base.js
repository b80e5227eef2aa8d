// Elements, arrays and colours that every part of a page uses. Text only ever goes in as text.

/** An element with attributes and children; a string child is text, an `on…` attribute a listener. */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, x] of Object.entries(value)) node.style.setProperty(name, x);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

/** The array that Python packed: values with `shape`, rows last. */
export function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
  const steps = new Uint16Array(bytes.buffer);
  const values = new Float32Array(steps.length);
  const step = (packed.high - packed.low) / 65535;
  for (let i = 0; i < steps.length; i++) values[i] = packed.low + steps[i] * step;
  return Object.assign(values, { shape: packed.shape, low: packed.low, high: packed.high });
}

/** A part of an array along its first axis. */
export function part(values, i) {
  const [, ...shape] = values.shape;
  const size = shape.reduce((a, b) => a * b, 1);
  return Object.assign(values.subarray(i * size, (i + 1) * size), { shape });
}

/** The mean over the first axis. */
export function mean(values) {
  const [n, ...shape] = values.shape;
  const size = shape.reduce((a, b) => a * b, 1);
  const found = new Float32Array(size);
  for (let i = 0; i < n; i++) for (let j = 0; j < size; j++) found[j] += values[i * size + j] / n;
  return Object.assign(found, { shape });
}

/** A token as it can be seen: a space is an open box, a line end an arrow. */
export function visible(token) {
  return token.replace(/^ | $/g, "·").replace(/\n/g, "↵").replace(/\t/g, "⇥") || "∅";
}

export function digits(x, n = 4) {
  if (x === null || x === undefined) return "";
  const size = Math.abs(x);
  return size !== 0 && (size < 10 ** -n || size >= 1e6) ? x.toExponential(2) : x.toFixed(n);
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const redraws = new Set();
dark.addEventListener("change", () => redraws.forEach((draw) => draw()));

/** Draw now, and again whenever light turns to dark or back. */
export function drawn(draw) {
  redraws.add(draw);
  draw();
}

// One hue and a rising lightness, or two hues around none: told apart with any kind of colour vision.
const light = d3.interpolateRgbBasis(["#ffffff", "#d6e6f4", "#89bedc", "#3787c0", "#08488e", "#08306b"]);
const night = d3.interpolateRgbBasis(["#14171c", "#12355c", "#1c5c93", "#3f8fc9", "#8cc4ea", "#e3f2fd"]);

/** The colour of x between 0 and 1. */
export function shade(x) {
  return (dark.matches ? night : light)(Math.max(0, Math.min(1, x)));
}

/** The colour of x between -1 and 1: orange below nothing, blue above. */
export function balance(x) {
  const none = dark.matches ? "#14171c" : "#ffffff";
  const end = x < 0 ? (dark.matches ? "#f39c50" : "#b35806") : dark.matches ? "#8cc4ea" : "#08488e";
  return d3.interpolateRgb(none, end)(Math.min(1, Math.abs(x)));
}

/** Colours as bytes, looked up and not made anew for each of many cells. */
export function table(scale, from = 0, to = 1) {
  const found = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const { r, g, b } = d3.rgb(scale(from + ((to - from) * i) / 255));
    found[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return (x) => found[Math.max(0, Math.min(255, Math.round(((x - from) / (to - from)) * 255)))];
}

/** Black or white, whichever can be read on a colour. */
export function ink(colour) {
  return d3.lab(colour).l > 60 ? "#111" : "#fff";
}

/** Values as pixels, one each. */
export function pixels(canvas, values, colour) {
  const [rows, columns] = values.shape;
  canvas.width = columns;
  canvas.height = rows;
  const image = new ImageData(columns, rows);
  const target = new Uint32Array(image.data.buffer);
  for (let i = 0; i < target.length; i++) target[i] = colour(values[i]);
  canvas.getContext("2d").putImageData(image, 0, 0);
}

const bar = el("output", { class: "bar", hidden: true });

/** Attributes of an element that has more to say: at the foot of the page, by pointer, tap or Tab. */
export function told(text, attributes = {}) {
  const say = () => {
    bar.textContent = text;
    bar.hidden = false;
    if (!bar.isConnected) document.body.append(bar);
  };
  const hush = () => { bar.hidden = true; };
  return { ...attributes, tabindex: 0, onpointerenter: say, onclick: say, onfocus: say, onpointerleave: hush, onblur: hush };
}

/** A titled part of the page that can be closed. */
export function section(title, explained, ...children) {
  return el(
    "details", { class: "section", open: true },
    el("summary", {}, el("h2", {}, title)),
    explained ? el("p", { class: "why" }, explained) : null,
    ...children,
  );
}

/** Buttons of which one is chosen; arrows move among them. */
export function choice(label, items, chosen, choose) {
  const name = `choice-${Math.random().toString(36).slice(2)}`;
  return el(
    "fieldset", { class: "choice" },
    el("legend", {}, label),
    items.map(([value, text]) =>
      el(
        "label", {},
        el("input", {
          type: "radio", name, value: String(value), checked: value === chosen, onchange: () => choose(value),
        }),
        el("span", {}, text),
      ),
    ),
  );
}
