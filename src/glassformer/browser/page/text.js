// Texts as Python has them: white space, words, letters.

export const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // inside of a class
const AROUND = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu");
const WORDS = new RegExp(`[^${SPACE}]+`, "gu");

/** @param {string} text */
export function strip(text) {
  return text.replace(AROUND, "");
}

/**
 * The words of a text: the parts between white space, with their positions.
 * @param {string} text
 */
export function wordsIn(text) {
  return [...text.matchAll(WORDS)];
}

/** @param {string} text @returns {string[]} */
export function split(text) {
  return wordsIn(text).map(([word]) => word);
}

/**
 * Positions in characters, as Python counts them, of spans in UTF-16.
 * @param {string} text @param {(Span | null)[]} spans @returns {(Span | null)[]}
 */
export function characterSpans(text, spans) {
  if (!/[\ud800-\udfff]/.test(text)) return spans;
  return spans.map((span) => span && [codePoints(text, span[0]), codePoints(text, span[1])]);
}

/**
 * Number of characters before a position in UTF-16, as Python counts them.
 * @param {string} text @param {number} position
 */
export function codePoints(text, position) {
  return Array.from(text.slice(0, position)).length;
}
