// What happens inside of the model, in a frame of the page: it shows each record that the page sends, and tells its own height.

import { beginWith } from "./attention.js";
import { forgetRedraws } from "./base.js";
import { el } from "./elements.js";
import { STEPS_TITLE } from "./head_steps.js";
import { answered, begin } from "./live_controls.js";
import { inspection } from "./sections.js";

const main = document.querySelector("main");
/** @param {Element} section */
const titleOf = (section) => section.querySelector("h2").textContent;
const closed = new Set([STEPS_TITLE]); // titles of sections
const CONTROLS = "button, input, select, summary, [tabindex]";
/** @param {Element} node */
const nameOf = (node) => `${node.tagName} ${node.getAttribute("aria-label") ?? node.textContent}`;
const heights = new Map();

addEventListener("message", ({ data, source }) => {
  if (source !== parent) return;
  if (data.begin) {
    begin(data.begin.wanted);
    beginWith(data.begin.view);
    return;
  }
  if (data.ask) {
    answered(data);
    return;
  }
  const sections = () => /** @type {HTMLDetailsElement[]} */ ([...main.querySelectorAll(":scope > details")]);
  for (const section of sections()) {
    closed[section.open ? "delete" : "add"](titleOf(section));
    if (section.open) heights.set(titleOf(section), section.clientHeight);
  }
  const focused = document.activeElement;
  const within = focused.closest("main > details");
  const controlsOf = (node) => [...(node ?? main).querySelectorAll(CONTROLS)];
  const place = document.hasFocus() && main.contains(focused) ? { title: within && titleOf(within), name: nameOf(focused), at: controlsOf(within).indexOf(focused) } : null;
  forgetRedraws();
  main.replaceChildren(...(data.message ? [el("p", {}, data.message)] : inspection(data)));
  for (const section of sections()) {
    section.open = !closed.has(titleOf(section));
    const height = heights.get(titleOf(section)); // one that is out of sight is as high as it was, so that nothing moves
    if (height && section.open) section.style.setProperty("contain-intrinsic-size", `auto ${height}px`);
  }
  if (!place) return;
  const controls = controlsOf(sections().find((section) => titleOf(section) === place.title));
  const again = controls.find((node) => nameOf(node) === place.name) ?? controls[place.at];
  if (again instanceof HTMLElement) again.focus({ preventScroll: true }); // the one that was used
});
new ResizeObserver(() => parent.postMessage({ height: Math.ceil(main.getBoundingClientRect().height) + 8 }, "*")).observe(main);
parent.postMessage({ isReady: true }, "*");
