// Tabs of which one is shown.

import { el } from "./elements.js";

/**
 * Tabs for panels.
 * @param {[label: string, panel: HTMLElement][]} rows
 */
export function views(rows) {
  const tabs = rows.map(([label, panel], i) => {
    panel.id = `view${i}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", `tab${i}`);
    return el("button", { role: "tab", id: `tab${i}`, "aria-controls": panel.id, onclick: () => open(i), onkeydown: (event) => {
      if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
      const next = (i + (event.key === "ArrowRight" ? 1 : rows.length - 1)) % rows.length;
      open(next);
      tabs[next].focus();
    } }, label);
  });
  /** @param {number} i */
  const open = (i) => rows.forEach(([, panel], k) => {
    panel.hidden = i !== k;
    tabs[k].setAttribute("aria-selected", String(i === k));
    tabs[k].setAttribute("tabindex", i === k ? "0" : "-1");
  });
  open(0);
  return { node: el("div", { class: "views", role: "tablist" }, tabs), open };
}
