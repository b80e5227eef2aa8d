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
  forgetRedraws();
  main.replaceChildren(...(data.message ? [el("p", {}, data.message)] : inspection(data)));
  for (const section of sections()) {
    section.open = !closed.has(titleOf(section));
    const height = heights.get(titleOf(section)); // one that is out of sight is as high as it was, so that nothing moves
    if (height && section.open) section.style.setProperty("contain-intrinsic-size", `auto ${height}px`);
  }
});
new ResizeObserver(() => parent.postMessage({ height: Math.ceil(main.getBoundingClientRect().height) + 8 }, "*")).observe(main);
parent.postMessage({ isReady: true }, "*");
