// Typing errors in the words of a text, found by the words of the training text. Counterpart: corpora/spelling.py, whose
// numbers are computed here in the same order.

const MIN_LETTERS = 4;
const MAX_LETTERS = 40;
const TYPING_ERRORS = 0.0001;
const MIN_COUNT = 3;
const FIRST_LETTER = 0.1;
const NEW_WORDS = 0.001;
const EXPECTED_IN = 20;
const N_KINDS = 4;
const ORDER = 5;
const ALPHABET = 60;
const MAX_BEFORE = 20;

/** @param {string} a @param {string} b */
const compare = (a, b) => Number(a > b) - Number(a < b);
/**
 * Whether a word has letters with capitals, of which only the first may be one.
 * @param {string} word
 */
function isRegular(word) {
  const hasCase = [...word].every((letter) => letter.toLowerCase() !== letter.toUpperCase() && letter.toLowerCase().length === 1 && letter <= "\uffff");
  return hasCase && word.slice(1) === word.slice(1).toLowerCase();
}

/** The words of the sources of a training. */
export class KnownWords {
  /** @param {WordsRecord} record @param {RegExp} word @param {RegExp} sentenceBegin */
  constructor(record, word, sentenceBegin) {
    this.nWords = record.n_words;
    this.newWords = Math.max((record.n_once + 1) / (record.n_words + 1), NEW_WORDS);
    this.nounsHaveCapitals = record.nouns_have_capitals ?? false;
    this.word = word;
    this.sentenceBegin = sentenceBegin;
    /** @type {Map<string, number>} */
    this.counts = new Map(Object.entries(record.words).flatMap(([n, words]) => words.split(" ").map((each) => /** @type {[string, number]} */ ([each, Number(n)]))));
    this.known = new Set(Array.from(this.counts.keys(), (each) => each.toLowerCase()));
    this.lines = `\n${[...this.known].sort(compare).join("\n")}\n`;
    /** @type {Map<string, number>} */
    const letters = new Map();
    for (const letter of this.lines) letters.set(letter, (letters.get(letter) ?? 0) + 1);
    letters.delete("\n");
    this.letters = [...letters].sort(([a, n], [b, m]) => m - n || compare(a, b)).slice(0, ALPHABET).map(([letter]) => letter);
    /** @type {Map<string, { total: number, counts: Map<string, number> }>} */
    this.following = new Map();
  }

  /**
   * The number of letters after a sequence of letters of words, and how often each is there.
   * @param {string} letters
   */
  after(letters) {
    let found = this.following.get(letters);
    if (!found) {
      found = { total: 0, counts: new Map() };
      for (let at = this.lines.indexOf(letters); at >= 0 && at < this.lines.length - letters.length; at = this.lines.indexOf(letters, at + 1)) {
        const next = this.lines[at + letters.length];
        found.total += 1;
        found.counts.set(next, (found.counts.get(next) ?? 0) + 1);
      }
      this.following.set(letters, found);
    }
    return found;
  }

  /**
   * Probability of a new word among all new words.
   * @param {string} word
   */
  probabilityOfLetters(word) {
    const line = `\n${word}\n`;
    let product = 1;
    for (let i = 1; i < line.length; i += 1) {
      let p = 1 / (this.letters.length + 1);
      for (let n = 0; n <= Math.min(ORDER - 1, i); n += 1) {
        const { total, counts } = this.after(line.slice(i - n, i));
        if (!total) break;
        p = ((counts.get(line[i]) ?? 0) + counts.size * p) / (total + counts.size);
      }
      product *= p;
    }
    return product;
  }

  /**
   * The words of which a word may be a form with a typing error, with the number of errors of this kind, and whether the
   * error is in the first letter.
   * @param {string} word @returns {Generator<[form: string, nErrors: number, isFirst: boolean]>}
   */
  * forms(word) {
    const n = word.length;
    for (let i = 0; i < n - 1; i += 1) yield [word.slice(0, i) + word[i + 1] + word[i] + word.slice(i + 2), n - 1, i === 0];
    for (let i = 0; i <= n; i += 1) {
      for (const letter of this.letters) yield [word.slice(0, i) + letter + word.slice(i), n + 1, i === 0];
    }
    for (let i = 0; i < n; i += 1) {
      yield [word.slice(0, i) + word.slice(i + 1), n * this.letters.length, i === 0];
      for (const letter of this.letters) yield [word.slice(0, i) + letter + word.slice(i + 1), n * this.letters.length, i === 0];
    }
  }

  /**
   * The known word that a word most probably is; none: it is a new word. `newWords`: probability of new words.
   * @param {string} word @param {number} newWords
   */
  meant(word, newWords) {
    const small = word.toLowerCase();
    if (word.length < MIN_LETTERS || word.length > MAX_LETTERS || !isRegular(word)) return undefined;
    let [best, probability] = ["", 0];
    for (const [form, nErrors, isFirst] of this.forms(small)) {
      const found = word[0] !== small[0] ? form.slice(0, 1).toUpperCase() + form.slice(1) : form;
      const count = this.counts.get(found) ?? 0;
      if (count < MIN_COUNT) continue;
      const p = (count / this.nWords) * (TYPING_ERRORS / N_KINDS / nErrors) * (isFirst ? FIRST_LETTER : 1);
      if (p > probability) [best, probability] = [found, p];
    }
    return best && probability > newWords * this.probabilityOfLetters(small) ? best : undefined;
  }

  /**
   * The words of a text that are taken for others, the last one first. `spans`: parts of the text that stay.
   * @param {string} text @param {{ start: number, end: number }[]} spans @returns {WordReading[]}
   */
  readings(text, spans) {
    const words = Array.from(text.matchAll(this.word), ({ index, 1: before, 2: word }) => ({ start: index + before.length, word }));
    const unknown = words.filter(({ word }) => !this.known.has(word.toLowerCase()));
    const newWords = (EXPECTED_IN * this.newWords + unknown.length - 1) / (EXPECTED_IN + words.length - 1);
    const found = [];
    for (const { start, word } of unknown) {
      if (spans.some((span) => span.start < start + word.length && start < span.end)) continue;
      const isName = word[0] !== word[0].toLowerCase() && !this.nounsHaveCapitals;
      if (isName && !this.sentenceBegin.test(text.slice(Math.max(0, start - MAX_BEFORE), start))) continue;
      const meant = this.meant(word, newWords);
      if (meant) found.push({ start, written: word, word: meant });
    }
    return found.reverse();
  }
}
