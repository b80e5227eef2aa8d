// Terms of a glossary in translations. Counterparts: corpora/terms.py, tasks/terms.py.

import { wordWeights } from "./alignment.js";
import { lengthPenalty } from "./search.js";
import { HAS_UNSPACED, UNSPACED_SIGN, continuesLetter, unitSpans } from "./sentences.js";
import { SPACE, strip } from "./text.js";

const MAX_WORDS = 16; // words of an output at which edits are tried if none is known to be aligned to the term
const MAX_EDITS = 8;
const SPACES = new RegExp(`^[${SPACE}]+$`, "u");
const KATAKANA = /^[\u30a0-\u30ff]{2}$/u; // of one word of Japanese
const MIN_WEIGHT = 0.85; // part of its weights on a term with which a word is a translation of the term
const OPENING = "([{¿¡«“„‘\"'（「『";
const CLOSING = ".,;:!?…)]}»”’\"'。、，！？；：）」』";
const MAX_LETTERS = 4; // of a script without spaces that are replaced by a term

/** @param {string} character */
const isWord = (character) => /[\p{L}\p{N}\p{M}_]/u.test(character);
/** @param {string} text */
const capitalized = (text) => [...text].map((character, i) => (i ? character : character.toUpperCase())).join("");
/** A text with the characters of glossaries instead of others, one for one. @param {string} text */
const usual = (text) => text.replace(/[\u00a0\u202f]/gu, " ").replaceAll("\u2011", "-").replaceAll("’", "'");
/** @template T @param {T[]} items */
const unique = (items) => [...new Set(items)];

/**
 * Whether the characters before and after a position belong to one word.
 * @param {string} text @param {number} position
 */
export function continuesWord(text, position) {
  if (position <= 0 || position >= text.length) return false;
  const [before, after] = [[...text.slice(Math.max(0, position - 2), position)].at(-1), [...text.slice(position, position + 2)][0]];
  if (!isWord(before) || !isWord(after)) return false;
  return continuesLetter(before, after) || KATAKANA.test(before + after) || !HAS_UNSPACED.test(before + after);
}

/**
 * Words and symbols of a text, with their positions; letters of scripts without spaces are words of their own.
 * @param {string} text @returns {[word: string, start: number][]}
 */
function termWords(text) {
  /** @type {[word: string, start: number][]} */
  const words = [];
  let [start, end] = [0, 0];
  for (const character of text) {
    if (end > start && !continuesWord(text, end)) {
      if (!SPACES.test(text.slice(start, end))) words.push([text.slice(start, end), start]);
      start = end;
    }
    end += character.length;
  }
  if (end > start && !SPACES.test(text.slice(start, end))) words.push([text.slice(start, end), start]);
  return words;
}

/**
 * Positions of a form as whole words.
 * @param {string} form @param {string} text @returns {number[]}
 */
export function positionsOf(form, text) {
  const positions = [];
  [form, text] = [form, text].map(usual);
  for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + 1)) {
    if (!continuesWord(text, at) && !continuesWord(text, at + form.length)) positions.push(at);
  }
  return positions;
}

/**
 * The required terms that an output does not contain, as often as the source requires. A position counts for one term
 * only: for the longer form, if forms overlap, and for the term with the fewest positions, if several have the form.
 * @param {Term[]} required @param {string} output @returns {Term[]}
 */
export function unmet(required, output) {
  /** @type {Map<string, Term[]>} */
  const byTargets = new Map();
  for (const term of required) {
    const key = term.targets.join("\n");
    byTargets.set(key, [...(byTargets.get(key) ?? []), term]);
  }
  const groups = [...byTargets.values()].map((terms) => {
    const spans = terms[0].forms.flatMap((form) => positionsOf(form, output).map((start) => `${start} ${start + form.length}`));
    return { terms, needed: terms.length, spans: new Set(spans) };
  });
  /** @type {number[][]} */
  const positions = unique(groups.flatMap(({ spans }) => [...spans])).map((span) => span.split(" ").map(Number));
  positions.sort(([a, b], [c, d]) => (d - c) - (b - a) || a - c);
  /** @type {number[][]} */
  const used = [];
  for (const [start, end] of positions) {
    const lacking = groups.filter(({ needed, spans }) => needed && spans.has(`${start} ${end}`));
    if (!lacking.length || used.some(([a, b]) => start < b && a < end)) continue;
    lacking.reduce((best, group) => (group.spans.size < best.spans.size ? group : best)).needed -= 1;
    used.push([start, end]);
  }
  return groups.flatMap(({ terms, needed }) => terms.slice(terms.length - needed));
}

export class Glossary {
  /** @param {string[][]} rows pairs of a term and its translation, forms separated by | */
  constructor(rows) {
    const targets = new Map();
    for (const row of rows) {
      const [sources, forms] = row.map((side) => side.split("|").map(strip));
      if (![...sources, ...forms].every((form) => termWords(form).length)) continue; // nothing that could be found
      for (const source of sources.map(usual)) targets.set(source, unique([...(targets.get(source) ?? []), ...forms]));
    }
    this.byFirstWord = new Map();
    const characters = (text) => [...text].length;
    const inOrder = [...targets].sort(([a], [b]) => characters(b) - characters(a) || (a < b ? -1 : 1));
    for (const [source, forms] of inOrder) {
      const [[first]] = termWords(source);
      const key = first.toLowerCase();
      this.byFirstWord.set(key, [...(this.byFirstWord.get(key) ?? []), [source, forms]]);
    }
  }

  /**
   * Terms in a text, from left to right, of overlapping ones the first and longest.
   * @param {string} original @returns {Term[]}
   */
  find(original) {
    const text = usual(original);
    const found = [];
    let end = 0;
    for (const [word, start] of termWords(text)) {
      if (start < end) continue;
      for (const [source, targets] of this.byFirstWord.get(word.toLowerCase()) ?? []) {
        const part = text.slice(start, start + source.length);
        const isEqual = part === source || (source === source.toLowerCase() && part.toLowerCase() === source);
        if (!isEqual || continuesWord(text, start) || continuesWord(text, start + source.length)) continue;
        end = start + source.length;
        found.push({ start, end, targets, forms: unique(targets.flatMap((target) => [target, capitalized(target)])) });
        break;
      }
    }
    return found;
  }
}

/**
 * The space between two texts of which one is put beside the other.
 * @param {string} before @param {string} after
 */
function spaceBetween(before, after) {
  if (!before || !after || !strip(before.at(-1)) || !strip(after[0])) return "";
  return UNSPACED_SIGN.test(before.at(-1)) || UNSPACED_SIGN.test(after) ? "" : " ";
}

/**
 * The text with a form that meets the requirement in place of no, one or two words, or in a script without spaces of up to
 * MAX_LETTERS letters.
 * @param {string} text @param {Term} required @param {number} word @param {boolean} isTranslation
 * @param {boolean} beginsText @returns {string[]}
 */
function edits(text, required, word, isTranslation, beginsText) {
  const stripped = strip(text);
  const bounds = unitSpans(stripped);
  const words = bounds.map(([a, b]) => stripped.slice(a, b));
  let replaced = [[word, word + 1], [word, word + 2], [word - 1, word + 1]];
  if (word < words.length && HAS_UNSPACED.test(words[word])) {
    replaced = Array.from({ length: MAX_LETTERS }, (_, n) => Array.from({ length: n + 1 }, (_, k) => [word - k, word - k + n + 1])).flat();
  }
  const results = [];
  for (const [start, end] of isTranslation ? replaced : [[word, word], [word + 1, word + 1], ...replaced]) {
    if (start < 0 || end > words.length) continue;
    const [first, last] = end > start ? [words[start], words[end - 1]] : ["", ""];
    const before = start < words.length ? stripped.slice(0, bounds[start][0]) : stripped;
    const after = stripped.slice(end > start ? bounds[end - 1][1] : before.length);
    let [from, to] = [0, last.length];
    while (from < first.length && OPENING.includes(first[from])) from += 1;
    while (to > 0 && CLOSING.includes(last[to - 1])) to -= 1;
    for (const form of start === 0 && beginsText ? required.forms : required.targets) {
      const added = first.slice(0, from) + form + last.slice(to);
      results.push(end > start ? before + added + after : before + spaceBetween(before, added) + added + spaceBetween(added, after) + after);
    }
  }
  return results;
}

/**
 * The texts of an output with an edit that meets the first requirement which it lacks, and their token ids.
 * @param {Translator} translator @param {Part} part @param {PartOutput} output @param {Term[]} missing
 * @param {string} prefix @returns {{ text: string, ids: number[] }[]}
 */
function editedTexts(translator, part, output, missing, prefix) {
  const { model, tokenizer } = translator;
  const limit = model.maxLength - 1;
  const spans = unitSpans(part.source);
  const [term] = missing;
  const words = spans.flatMap(([a, b], word) => (a < term.end && term.start < b ? [word] : []));
  const rest = output.text.slice(prefix.length);
  const begin = output.text.slice(0, prefix.length) + (prefix && (rest ? !strip(rest[0]) : !UNSPACED_SIGN.test(prefix.at(-1))) ? " " : "");
  const nBegin = unitSpans(begin).length;

  const fitting = (atWords, isTranslation) => {
    const positions = unique(atWords.map((word) => Math.max(0, word - nBegin))).sort((a, b) => a - b);
    const texts = unique(positions.flatMap((word) => edits(rest, term, word, isTranslation, !begin)).map((text) => begin + text));
    return texts.flatMap((whole) => {
      let [text, ids] = [whole, tokenizer.targets.encode(whole)];
      if (ids.length > limit && output.isTruncated) {
        ids = ids.slice(0, limit);
        text = tokenizer.decode(ids);
      }
      return unmet(part.required, text).length < missing.length && ids.length <= limit ? [{ text, ids }] : [];
    });
  };

  const weights = wordWeights(model, tokenizer, part.source, output.text);
  if (weights.length) {
    const toTerm = weights.map((row) => words.reduce((sum, word) => sum + row[word], 0));
    const word = toTerm.indexOf(Math.max(...toTerm));
    const found = fitting([word], toTerm[word] >= MIN_WEIGHT * weights[word].reduce((a, b) => a + b, 0));
    if (found.length) return found;
  }
  const nWords = unitSpans(output.text).length;
  const middle = Math.floor(nWords * (words[0] ?? 0) / Math.max(1, spans.length));
  const first = Math.max(0, Math.min(middle - MAX_WORDS / 2, nWords - MAX_WORDS));
  const last = Math.min(first + MAX_WORDS, Math.max(1, nWords));
  return fitting(Array.from({ length: last - first }, (_, i) => first + i), false);
}

/**
 * The output of a part with what is required, as far as edits put it in. `prefix`: text that it begins with, which
 * stays.
 * @param {Translator} translator @param {Part} part @param {PartOutput} output @param {number} alpha
 * @returns {PartOutput}
 */
export function withTerms(translator, part, output, alpha, prefix = "") {
  let best = output;
  const { model } = translator;
  for (let n = 0; n < MAX_EDITS; n += 1) {
    const missing = unmet(part.required, best.text);
    if (!missing.length) break;
    const found = editedTexts(translator, part, best, missing, prefix);
    model.start(part.ids, Math.max(0, ...found.map(({ ids }) => ids.length + 1)));
    const edited = found.map(({ text, ids }) => {
      const all = [...ids, translator.header.eos];
      const logProbs = model.score(all);
      return { text, ids: all, logProbs, score: logProbs.reduce((a, b) => a + b, 0) / lengthPenalty(all.length, alpha) };
    });
    if (!edited.length) break;
    const chosen = edited.reduce((a, b) => (b.score > a.score ? b : a));
    best = { ...chosen, forced: [...(best.forced ?? []), ...missing[0].forms], isTruncated: best.isTruncated };
  }
  return best;
}
