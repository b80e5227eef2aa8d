// Curves over steps or layers, drawn by Observable Plot.
import { drawn, el } from "./base.js";

/** Replace a holder's content by a plot, and draw it again when light turns to dark. */
export function plotted(options) {
  const holder = el("div", { class: "plot" });
  drawn(() => {
    const style = { background: "transparent", fontSize: "12px", overflow: "visible" };
    holder.replaceChildren(Plot.plot({ width: 720, height: 260, style, ...options() }));
  });
  return holder;
}

export function accent(name = "--accent") {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
