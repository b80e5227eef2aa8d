// Attention: thumbnails of all heads, and one head, their mean or their roll-out as a heat map and as lines.
import { choice, digits, redrawOnThemeChange, mean, part, pixels, shade, table, unpack, visible } from "./base.js";
import { el } from "./elements.js";
import { heatmap } from "./heatmap.js";
import { isOff, switchButtons, unchanged } from "./live_controls.js";
import { lines } from "./lines.js";

const KINDS = { encoder: "encoder self-attention", decoder: "decoder self-attention", cross: "cross-attention" };

/** @type {HeadChoice} */
let last; // the choice in a record that was shown before
/** @param {HeadChoice} _ */
let chosen = (_) => {};
/** @param {Partial<HeadChoice>} _ */
let select = (_) => {};

/**
 * Call a function with the kind, the layer and the head that is shown, now and after each choice.
 * @param {(choice: HeadChoice) => void} act
 */
export function whenChosen(act) {
  chosen = act;
  if (last) act(last);
}

/**
 * Show a head: its kind, layer and number.
 * @param {HeadName} choice
 */
export function showHead(choice) {
  select(choice);
}

/**
 * The attention maps of a record, with their numbers.
 * @param {InspectionRecord} record @returns {AttentionMap<Matrix>[]}
 */
export function mapsOf(record) {
  return record.attention.map((a) => ({
    ...a,
    weights: unpack(a.weights),
    norms: Object.fromEntries(Object.entries(a.norms).map(([name, x]) => [name, unpack(x)])),
  }));
}

/**
 * A small map of a head, which acts on a click. `isPressed`: of one that can be chosen; all others have the attention
 * in their title.
 * @param {InspectionRecord} record @param {AttentionMap<Matrix>} a @param {number} head @param {() => void} act
 * @param {boolean} [isPressed]
 */
export function thumbnail(record, a, head, act, isPressed) {
  const canvas = el("canvas", {});
  redrawOnThemeChange(() => pixels(canvas, part(a.weights, head), table(shade)));
  const off = isOff(record, a, head);
  const [which, pressed] = isPressed === undefined ? [`${KINDS[a.kind]}, `, {}] : ["", { "aria-pressed": String(isPressed) }];
  const title = `${which}layer ${a.layer + 1}, head ${head + 1}${off ? ", switched off" : ""}`;
  return el("button", { type: "button", class: off ? "thumbnail off" : "thumbnail", title, "aria-label": title, ...pressed, onclick: act }, canvas);
}

/**
 * Begin with the head of a link.
 * @param {HeadChoice} choice
 */
export function beginWith(choice) {
  last = choice;
}

/** @param {InspectionRecord} record @param {AttentionMap<Matrix>[]} maps */
export function attention(record, maps) {
  chosen = () => {};
  const kinds = [...new Set(maps.map((a) => a.kind))];
  /** @type {HeadState} */
  const state = { kind: kinds.includes("cross") ? "cross" : kinds[0], map: null, head: "mean" };
  const controls = el("div", { class: "controls" });
  const overview = el("div", { class: "overview" });
  const view = el("div", { class: "view" });

  /** @param {AttentionKind} kind */
  function ofKind(kind) {
    return maps.filter((a) => a.kind === kind);
  }

  /** @param {Partial<HeadState>} change */
  function choose(change) {
    Object.assign(state, change);
    if (change.kind) {
      const layers = ofKind(state.kind);
      state.map = layers[layers.length - 1];
      state.head = "mean";
    }
    if (typeof state.head === "number" && state.head >= state.map.weights.shape[0]) state.head = "mean";
    const restoreFocus = focusRestorer(document.activeElement);
    last = { kind: state.kind, layer: state.map.layer, head: state.head };
    chosen(last);
    if (window !== parent) parent.postMessage({ view: last }, "*");
    draw();
    if (restoreFocus) restoreFocus();
  }

  /**
   * A function that moves the focus to the redrawn copy of a control; null if the element is no control.
   * @param {Element} element
   */
  function focusRestorer(element) {
    const places = /** @type {[HTMLElement, "input" | "button"][]} */ ([[controls, "input"], [overview, "button"]]);
    for (const [holder, kind] of places) {
      const n = [...holder.querySelectorAll(kind)].findIndex((other) => other === element);
      const { value } = /** @type {HTMLInputElement} */ (element);
      const key = value && `input[value="${value}"]`;
      const field = element.closest("fieldset") && [...controls.children].indexOf(element.closest("fieldset"));
      if (n >= 0 && kind === "button") return () => holder.querySelectorAll(kind)[n]?.focus();
      if (n >= 0) return () => /** @type {HTMLInputElement} */ (controls.children[field]?.querySelector(key))?.focus();
    }
    return null;
  }

  function draw() {
    const layers = ofKind(state.kind);
    const n = state.map.weights.shape[0];
    /** @type {[value: number | string, text: string][]} */
    const heads = [["mean", "mean"]];
    for (let i = 0; i < n; i += 1) heads.push([i, String(i + 1)]);
    if (record.rollout[state.kind]) heads.push(["roll-out", "roll-out of all layers"]);
    controls.replaceChildren(
      kinds.length > 1
        ? choice("attention", kinds.map((kind) => [kind, KINDS[kind]]), state.kind, (kind) => choose({ kind }))
        : "",
      choice("layer", layers.map((a) => [a.layer, String(a.layer + 1)]), state.map.layer, (layer) =>
        choose({ map: layers.find((a) => a.layer === layer) })),
      choice("head", heads, state.head, (head) => choose({ head })),
      switchButtons(record, state.map, state.head),
    );
    overview.replaceChildren(
      ...layers.map((a) =>
        el(
          "div", { class: "thumbnails" }, el("span", {}, `layer ${a.layer + 1}`),
          Array.from({ length: a.weights.shape[0] }, (_, head) =>
            thumbnail(record, a, head, () => choose({ map: a, head }), a === state.map && head === state.head)),
        ),
      ),
    );
    const [rows, columns] = [record.sides[state.map.queries].tokens, record.sides[state.map.keys].tokens];
    const values =
      state.head === "mean" ? mean(state.map.weights)
      : state.head === "roll-out" ? unpack(record.rollout[state.kind])
      : part(state.map.weights, Number(state.head));
    const verb = state.head === "roll-out" ? "has roll-out weight on" : "attends to";
    const weights = { rows, columns, values };
    const map = heatmap({
      ...weights,
      label: KINDS[state.kind],
      describe: (i, j, x) => `“${visible(rows[i])}” ${verb} “${visible(columns[j])}”: ${digits(x)}`,
      hover: (i, j) => tokens.show(i, j),
    });
    const tokens = lines({
      ...weights, rowTitle: `${state.map.queries} (queries)`, columnTitle: `${state.map.keys} (keys)`,
      hover: (i, j) => map.light(i, j),
    });
    view.replaceChildren(map.node, tokens.node, norms(state, rows, columns));
  }
  if (!maps.length) return el("p", {}, "This model has no attention.");
  select = ({ kind, layer, head }) => {
    choose({ kind: kinds.includes(kind) ? kind : state.kind });
    if (layer !== undefined) choose({ map: ofKind(state.kind).find((a) => a.layer === layer) ?? state.map, head });
  };
  select(last ?? state);
  return el("div", {}, controls, unchanged(record), overview, view);
}

/**
 * Norms of queries, keys and values, one bar per token.
 * @param {HeadState} state @param {string[]} rows @param {string[]} columns
 */
function norms({ map, head }, rows, columns) {
  const sides = { queries: rows, keys: columns, values: columns };
  return el(
    "div", { class: "norms" },
    Object.entries(map.norms).map(([name, all]) => {
      const values = typeof head === "number" ? part(all, head) : mean(all);
      const largest = values.reduce((a, b) => Math.max(a, b), 1e-9);
      return el(
        "div", {}, el("div", { class: "label" }, `norm of ${name}`),
        el(
          "ol", { class: "bars", tabindex: 0 },
          [...sides[name]].map((token, i) =>
            el(
              "li", { style: { "--fraction": `${(100 * values[i]) / largest}%` } },
              el("span", {}, visible(token)), el("b", {}, digits(values[i], 2)),
            ),
          ),
        ),
      );
    }),
  );
}
