// Sentences of a text.

// A full stop after an initial, a day or one of these titles ends no sentence, nor does one before a lower-case letter.
const ABBREVIATION = /(?<![\p{L}\d])(?:\p{Lu}|\d{1,2}|Mr|Mrs|Ms|Dr|Prof|St|Mt|Mme|Mlle|Hr|Fr|No|Nr)/u.source;
const SENTENCE = new RegExp(
  `\\S.*?(?:(?:[!?…।॥؟۔]|(?<!${ABBREVIATION})\\.)["'”’»)\\]]*(?=\\s+[^\\s\\p{Ll}]|\\s*$)`
    + "|[。！？]+[」』”’）〉》】]*(?![。！？」』”’）〉》】]|と|って)|$)", "gus", // と and って go on after a quotation
);
const END = /[.!?…।॥؟۔。！？]["'”’»)\]」』）〉》】]*$/u;
const FULL_WIDTH_END = /[。！？，、；：」』）〉》】]$/u;
const UNSPACED = "\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3040-\\u30ff\\u3400-\\u9fff\\uf900-\\ufaff"; // letters of scripts without spaces
const UNSPACED_END = new RegExp(`[${UNSPACED}]$`, "u");

/**
 * The space between two sentences of a translation.
 * @param {string} before the translation before it @param {string} space between the sentences of the source
 */
export function spaceAfter(before, space) {
  if (FULL_WIDTH_END.test(before)) return space === " " ? "" : space;
  return space || (UNSPACED_END.test(before) ? "" : " ");
}

/** @type {Map<string, [index: number, sentence: string][]>} */
let known = new Map(); // sentences of the lines of the last text: a key press changes one line

/**
 * The sentences of a text with their positions.
 * @param {string} text @returns {Sentence[]}
 */
export function sentencesOf(text) {
  const sentences = [];
  const lines = new Map();
  let start = 0;
  for (const line of text.split("\n")) {
    const found = known.get(line)
      ?? [...line.matchAll(SENTENCE)].map(/** @returns {[number, string]} */ (match) => [match.index, match[0].trimEnd()]);
    lines.set(line, found);
    for (const [index, sentence] of found) sentences.push({ start: start + index, text: sentence });
    start += line.length + 1;
  }
  known = lines;
  return sentences;
}

/**
 * The sentence at a position of the text.
 * @param {Sentence[]} parts @param {number} position
 */
export function sentenceAt(parts, position) {
  return parts.findLast((part) => part.start <= position);
}

/**
 * Whether a sentence is being typed at a position: it has the position in it, and no end before it.
 * @param {Sentence} part @param {number} position
 */
export function isDraft({ start, text }, position) {
  const end = start + text.length;
  return start < position && position <= end && !(position === end && END.test(text));
}

const SPACE = "\\p{White_Space}\\x1c-\\x1f"; // as of Python; \s differs
const OPENING = "(\\[{«“„‘\"'¿¡（「『";
const BEFORE_LETTER = "\\u0e40-\\u0e44\\u0ec0-\\u0ec4"; // vowels that are written before their consonant
const STACKING = "\\u1039\\u17d2"; // the consonant after it is below the one before
const MARKS = "\\u0e30-\\u0e3a\\u0e45\\u0e47-\\u0e4e\\u0eb0-\\u0ebc\\u0ec8-\\u0ece\\u102b-\\u103e\\u1056-\\u1059\\u105e-\\u1060\\u1062-\\u1064"
  + "\\u1067-\\u106d\\u1071-\\u1074\\u1082-\\u108d\\u108f\\u109a-\\u109d\\u17b4-\\u17d3\\u17dd\\u3099\\u309a\\u0300-\\u036f\\u200c\\u200d"
  + "\\ufe00-\\ufe0f\\u{1f3fb}-\\u{1f3ff}\\u{e0100}-\\u{e01ef}"; // what a reader sees as part of the letter before it
const WITH_ANY = `[${STACKING}][${UNSPACED}]|[${MARKS}]`;
const WITH_LETTER = `${WITH_ANY}|[\\u0e46\\u0ec6ぁぃぅぇぉっゃゅょゎ\\u309b-\\u309eー々]`;
const LETTER = `[\\u30a0-\\u30ff][\\u30a0-\\u30ff${MARKS}]*|[${BEFORE_LETTER}${STACKING}]?[${UNSPACED}](?:${WITH_LETTER})*`;
const ENTITY = "&(?:amp;)*(?:amp|lt|gt);"; // a sign as it is escaped in a file
const SPACED = new RegExp(`[^${SPACE}]+`, "gu");
const UNIT = new RegExp(
  `[${OPENING}]{0,4}(?:${LETTER})(?:${ENTITY}|[^\\p{L}\\p{N}_${SPACE}${UNSPACED}${OPENING}]|${WITH_ANY})*`
    + `|[^${SPACE}${UNSPACED}](?:${WITH_ANY}|[^${SPACE}${UNSPACED}])*?(?=[${SPACE}]|[${OPENING}]{0,4}(?![${MARKS}])[${UNSPACED}]|$)`, "gu",
);
const PART_OF_LETTER = new RegExp(`^(?:[${BEFORE_LETTER}${STACKING}][${UNSPACED}]|.[${MARKS}]|\\u200d.)$`, "su");
export const HAS_UNSPACED = new RegExp(`[${UNSPACED}]`, "u");
export const UNSPACED_SIGN = new RegExp(`^[${UNSPACED}\\u3001-\\u303f\\uff01-\\uff65]`, "u"); // with those of full width

/**
 * Whether a reader sees two characters as one letter. Counterpart: documents/words.py.
 * @param {string} before @param {string} after
 */
export const continuesLetter = (before, after) => /^\p{M}/u.test(after) || PART_OF_LETTER.test(before + after);

/**
 * The parts of a text between white space, with their positions.
 * @param {string} text
 */
export function spacedWordsOf(text) {
  return [...text.matchAll(SPACED)];
}

/**
 * The words of a text with their positions, as alignments number them; in scripts without spaces, the letters.
 * Counterpart: documents/words.py.
 * @param {string} text
 */
export function wordsOf(text) {
  return [...text.matchAll(HAS_UNSPACED.test(text) ? UNIT : SPACED)];
}

/**
 * Start and end of each of these words.
 * @param {string} text @returns {Span[]}
 */
export function unitSpans(text) {
  return wordsOf(text).map(({ 0: unit, index }) => [index, index + unit.length]);
}
