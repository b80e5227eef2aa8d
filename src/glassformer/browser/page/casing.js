// Lines in capitals and in title case, in the case that the vocabulary knows. Counterpart: tasks/casing.py.

const MIN_TITLE_WORDS = 4;
const SHORT = 3;

/** @param {string} text */
const lengthOf = (text) => [...text].length;
/** @param {string} text */
const isLower = (text) => /\p{Lowercase}/u.test(text) && !/[\p{Uppercase}\p{Lt}]/u.test(text);

const DOTTED = ["tr", "az"]; // languages with i and ı, whose capitals are İ and I

/** @param {string} text @param {string} language */
const lower = (text, language) => (DOTTED.includes(language) ? text.replaceAll("İ", "i").replaceAll("I", "ı") : text).toLowerCase();

/** @param {string} text @param {string} language */
export function upper(text, language) {
  return (DOTTED.includes(language) ? text.replaceAll("i", "İ") : text).toUpperCase();
}

/**
 * Whether all letters of a text are capitals, and it has some, besides ß, ª and º. Those of scripts without capitals are
 * not.
 * @param {string} all
 */
export function isCapitals(all) {
  const text = all.replace(/[ßªº]/gu, "");
  return /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}\p{Lo}]/u.test(text);
}

/**
 * The form of a word with the fewest tokens, of which none is unknown, and their number.
 * @param {string} word @param {Tokenizer} tokenizer @param {boolean} isFirst @param {string} language @returns {[form: string, nTokens: number]}
 */
function bestForm(word, tokenizer, isFirst, language) {
  const small = lower(word, language);
  const [first, ...rest] = small;
  const title = upper(first, language) + rest.join("");
  const forms = (isFirst ? [title, small, word] : [small, title, word]).filter((form) => lengthOf(form) === lengthOf(word));
  const ids = forms.map((form) => tokenizer.encode(form).slice(tokenizer.first.length));
  const ranks = ids.map((of) => of.length + (of.includes(tokenizer.unknown) ? 1e6 : 0));
  const best = ranks.indexOf(Math.min(...ranks));
  return [forms[best], Math.max(1, ids[best].length)];
}

/** @param {string} text @param {Tokenizer} tokenizer @param {RegExp} pattern that of a word, `cased_word` @param {string} language */
export function recased(text, tokenizer, pattern, language) {
  const words = [...text.matchAll(pattern)];
  const inCapitals = isCapitals(text);
  const starts = words.filter(({ index }) => text[index - 1] !== "-").map(([word]) => [...word][0]);
  if (!inCapitals && (starts.length < MIN_TITLE_WORDS || !isCapitals(starts.join("")))) return text;
  let [isTitle, hasWords] = [false, false];
  let result = "";
  let end = 0;
  words.forEach(({ 0: word, index }, i) => {
    const [form, nTokens] = bestForm(word, tokenizer, i === 0, language);
    hasWords ||= nTokens === 1 && lengthOf(form) > 1;
    isTitle ||= lengthOf(form) <= SHORT && isLower(form) && form !== word;
    result += text.slice(end, index) + form;
    end = index + word.length;
  });
  return inCapitals || (isTitle && hasWords) ? result + text.slice(end) : text;
}
