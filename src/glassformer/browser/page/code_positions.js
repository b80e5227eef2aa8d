// Where protected spans belong in a translation, by a model that was trained with codes. Counterpart: tasks/code_positions.py.

import { unitSpans } from "./sentences.js";
import { strip } from "./text.js";

const [OPEN, CLOSE, ALONE] = ["\ue000", "\ue001", "\ue002"];
const CODES = [OPEN, CLOSE, ALONE];
const AGREEMENT = 6; // nats for each link of the alignment that agrees with a pair of tags
const WINDOW = 12; // units on each side of the position that the alignment says
const N_ROUNDS = 3; // a pair of tags is moved as a whole, then its end, then its beginning

/**
 * Integers from the first to the last.
 * @param {number} first @param {number} last
 */
const integers = (first, last) => Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);

/**
 * How two spans lie, each from a begin to an end.
 * @param {number[]} first @param {number[]} second
 */
function relation(first, second) {
  if (first[1] <= second[0] || second[1] <= first[0]) return "beside";
  if (second[0] <= first[0] && first[1] <= second[1]) return "within";
  return first[0] <= second[0] && second[1] <= first[1] ? "around" : "crossed";
}

/** A code, or a pair of tags, whose position is sought: the sentence with this code only. */
class Code {
  /**
   * `indices`: which of the spans of the sentence it is; `positions`: where it is so far; `source`: the sentence with the
   * code.
   * @param {Inline} inline @param {Detached} detached @param {string} output @param {number[]} indices
   * @param {Position[]} positions @param {string} source @param {Alignment} links
   */
  constructor(inline, detached, output, indices, positions, source, links) {
    this.inline = inline;
    this.detached = detached;
    this.output = output;
    this.indices = indices;
    this.positions = positions;
    this.source = source;
    this.links = links;
    this.isPair = indices.length > 1;
    /** @type {Map<string, { score: number, positions: Position[] }>} */
    this.tried = new Map(); // by the text
  }

  /** @param {Position[]} positions */
  text(positions) {
    return this.inline.putAt(this.detached, this.output, positions);
  }

  /**
   * The best positions that were tried: of a pair of tags, those that are beside, within or around other pairs as in the
   * source. If there are none, the positions so far.
   * @param {Code[]} others
   */
  best(others = []) {
    let best;
    for (const found of this.tried.values()) if (this.fits(found.positions, others) && !(best?.score >= found.score)) best = found;
    return best ? best.positions : this.positions;
  }

  /** @param {Position[]} positions @param {Code[]} others */
  fits(positions, others) {
    if (!this.isPair) return true;
    const endsOf = (/** @type {Position[]} */ [[first], [last]]) => [first, last];
    const own = endsOf(positions);
    return others.every((other) => {
      if (!other.isPair) return true;
      const ends = endsOf(other.positions);
      const inSource = relation(this.indices, other.indices);
      const isEqual = own[0] === ends[0] && own[1] === ends[1];
      return isEqual ? inSource !== "beside" : relation(own, ends) === inSource;
    });
  }

  /**
   * Number of links of the alignment that agree with a pair of tags.
   * @param {Position[]} positions
   */
  agreement(positions) {
    if (!this.isPair) return 0;
    const [begin, end] = this.detached.inner.map(({ unit }) => unit);
    const [[first], [last]] = positions;
    return this.links.filter(([s, t]) => (begin <= s && s < end) === (first <= t && t < last)).length;
  }

  /**
   * Positions to try next.
   * @param {number} round @returns {Position[][]}
   */
  candidates(round) {
    const n = unitSpans(this.output).length;
    const [[first], [last] = [0]] = this.positions;
    if (!this.isPair) {
      const near = integers(Math.max(0, first - WINDOW), Math.min(n, first + WINDOW));
      return near.flatMap((at) => [false, true].filter((closes) => at || !closes).map(/** @returns {Position[]} */ (closes) => [[at, closes]]));
    }
    if (round === 0) return integers(Math.max(-first, -WINDOW), Math.min(n - last, WINDOW)).map((move) => [[first + move, false], [last + move, true]]);
    if (round === 1) return integers(first + 1, Math.min(n, last + WINDOW)).map((at) => [[first, false], [at, true]]);
    return integers(Math.max(0, first - WINDOW), last - 1).map((at) => [[at, false], [last, true]]);
  }
}

/**
 * The codes of a sentence whose translation has words, each with the position that it has so far.
 * @param {Inline} inline @param {Detached} sentence @param {string} output @param {Position[]} positions
 * @param {Alignment} links
 */
function codesOf(inline, sentence, output, positions, links) {
  const [nSource, nTarget] = [sentence.core, output].map((text) => unitSpans(text).length);
  if (!nSource || !nTarget) return [];
  const own = inline.alignedPositions(sentence, sentence.core, integers(0, nSource - 1).map((i) => [i, i]));
  const partner = new Map(inline.tagPairs(sentence.inner.map(({ text }) => text)));
  const ends = new Set(partner.values());
  const codes = [];
  for (let i = 0; i < sentence.inner.length; i += 1) {
    if (ends.has(i)) continue;
    const indices = partner.has(i) ? [i, partner.get(i)] : [i];
    const isPair = indices.length > 1;
    const alone = { before: "", core: sentence.core, after: "", isEndBorrowed: false, inner: indices.map((k, j) => ({ ...sentence.inner[k], text: isPair ? CODES[j] : ALONE })) };
    if (isPair && own[i][0] >= own[indices[1]][0]) continue; // no words between them
    /** @type {Position[]} */
    let begin = indices.map((k) => positions[k]);
    if (isPair && begin[0][0] >= begin[1][0]) {
      const first = Math.min(begin[0][0], nTarget - 1);
      begin = [[first, false], [first + 1, true]];
    }
    codes.push(new Code(inline, alone, output, indices, begin, inline.putAt(alone, sentence.core, indices.map((k) => own[k])), links));
  }
  return codes;
}

/**
 * Token ids of a text with codes, whose white space is not encoded.
 * @param {Tokenizer} tokenizer @param {string} text @param {number[]} codes the ids of the codes
 */
function encodeWithCodes(tokenizer, text, codes) {
  const parts = text.split(/([\ue000-\ue002])/u);
  return parts.flatMap((part, i) => (i % 2 ? [codes[CODES.indexOf(part)]] : tokenizer.encode(parts.length > 1 ? strip(part) : part)));
}

/**
 * Where the spans of a sentence belong in its translation: a code is put where it makes the translation most probable,
 * given the sentence with the code, each code or pair of tags without the others.
 * @param {Model} model @param {Tokenizer} tokenizer @param {Inline} inline @param {Detached} sentence
 * @param {string} output @param {Position[]} positions by the alignment @param {Alignment} links
 */
export function codePositions(model, tokenizer, inline, sentence, output, positions, links) {
  const { eos, codes: codeIds } = model.header;
  const limit = model.maxLength - 1;
  const results = [...positions];
  const codes = codesOf(inline, sentence, output, positions, links);
  for (const code of codes) {
    const source = encodeWithCodes(tokenizer, code.source, codeIds);
    for (let round = 0; round < (code.isPair ? N_ROUNDS : 1); round += 1) {
      const tried = new Map(code.candidates(round).map((candidate) => [code.text(candidate), candidate]));
      const used = [...tried].filter(([text]) => !code.tried.has(text))
        .map(([text, candidate]) => ({ text, candidate, target: encodeWithCodes(tokenizer.targets, text, codeIds) }))
        .filter(({ target }) => Math.max(target.length, source.length) < limit);
      const scores = model.scores([...source.slice(0, limit - 1), eos], used.map(({ target }) => [...target, eos]));
      used.forEach(({ text, candidate }, i) => {
        code.tried.set(text, { score: scores[i] + AGREEMENT * code.agreement(candidate), positions: candidate });
      });
      code.positions = code.best();
    }
  }
  codes.forEach((code, k) => {
    code.positions = code.best(codes.slice(0, k));
    code.indices.forEach((index, i) => { results[index] = code.positions[i]; });
  });
  return results;
}
