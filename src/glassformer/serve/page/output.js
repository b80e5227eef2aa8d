// The translation: sentences of words that can be hovered, focused and replaced.

import { el } from "./elements.js";
import { spaceAfter, spacedWordsOf, wordsOf } from "./sentences.js";
import { t } from "./strings.js";

const MAX_SKIPPED = 4; // words with a probability that are not in the text, one after another
const UNCERTAIN = 0.3; // probability of a word that it is right, below which it is marked

/**
 * Only sentences that changed get new elements. One word, the current one, can be reached by Tab; the arrow keys move to others.
 * `onword` is called with the sentence and the index of the word that is hovered or focused, or with nothing;
 * `onopen` with the sentence, the index and the element of the word that is clicked.
 */
export class Output {
  constructor() {
    this.tail = document.createTextNode("");
    this.node = el("div", { class: "output", role: "group", "aria-label": t("targetText"), tabindex: "-1", dir: "auto" }, this.tail);
    /** @type {OutputRow[]} */
    this.rows = [];
    /** @type {WeakMap<Node, OutputRow>} */
    this.rowOf = new WeakMap(); // by the element of the sentence
    /** @type {HTMLElement[]} */
    this.marked = [];
    /** @type {(part?: Sentence, index?: number) => void} */
    this.onword = () => {};
    /** @type {(part: Sentence, index: number, word: HTMLElement) => void} */
    this.onopen = () => {};
    /** @type {HTMLElement | undefined} */
    this.current = undefined;
    /** @param {Event} event @param {Output["onopen"]} act */
    const at = (event, act) => {
      const word = /** @type {HTMLElement} */ (/** @type {Element} */ (event.target).closest?.(".word"));
      if (word) act(...this.position(word), word);
    };
    this.node.addEventListener("mouseover", (event) => (/** @type {Element} */ (event.target).closest(".word") ? at(event, this.report) : this.onword()));
    this.node.addEventListener("mouseleave", () => this.onword());
    this.node.addEventListener("focusin", (event) => at(event, (part, index, word) => { this.setCurrent(word); this.onword(part, index); }));
    this.node.addEventListener("focusout", () => this.onword());
    this.node.addEventListener("click", (event) => at(event, (part, index, word) => this.onopen(part, index, word)));
    this.node.addEventListener("keydown", (event) => at(event, () => this.key(event)));
  }

  /** @param {Sentence} part @param {number} index */
  report = (part, index) => this.onword(part, index);

  /** @param {HTMLElement} word @returns {[part: Sentence, index: number]} */
  position(word) {
    const row = this.rowOf.get(word.parentNode);
    return [row.part, row.words.indexOf(word)];
  }

  /**
   * Show the translations of the sentences of a text, with the white space between the sentences of the text.
   * @param {string} text @param {Sentence[]} parts
   */
  show(text, parts) {
    const hadFocus = this.node.contains(document.activeElement) && document.activeElement !== this.node;
    const [row, index] = this.currentPosition();
    let end = 0;
    let before = ""; // what is shown of the sentence before
    const wanted = parts.map((part) => {
      const shown = part.translation ?? part.previous;
      const space = text.slice(end, part.start);
      const gap = before && shown ? spaceAfter(before, space) : space;
      end = part.start + part.text.length;
      before = shown?.text ?? "";
      return { part, gap, shown, isWaiting: !part.translation };
    });
    const isSame = (a, b) => a && b && a.gap === b.gap && a.shown === b.shown && a.isWaiting === b.isWaiting && (a.shown || a.part.text === b.part.text);
    const shorter = Math.min(this.rows.length, wanted.length);
    let first = 0;
    while (first < shorter && isSame(this.rows[first], wanted[first])) first += 1;
    let last = 0;
    while (last < shorter - first && isSame(this.rows.at(-1 - last), wanted.at(-1 - last))) last += 1;
    const removed = this.rows.slice(first, this.rows.length - last);
    for (const { nodes } of removed) nodes.forEach((node) => node.remove());
    const kept = last ? this.rows.slice(-last) : [];
    const added = wanted.slice(first, wanted.length - last).map((row) => this.rendered(row));
    const next = kept[0]?.nodes[0] ?? this.tail;
    next.before(...added.flatMap(({ nodes }) => nodes));
    this.rows = [...this.rows.slice(0, first), ...added, ...kept];
    this.rows.forEach((row, i) => { row.part = parts[i]; });
    this.tail.data = text.slice(end);
    if (!this.current?.isConnected) this.setCurrent(this.rows[row]?.words[index] ?? this.rows[row]?.words[0] ?? this.rows.find(({ words }) => words.length)?.words[0]);
    if (hadFocus && !this.node.contains(document.activeElement)) this.current?.focus();
  }

  /** @param {OutputRow} row */
  rendered(row) {
    const { part, gap, shown, isWaiting } = row;
    row.words = [];
    const sentence = el("span", { class: "sentence" });
    if (isWaiting) {
      sentence.className = "waiting";
      if (shown) sentence.append(shown.text);
      else {
        sentence.classList.add("skeleton");
        sentence.style.setProperty("--n", String(part.text.length));
      }
    } else {
      let end = 0;
      let next = 0; // of the words with a probability: list marks and markers have none
      for (const match of spacedWordsOf(shown.text)) {
        const same = shown.words.slice(next, next + MAX_SKIPPED).findIndex(([word]) => word.toLowerCase() === match[0].toLowerCase());
        const [, p] = shown.words[next + same] ?? [];
        if (same >= 0) next += same + 1;
        const isUncertain = same >= 0 && p < UNCERTAIN;
        const attributes = { class: isUncertain ? "word uncertain" : "word", title: isUncertain ? t("uncertain", p.toFixed(2)) : null };
        const words = wordsOf(match[0]).map(([word]) => el("span", attributes, word));
        row.words.push(...words);
        sentence.append(shown.text.slice(end, match.index), ...words);
        end = match.index + match[0].length;
      }
      sentence.append(shown.text.slice(end));
      if (shown.isCorrected) {
        sentence.classList.add("corrected");
        sentence.title = t("corrected");
      } else if (shown.match?.used) {
        sentence.classList.add("recalled");
        sentence.title = t("fromMemory", Math.floor(100 * shown.match.similarity), shown.match.source);
      }
    }
    this.rowOf.set(sentence, row);
    row.nodes = [document.createTextNode(gap), sentence];
    return row;
  }

  get isComplete() {
    return this.rows.length > 0 && this.rows.every(({ isWaiting }) => !isWaiting);
  }

  get hasUncertain() {
    return this.node.querySelector(".uncertain") !== null;
  }

  text() {
    return this.node.textContent;
  }

  currentPosition() {
    const row = this.rows.findIndex(({ words }) => words.includes(this.current));
    return [row, this.rows[row]?.words.indexOf(this.current)];
  }

  /** The sentence of the current word. */
  get currentPart() {
    return this.rows[this.currentPosition()[0]]?.part;
  }

  /** @param {HTMLElement | undefined} word */
  setCurrent(word) {
    if (word === this.current) return; // without its tabindex, a word loses the focus
    for (const name of ["tabindex", "role", "aria-haspopup"]) this.current?.removeAttribute(name);
    this.current = word;
    word?.setAttribute("tabindex", "0");
    word?.setAttribute("role", "button");
    word?.setAttribute("aria-haspopup", "listbox");
  }

  /**
   * Focus a word of a sentence, if it is still there.
   * @param {Sentence} part @param {number} index
   */
  focus(part, index) {
    const word = this.rows.find((row) => row.part.start === part.start)?.words[index];
    if (!word) return;
    this.setCurrent(word);
    word.focus();
  }

  key(event) {
    if ((event.altKey && event.key === "ArrowDown") || event.key === "Enter" || event.key === " ") event.target.click();
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const all = this.rows.flatMap(({ words }) => words);
      const next = all[all.indexOf(this.current) + (event.key === "ArrowRight" ? 1 : -1)];
      if (next) this.setCurrent(next);
      next?.focus();
    } else return;
    event.preventDefault();
  }

  /**
   * Highlight words of a sentence, by their indices.
   * @param {Sentence | undefined} part @param {number[]} indices
   */
  highlight(part, indices = []) {
    this.marked.forEach((word) => word.classList.remove("on"));
    const row = part && this.rows.find((row) => row.part.start === part.start);
    this.marked = row ? indices.map((i) => row.words[i]).filter(Boolean) : [];
    this.marked.forEach((word) => word.classList.add("on"));
  }

  /**
   * The words before a word, as the beginning of a translation.
   * @param {Sentence} part @param {number} index
   */
  prefix(part, index) {
    const { text } = part.translation;
    return text.slice(0, wordsOf(text)[index]?.index).trim().replace(/\s+/gu, " ");
  }
}
