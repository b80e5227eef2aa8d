// Every head of every layer as thumbnails; one of them, their mean or their roll-out as a map and as lines.
import { choice, digits, drawn, el, mean, part, pixels, shade, table, unpack, visible } from "./base.js";
import { heatmap } from "./heatmap.js";
import { lines } from "./lines.js";

const KINDS = { encoder: "encoder self-attention", decoder: "decoder self-attention", cross: "cross-attention" };

export function attention(record) {
  const maps = record.attention.map((a) => ({
    ...a,
    weights: unpack(a.weights),
    norms: Object.fromEntries(Object.entries(a.norms).map(([name, x]) => [name, unpack(x)])),
  }));
  const kinds = [...new Set(maps.map((a) => a.kind))];
  const state = { kind: kinds.includes("cross") ? "cross" : kinds[0], map: null, head: "mean" };
  const controls = el("div", { class: "controls" });
  const overview = el("div", { class: "overview" });
  const view = el("div", { class: "view" });

  function of(kind) {
    return maps.filter((a) => a.kind === kind);
  }

  function choose(change) {
    Object.assign(state, change);
    if (change.kind) {
      const found = of(state.kind);
      state.map = found[found.length - 1];
      state.head = "mean";
    }
    if (typeof state.head === "number" && state.head >= state.map.weights.shape[0]) state.head = "mean";
    const place = placeOf(document.activeElement);
    draw();
    if (place) place();
  }

  /** What gives the focus back to a control that is drawn anew. */
  function placeOf(element) {
    for (const [holder, kind] of [[controls, "input"], [overview, "button"]]) {
      const n = [...holder.querySelectorAll(kind)].indexOf(element);
      const key = element.value && `input[value="${element.value}"]`;
      const field = element.closest("fieldset") && [...controls.children].indexOf(element.closest("fieldset"));
      if (n >= 0 && kind === "button") return () => holder.querySelectorAll(kind)[n]?.focus();
      if (n >= 0) return () => controls.children[field]?.querySelector(key)?.focus();
    }
    return null;
  }

  function thumbnail(a, head) {
    const canvas = el("canvas", {});
    drawn(() => pixels(canvas, part(a.weights, head), table(shade)));
    return el(
      "button",
      {
        type: "button", class: "thumbnail", title: `layer ${a.layer + 1}, head ${head + 1}`,
        "aria-label": `layer ${a.layer + 1}, head ${head + 1}`,
        "aria-pressed": String(a === state.map && head === state.head),
        onclick: () => choose({ map: a, head }),
      },
      canvas,
    );
  }

  function draw() {
    const found = of(state.kind);
    const n = state.map.weights.shape[0];
    const heads = [["mean", "mean"], ...Array.from({ length: n }, (_, i) => [i, String(i + 1)])];
    if (record.rollout[state.kind]) heads.push(["roll-out", "roll-out of all layers"]);
    controls.replaceChildren(
      kinds.length > 1
        ? choice("attention", kinds.map((kind) => [kind, KINDS[kind]]), state.kind, (kind) => choose({ kind }))
        : "",
      choice("layer", found.map((a) => [a.layer, String(a.layer + 1)]), state.map.layer, (layer) =>
        choose({ map: found.find((a) => a.layer === layer) })),
      choice("head", heads, state.head, (head) => choose({ head })),
    );
    overview.replaceChildren(
      ...found.map((a) =>
        el(
          "div", { class: "thumbnails" }, el("span", {}, `layer ${a.layer + 1}`),
          Array.from({ length: a.weights.shape[0] }, (_, head) => thumbnail(a, head)),
        ),
      ),
    );
    const [rows, columns] = [record.sides[state.map.queries].tokens, record.sides[state.map.keys].tokens];
    const values =
      state.head === "mean" ? mean(state.map.weights)
      : state.head === "roll-out" ? unpack(record.rollout[state.kind])
      : part(state.map.weights, state.head);
    const said = state.head === "roll-out" ? "has of" : "looks at";
    const picture = { rows, columns, values };
    view.replaceChildren(
      heatmap({
        ...picture,
        label: KINDS[state.kind],
        say: (i, j, x) => `“${visible(rows[i])}” ${said} “${visible(columns[j])}”: ${digits(x)}`,
      }),
      lines({ ...picture, rowTitle: `${state.map.queries} (queries)`, columnTitle: `${state.map.keys} (keys)` }),
      norms(state, rows, columns),
    );
  }
  if (!maps.length) return el("p", {}, "This model has no attention.");
  choose({ kind: state.kind });
  return el("div", {}, controls, overview, view);
}

/** Lengths of queries, keys and values, a bar for each token. */
function norms({ map, head }, rows, columns) {
  const sides = { queries: rows, keys: columns, values: columns };
  return el(
    "div", { class: "norms" },
    Object.entries(map.norms).map(([name, all]) => {
      const values = typeof head === "number" ? part(all, head) : mean(all);
      const largest = values.reduce((a, b) => Math.max(a, b), 1e-9);
      return el(
        "div", {}, el("h4", {}, `length of ${name}`),
        el(
          "ol", { class: "bars" },
          [...sides[name]].map((token, i) =>
            el(
              "li", { style: { "--share": `${(100 * values[i]) / largest}%` } },
              el("span", {}, visible(token)), el("b", {}, digits(values[i], 2)),
            ),
          ),
        ),
      );
    }),
  );
}
