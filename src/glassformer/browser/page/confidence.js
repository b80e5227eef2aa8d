// Confidence of words. Counterpart: tasks/confidence.py.

import { positionsOf } from "./terms.js";
import { split } from "./text.js";

const MAX_WORD_LENGTH = 15;
const MAX_DECODED = 64;
const MAX_LOGIT = 700;

/**
 * Words of an output, and for each token the index of the last word that it is part of; -1 before the first.
 * @param {number[]} ids @param {Tokenizer} tokenizer @returns {[words: string[], owners: number[]]}
 */
function wordsOf(ids, tokenizer) {
  const owners = [];
  let start = 0;
  let before = 0;
  ids.forEach((id, i) => {
    if (i > start && tokenizer.startsWord(id)) [start, before] = [i, owners.at(-1) + 1];
    else if (i - start === MAX_DECODED) [start, before] = [i, owners.at(-1)];
    owners.push(before + split(tokenizer.decode(ids.slice(start, i + 1))).length - 1);
  });
  return [split(tokenizer.decode(ids)), owners];
}

/** @param {number[]} numbers */
const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;

/**
 * Which words of a line are part of one of some forms.
 * @param {string[]} forms @param {string[]} words
 */
function wordsIn(forms, words) {
  const text = words.join(" ");
  let at = 0;
  const spans = words.map((word) => [at, (at += word.length + 1) - 1]);
  const found = forms.flatMap((form) => positionsOf(form, text).map((start) => [start, start + form.length]));
  return spans.map(([a, b]) => found.some(([start, end]) => a < end && start < b));
}

/**
 * Each word of an output, with the probability that it is right. `forced`: forms of terms that were put in.
 * @param {Confidence} confidence @param {TranslationOutput} output @param {Tokenizer} tokenizer
 * @returns {[word: string, probability: number][]}
 */
export function wordsWithConfidence(confidence, { ids, logProbs: all, forced = [] }, tokenizer) {
  const [words, ownersOfAll] = wordsOf(ids, tokenizer);
  if (!words.length) return [];
  for (let i = 1; i < ownersOfAll.length; i += 1) ownersOfAll[i] = Math.max(ownersOfAll[i], ownersOfAll[i - 1]);
  const isForced = wordsIn(forced, words);
  const chosen = all.flatMap((_, i) => (isForced[Math.max(0, ownersOfAll[i])] ? [] : [i]));
  const [logProbs, owners] = chosen.length ? [chosen.map((i) => all[i]), chosen.map((i) => ownersOfAll[i])] : [[0], ownersOfAll.slice(0, 1)];
  const rows = words.map((_, word) => {
    const row = logProbs.filter((_, i) => owners[i] === word);
    return row.length ? row : logProbs;
  });
  const lowest = rows.map((row) => Math.min(...row));
  const [ofLine, lowestOfLine] = [mean(logProbs), Math.min(...logProbs)];
  return words.map((word, i) => {
    const m = mean(rows[i]);
    const n = Math.min([...word].length, MAX_WORD_LENGTH);
    const features = [
      m, lowest[i], Math.exp(lowest[i]), lowest[i - 1] ?? 0, lowest[i + 1] ?? 0, ofLine, lowestOfLine, n, n ** 2,
      Math.exp(m), Math.exp(m + ofLine), words.length, i / words.length, Math.exp(ofLine), m ** 2, ofLine ** 2,
    ];
    const logit = features.reduce(
      (sum, x, j) => sum + (x - confidence.mean[j]) / confidence.scale[j] * confidence.coefficients[j], confidence.coefficients.at(-1),
    );
    return [word, isForced[i] ? 1 : 1 / (1 + Math.exp(-Math.min(MAX_LOGIT, Math.max(-MAX_LOGIT, logit))))];
  });
}
