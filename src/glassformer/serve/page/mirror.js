// The field for the source text over a copy of it, of which words are highlighted.

import { el } from "./elements.js";
import { sentenceAt, wordsOf } from "./sentences.js";

/**
 * The copy is one text node, so that its lines are those of the field; words are highlighted as ranges of it.
 * `onword` is called with the sentence and the index of its word under the pointer or at the caret, or with nothing.
 */
export class Mirror {
  /** @param {HTMLTextAreaElement} input */
  constructor(input) {
    this.input = input;
    this.text = document.createTextNode("\n");
    this.copy = el("div", { class: "copy", "aria-hidden": "true", dir: "auto" }, this.text);
    this.node = el("div", { class: "mirror" }, this.copy, input);
    /** @type {Sentence[]} */
    this.parts = [];
    /** @type {(part?: Sentence, index?: number) => void} */
    this.onword = () => {};
    input.addEventListener("mousemove", (event) => this.atPointer(event));
    input.addEventListener("mouseleave", () => this.onword());
    document.addEventListener("selectionchange", () => this.atCaret());
  }

  /** Report the word at the caret, also when its translation has come. */
  atCaret() {
    if (document.activeElement === this.input) this.report(this.wordAt(this.input.selectionStart));
  }

  /** @param {string} text @param {Sentence[]} parts */
  show(text, parts) {
    if (this.text.data !== `${text}\n`) this.text.data = `${text}\n`; // the line end gives the last line its height
    this.parts = parts;
  }

  /** @param {MouseEvent} event */
  atPointer({ clientX: x, clientY: y }) {
    const caret = document.caretPositionFromPoint?.(x, y);
    const found = caret?.offsetNode === this.input ? this.wordAt(caret.offset) : undefined;
    const isOver = found && [...this.rangeOf(found.part, found.word).getClientRects()]
      .some((box) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom);
    this.report(isOver ? found : undefined);
  }

  report(found) {
    this.onword(found?.part, found?.index);
  }

  /**
   * The word at a position of the text.
   * @param {number} position
   */
  wordAt(position) {
    const part = sentenceAt(this.parts, position);
    if (!part) return undefined;
    const words = wordsOf(part.text);
    const index = words.findIndex((word) => part.start + word.index <= position && position <= part.start + word.index + word[0].length);
    return index < 0 ? undefined : { part, index, word: words[index] };
  }

  /** @param {Sentence} part @param {RegExpMatchArray} word */
  rangeOf(part, word) {
    const range = new Range();
    const start = part.start + word.index;
    range.setStart(this.text, Math.min(start, this.text.length));
    range.setEnd(this.text, Math.min(start + word[0].length, this.text.length));
    return range;
  }

  /**
   * Highlight words of a sentence, by their indices.
   * @param {Sentence | undefined} part @param {number[]} indices
   */
  highlight(part, indices = []) {
    if (!window.CSS?.highlights) return; // an old browser
    const words = part && indices.length ? wordsOf(part.text) : [];
    const ranges = indices.filter((i) => words[i]).map((i) => this.rangeOf(part, words[i]));
    window.CSS.highlights.set("source", new window.Highlight(...ranges));
  }

  /** The sentence at the caret. */
  current() {
    return sentenceAt(this.parts, this.input.selectionStart);
  }
}
