// Sentences of a text, and their translations, which are kept.

// A full stop after an initial, a day or one of these titles ends no sentence, nor does one before a lower-case letter.
const ABBREVIATION = /(?<![\p{L}\d])(?:\p{Lu}|\d{1,2}|Mr|Mrs|Ms|Dr|Prof|St|Mt|Mme|Mlle|Hr|Fr|No|Nr)/u.source;
const SENTENCE = new RegExp(
  `\\S[^\\n]*?(?:(?:[!?…]|(?<!${ABBREVIATION})\\.)["'”’»)\\]]*(?=\\s+[^\\s\\p{Ll}]|\\s*$)|[。！？]|(?=\\n|$))`, "gu",
);
const AT_ONCE = 20;
const KEPT = 20000; // more than there are sentences in a text

/** The sentences of a text with their positions. */
export function sentencesOf(text) {
  return [...text.matchAll(SENTENCE)].map((match) => ({ start: match.index, text: match[0].trimEnd() }));
}

/** Translations by sentence and options. */
export class Translations {
  constructor(request) {
    this.request = request; // (sentences, options, signal) => list of translations
    this.known = new Map();
  }

  key(text, options) {
    return JSON.stringify([text, options]);
  }

  find(text, options) {
    const found = this.known.get(this.key(text, options));
    if (found) this.set(text, options, found); // the oldest are forgotten
    return found;
  }

  set(text, options, translation) {
    const key = this.key(text, options);
    this.known.delete(key);
    this.known.set(key, translation);
    if (this.known.size > KEPT) this.known.delete(this.known.keys().next().value);
  }

  /** Translate the sentences that are not known; `show` is called when some of them are. */
  async complete(sentences, options, signal, show) {
    const missing = [...new Set(sentences.map((s) => s.text))].filter((text) => !this.find(text, options));
    for (let i = 0; i < missing.length; i += AT_ONCE) {
      const some = missing.slice(i, i + AT_ONCE);
      const found = await this.request(some, options, signal);
      some.forEach((text, k) => this.set(text, options, found[k]));
      show();
    }
  }
}
