// The menu of a word of the translation: other words, other translations of the sentence, its correction.

import { el } from "./elements.js";
import { t } from "./strings.js";

/** A menu at an element. Groups are lists of [text in bold, other text, function] under a heading. */
export class Menu {
  /**
   * @param {HTMLElement} anchor @param {[heading: string, rows: MenuRow[]][]} groups
   * @param {(isReturning: boolean) => void} closed called when the menu is closed; with true if the focus is to return
   *   to the word
   */
  constructor(anchor, groups, closed) {
    this.closed = closed;
    /** @type {HTMLElement[]} */
    this.items = [];
    const children = groups.filter(([, rows]) => rows.length).flatMap(([heading, rows]) => [
      el("li", { role: "presentation", class: "heading" }, heading),
      ...rows.map(([first, rest, act]) => {
        const item = el("li", { role: "option", tabindex: "-1", class: first ? null : "sentence", onclick: () => { this.close(true); act(); } }, first ? el("b", {}, first) : "", rest ? ` ${rest}` : "");
        this.items.push(item);
        return item;
      }),
    ]);
    this.node = el("ul", { role: "listbox", "aria-label": t("alternatives"), class: "menu", onkeydown: (event) => this.key(event) }, children);
    this.node.addEventListener("focusout", ({ relatedTarget }) => {
      if (!this.node.contains(/** @type {Node} */ (relatedTarget))) this.close();
    });
    document.body.append(this.node);
    const box = anchor.getBoundingClientRect();
    const { offsetHeight: height, offsetWidth: width } = this.node;
    const isAbove = box.bottom + height + 8 > innerHeight && box.top > height + 8;
    this.node.style.setProperty("left", `${Math.max(8, Math.min(box.left - 12, innerWidth - width - 8)) + scrollX}px`);
    this.node.style.setProperty("top", `${(isAbove ? box.top - height - 4 : box.bottom + 4) + scrollY}px`);
    this.items[0].focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { items } = this;
    const at = items.findIndex((item) => item === document.activeElement);
    if (event.key === "ArrowDown") items[(at + 1) % items.length].focus();
    else if (event.key === "ArrowUp") items[(at + items.length - 1) % items.length].focus();
    else if (event.key === "Enter" || event.key === " ") items[at].click();
    else if (event.key === "Escape" || event.key === "Tab") this.close(true);
    else return;
    event.preventDefault();
  }

  close(isReturning = false) {
    if (this.isClosed) return;
    this.isClosed = true;
    this.node.remove();
    this.closed(isReturning);
  }
}
