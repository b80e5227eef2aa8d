// Translations that the user chose or corrected. They take the place of those of the model.

import { el } from "./elements.js";
import { saveAs } from "./save.js";
import { kept } from "./session.js";
import { t } from "./strings.js";

/** Choices and corrections by target language and sentence, with undo; `changed` is called after each. */
export class Overrides {
  /** @param {() => void} changed @param {(translation: Override) => void} undone */
  constructor(changed, undone) {
    this.changed = changed;
    this.undone = undone; // called with what was undone
    /** @type {Map<string, Override>} */
    this.all = new Map(kept("overrides", () => [...this.all]));
    /** @type {[key: string, translation: Override | null | undefined][]} */
    this.before = kept("undo", () => this.before.map(([key, translation]) => [key, translation ?? null])) ?? []; // what each change replaced
    this.undoAction = el("button", { onclick: () => this.undo() }, t("undo"));
    this.downloadAction = el("button", { onclick: () => this.download() });
  }

  /** @param {string} text @param {string} target */
  find(text, target) {
    return this.all.get(`${target} ${text}`);
  }

  /**
   * Replace the translation of a sentence; `pair` is the direction.
   * @param {string} text @param {string[]} pair @param {SentenceTranslation} translation
   */
  set(text, pair, translation) {
    const key = `${pair[1]} ${text}`;
    this.before.push([key, this.all.get(key)]);
    this.all.set(key, { ...translation, src: text, pair });
    this.changed();
  }

  undo() {
    const [key, translation] = this.before.pop() ?? [];
    if (!key) return;
    const current = this.all.get(key);
    if (translation) this.all.set(key, translation);
    else this.all.delete(key);
    this.changed();
    this.undone(current);
  }

  /** @param {string[]} pair */
  corrections(pair) {
    return [...this.all.values()].filter((row) => row.isCorrected && row.pair.join() === pair.join());
  }

  /**
   * Show what can be done for a direction.
   * @param {string[]} pair
   */
  show(pair) {
    this.pair = pair;
    const { length } = this.corrections(pair);
    this.undoAction.hidden = !this.before.length;
    this.downloadAction.hidden = !length;
    this.downloadAction.textContent = t("corrections", length);
  }

  download() {
    const rows = this.corrections(this.pair).map(({ src, text }) => `${JSON.stringify({ src, tgt: text })}\n`);
    saveAs(`corrections.${this.pair.join("-")}.jsonl`, rows.join(""));
  }
}
