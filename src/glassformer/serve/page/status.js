// The line that tells what happens.

import { el } from "./elements.js";
import { t } from "./strings.js";

/**
 * Show a text in an element, as a problem or not, and a button that ends the waits of requests for another try.
 * @param {HTMLElement} node @param {string} [text] @param {boolean} isProblem @param {boolean} hasButton
 */
export function showStatus(node, text, isProblem = false, hasButton = false) {
  const again = () => document.dispatchEvent(new Event("again"));
  node.replaceChildren(text ?? "", ...(hasButton ? [" ", el("button", { type: "button", class: "again", onclick: again }, t("tryAgain"))] : []));
  node.classList.toggle("problem", isProblem);
}
