// What happens inside of the model, in a frame of the page: it shows each record that the page sends, and tells its own height.

import { forgetRedraws } from "./base.js";
import { el } from "./elements.js";
import { inspection } from "./sections.js";

const main = document.querySelector("main");
const titleOf = (section) => section.querySelector("h2").textContent;
const closed = new Set(); // titles of sections

addEventListener("message", ({ data, source }) => {
  if (source !== parent) return;
  const sections = () => [...main.querySelectorAll(":scope > details")];
  for (const section of sections()) closed[section.open ? "delete" : "add"](titleOf(section));
  forgetRedraws();
  main.replaceChildren(...(data.message ? [el("p", {}, data.message)] : inspection(data)));
  for (const section of sections()) section.open = !closed.has(titleOf(section));
});
new ResizeObserver(() => parent.postMessage({ height: Math.ceil(main.getBoundingClientRect().height) + 8 }, "*")).observe(main);
parent.postMessage({ isReady: true }, "*");
