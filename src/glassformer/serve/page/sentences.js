// Sentences of a text.

// A full stop after an initial, a day or one of these titles ends no sentence, nor does one before a lower-case letter.
const ABBREVIATION = /(?<![\p{L}\d])(?:\p{Lu}|\d{1,2}|Mr|Mrs|Ms|Dr|Prof|St|Mt|Mme|Mlle|Hr|Fr|No|Nr)/u.source;
const SENTENCE = new RegExp(
  `\\S.*?(?:(?:[!?…।॥؟۔]|(?<!${ABBREVIATION})\\.)["'”’»)\\]]*(?=\\s+[^\\s\\p{Ll}]|\\s*$)`
    + "|[。！？]+[」』”’）〉》】]*(?![。！？」』”’）〉》】]|と|って)|$)", "gus", // と and って go on after a quotation
);
const END = /[.!?…।॥؟۔。！？]["'”’»)\]」』）〉》】]*$/u;
const FULL_WIDTH_END = /[。！？，、；：」』）〉》】]$/u;
const UNSPACED_END = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]$/u; // letters of scripts without spaces

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

const WORD = /[^\p{White_Space}\x1c-\x1f]+/gu; // as str.split of Python, by which the server numbers words; \s differs

/**
 * The words of a text with their positions.
 * @param {string} text
 */
export function wordsOf(text) {
  return [...text.matchAll(WORD)];
}
