// Attention weights as lines between two columns of tokens. Hovering shows the lines of one token, a click pins them.
import { redrawOnThemeChange, visible } from "./base.js";
import { el } from "./elements.js";

const HEIGHT = 22;
const WIDTH = 220;

export function lines({ rows, columns, values, rowTitle, columnTitle }) {
  const [n, m] = [rows.length, columns.length];
  const height = Math.max(n, m) * HEIGHT;
  const canvas = el("canvas", { style: { width: `${WIDTH}px`, height: `${height}px` } });
  let selected = null; // ["row" | "column", number]
  let pinned = null;

  function token(side, text, i) {
    return el(
      "button",
      {
        type: "button",
        onpointerenter: () => show([side, i]),
        onpointerleave: () => show(null),
        onfocus: () => show([side, i]),
        onblur: () => show(null),
        onclick: () => {
          pinned = pinned && pinned[0] === side && pinned[1] === i ? null : [side, i];
          show([side, i]);
        },
      },
      visible(text),
    );
  }
  const left = rows.map((text, i) => token("row", text, i));
  const right = columns.map((text, i) => token("column", text, i));

  function show(next) {
    selected = next || pinned;
    for (const [side, buttons] of [["row", left], ["column", right]]) {
      buttons.forEach((button, i) => {
        button.classList.toggle("on", Boolean(selected && selected[0] === side && selected[1] === i));
        button.setAttribute("aria-pressed", String(Boolean(pinned && pinned[0] === side && pinned[1] === i)));
        const weight = !selected || selected[0] === side ? 0 : selected[0] === "row" ? values[selected[1] * m + i] : values[i * m + selected[1]];
        button.style.setProperty("--weight", `${Math.round(weight * 100)}%`);
      });
    }
    draw();
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = WIDTH * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    const stroke = (i, j) => {
      const weight = values[i * m + j];
      if (weight < 0.02) return;
      context.globalAlpha = Math.min(1, weight);
      context.lineWidth = 0.5 + 3 * weight;
      const [from, to] = [i * HEIGHT + HEIGHT / 2, j * HEIGHT + HEIGHT / 2];
      context.beginPath();
      context.moveTo(0, from);
      context.bezierCurveTo(WIDTH / 2, from, WIDTH / 2, to, WIDTH, to);
      context.stroke();
    };
    if (!selected) for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) stroke(i, j);
    else if (selected[0] === "row") for (let j = 0; j < m; j++) stroke(selected[1], j);
    else for (let i = 0; i < n; i++) stroke(i, selected[1]);
  }
  redrawOnThemeChange(draw);
  return el(
    "div", { class: "scroll" },
    el(
      "div", { class: "lines" },
      el("div", { class: "column left" }, el("h4", {}, rowTitle), left),
      el("div", {}, el("h4", {}, "\u00a0"), canvas),
      el("div", { class: "column" }, el("h4", {}, columnTitle), right),
    ),
  );
}
