// Line plots over steps or layers, drawn with Observable Plot.
import { redrawOnThemeChange } from "./base.js";
import { el } from "./elements.js";

/**
 * A plot that is redrawn when the color scheme changes.
 * @param {() => object} options
 */
export function plotted(options) {
  const container = el("div", { class: "plot" });
  redrawOnThemeChange(() => {
    const style = { background: "transparent", fontSize: "12px", overflow: "visible" };
    container.replaceChildren(Plot.plot({ width: 720, height: 260, style, ...options() }));
  });
  return container;
}

/** Value of a color variable of the style sheet. */
export function accent(name = "--accent") {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
