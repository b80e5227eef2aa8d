// Spans within a text, taken out before it is translated and put back by word alignment. Counterpart: documents/inline.py and documents/spans.py.

import { HAS_UNSPACED, UNSPACED_SIGN, continuesLetter, unitSpans } from "./sentences.js";
import { continuesWord } from "./terms.js";
import { strip } from "./text.js";

const AFTER_SPAN = " \t,.;:!?)]}>–—-";
const BEFORE_SPAN = " \t([{<–—-";
const FINAL = ".!?…。！？";
/** @type {Record<string, string>} */
const FULL_WIDTH_ENDS = { ".": "。", "!": "！", "?": "？" };
const BREAKS = ".,;:!?…。，、；：！？ \u00a0\u202f";
const OPENING_MARKS = "([{«“„‘\"'¿¡（「『";
const OPENING = ["(", "[", "{", "«", "“", "（", "「", "『"];
const MAX_TOKEN = 256;
const MORE_AFTER = "=/\\@_.&#?-";
const [LESS, GREATER] = ["&lt;", "&gt;"];
const ENTITIES = ["&amp;", LESS, GREATER];
const MAX_WINDOW = 1000; // characters that patterns are applied to at once

/** @param {string} character */
const isWord = (character) => /[\p{L}\p{N}\p{M}_]/u.test(character);
/** @param {string} text */
const isSpace = (text) => text !== "" && strip(text) === "";
/** @param {string} text */
const lastOf = (text) => [...text.slice(-2)].at(-1) ?? "";
/** @param {string} text */
const firstOf = (text) => [...text.slice(0, 2)][0] ?? "";
/** @param {string} text @param {string} signs */
const cut = (text, signs) => {
  let end = text.length;
  while (end && signs.includes(text[end - 1])) end -= 1;
  return text.slice(0, end);
};
/** @param {string} text */
const rightStrip = (text) => strip(`.${text}`).slice(1);

/**
 * Start and end of each match of a pattern. One of more than half a window may be cut.
 * @param {RegExp} pattern @param {string} text @returns {Span[]}
 */
export function matches(pattern, text) {
  /** @type {Span[]} */
  const found = [];
  for (let begin = 0; begin < text.length;) {
    let end = Math.min(text.length, begin + MAX_WINDOW);
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1])) end -= 1; // not within a character
    const window = text.slice(0, end);
    // Those that begin later are found in the next window, with all that follows them.
    const last = end === text.length ? end : begin + MAX_WINDOW / 2;
    let following = last;
    const inWindow = new RegExp(pattern.source, pattern.flags);
    inWindow.lastIndex = begin;
    for (let match = inWindow.exec(window); match && match.index < last; match = inWindow.exec(window)) {
      const stop = match.index + match[0].length;
      if (begin < match.index && stop === end && end < text.length) {
        following = match.index;
        break;
      }
      found.push([match.index, stop]);
      following = Math.max(following, stop);
    }
    begin = following;
  }
  return found;
}

/** @param {string} text */
const leftStrip = (text) => strip(`${text}.`).slice(0, -1);

export class Inline {
  /** @param {Record<string, string>} patterns those of `browser/patterns.py` */
  constructor(patterns) {
    const whole = (name) => new RegExp(`^(?:${patterns[name]})$`, "u");
    const beginning = (name) => new RegExp(`^(?:${patterns[name]})`, "u");
    this.wholeTag = whole("tag");
    this.closing = new RegExp(patterns.closing, "yu");
    this.emptyPair = new RegExp(patterns.empty_pair, "gu");
    this.spacedMark = new RegExp(patterns.spaced_mark, "u");
    this.straySpace = beginning("stray_space");
    this.straySpaceOfMark = beginning("stray_space_of_mark");
    this.tokenAfter = beginning("token");
    this.tokenBefore = new RegExp(`(?:${patterns.token})$`, "u");
    this.between = whole("between");
    this.entity = whole("entity");
    this.address = new RegExp(patterns.address_of_unit, "u");
    this.cutEntity = new RegExp(patterns.cut_entity, "u");
    this.technicalBefore = whole("technical_before");
    this.technicalAfter = whole("technical_after");
  }

  /**
   * What belongs to a span of the text before it, and of that after it.
   * @param {string} before @param {string} after @returns {[first: string, last: string]}
   */
  glued(before, after) {
    const [left] = this.tokenBefore.exec([...before].slice(-MAX_TOKEN).join(""));
    const [right] = this.tokenAfter.exec([...after].slice(0, MAX_TOKEN).join(""));
    if (left.length === MAX_TOKEN || right.length === MAX_TOKEN) return ["", ""];
    const begin = left.replace(/^[([{<"']+/u, "");
    const first = this.technicalBefore.test(begin) ? begin : "";
    let last = cut(right, ".,;:!?)]}>\"'");
    if (right[last.length] === ";" && this.cutEntity.test(last)) last += ";";
    const goesOn = first === "/" || /[\p{L}\p{N}]/u.test(first);
    return [first, this.technicalAfter.test(last) || (goesOn && last !== "" && MORE_AFTER.includes(last[0])) ? last : ""];
  }

  /**
   * Indices of the tags that belong together, inner ones first.
   * @param {string[]} spans @returns {[start: number, end: number][]}
   */
  tagPairs(spans) {
    const opened = [];
    const pairs = [];
    spans.forEach((span, i) => {
      const match = this.wholeTag.exec(span);
      if (!match || match[3]) return;
      const name = match[2].toLowerCase();
      if (!match[1]) {
        opened.push([name, i]);
        return;
      }
      const start = opened.findLastIndex(([other]) => other === name);
      if (start < 0) return;
      pairs.push([opened[start][1], i]);
      opened.length = start;
    });
    return pairs;
  }

  /**
   * Spans with what is written together with them and is no text; those with only signs between them are one.
   * @param {string} text @param {Span[]} spans @returns {Span[]}
   */
  extended(text, spans) {
    /** @type {Span[]} */
    const results = [];
    spans.forEach(([begin, finish], i) => {
      let [start, end] = [begin, finish];
      if (!this.wholeTag.test(text.slice(start, end)) && !this.entity.test(text.slice(start, end))) {
        const [before, after] = this.glued(text.slice(results.at(-1)?.[1] ?? 0, start), text.slice(end, spans[i + 1]?.[0] ?? text.length));
        [start, end] = [start - before.length, end + after.length];
      }
      const last = results.at(-1);
      if (last && this.between.test(text.slice(last[1], start))) {
        const tags = [text.slice(...last), text.slice(start, end)].map((span) => this.wholeTag.exec(span)).filter((tag) => tag);
        if (!tags.length || (tags.every((tag) => tag[3]) && last[1] < start)) {
          results[results.length - 1] = [last[0], end];
          return;
        }
      }
      results.push([start, end]);
    });
    return results;
  }

  /** Whether a character is a letter, a digit, white space, punctuation, a bracket or a quotation mark; so is none. @param {string} character */
  isPlain(character) {
    if (character === "" || isWord(character) || isSpace(character) || (OPENING_MARKS.includes(character) && character !== "'")) return true;
    this.closing.lastIndex = 0;
    return this.closing.exec(character)?.[0] === character;
  }

  /**
   * Spans of which a pair of tags is one if there is no text between them.
   * @param {string} text @param {Span[]} spans @returns {Span[]}
   */
  joined(text, spans) {
    const nTexts = [0];
    for (let i = 1; i < spans.length; i += 1) nTexts.push(nTexts.at(-1) + Number(strip(text.slice(spans[i - 1][1], spans[i][0])) !== ""));
    const ends = new Map(this.tagPairs(spans.map(([a, b]) => text.slice(a, b))).filter(([i, j]) => nTexts[i] === nTexts[j]));
    /** @type {Span[]} */
    const results = [];
    for (let i = 0; i < spans.length;) {
      const end = ends.get(i) ?? i;
      results.push([spans[i][0], spans[end][1]]);
      i = end + 1;
    }
    return results;
  }

  /**
   * Number of spans before the sentence, and after it.
   * @param {string} text @param {Span[]} spans @returns {[nBefore: number, nAfter: number]}
   */
  outer(text, spans) {
    let [nBefore, nAfter] = [0, 0];
    while (nBefore < spans.length) {
      if (isWord(text.slice(nBefore ? spans[nBefore - 1][1] : 0, spans[nBefore][0]))) break;
      nBefore += 1;
    }
    while (nAfter < spans.length - nBefore) {
      const end = nAfter ? spans.at(-nAfter)[0] : text.length;
      if (isWord(text.slice(spans.at(-nAfter - 1)[1], end))) break;
      nAfter += 1;
    }
    const pairs = this.tagPairs(spans.map(([a, b]) => text.slice(a, b)));
    for (;;) {
      const isOutside = (i) => i < nBefore || i >= spans.length - nAfter;
      const broken = pairs.find(([i, j]) => isOutside(i) !== isOutside(j));
      if (!broken) return [nBefore, nAfter];
      const first = isOutside(broken[0]) ? broken[0] : broken[1];
      nBefore = Math.min(nBefore, first);
      nAfter = Math.min(nAfter, spans.length - first - 1);
    }
  }

  /**
   * Take spans out of a text: what is before and after the sentence, the sentence, and the spans in it.
   * @param {string} text @param {Span[]} all @param {boolean} [extends_] also take out what is written together with them
   * @returns {Detached}
   */
  detach(text, all, extends_ = true) {
    const spans = this.joined(text, extends_ ? this.extended(text, all) : all);
    const [nBefore, nAfter] = this.outer(text, spans);
    let begin = nBefore ? spans[nBefore - 1][1] : 0;
    while (begin > 0 && begin < text.length && AFTER_SPAN.includes(text[begin])) begin += 1;
    let end = nAfter ? Math.max(begin, spans.at(-nAfter)[0]) : text.length;
    while (begin < end && end < text.length && BEFORE_SPAN.includes(text[end - 1])) end -= 1;
    let core = "";
    let position = begin;
    const inner = [];
    for (const [a, b] of spans) {
      if (a < begin || b > end) continue;
      core += text.slice(position, a);
      const [before, after] = [lastOf(text.slice(0, a)), firstOf(text.slice(b))];
      if (isSpace(before) && isSpace(after)) core = rightStrip(core);
      else if (continuesWord(before + after, before.length) && !continuesLetter(before, after)) core += " ";
      const isTag = this.wholeTag.test(text.slice(a, b));
      const [joinedBefore, joinedAfter] = [before, after].map((c) => c !== "" && (isTag ? !isSpace(c) : isWord(c) && !HAS_UNSPACED.test(c)));
      this.closing.lastIndex = b;
      const units = unitSpans(core);
      const begun = units.length && !isSpace(lastOf(core)) && after !== "" && !isSpace(after) ? core.slice(...units.at(-1)) : "";
      const afterOpening = begun !== "" && [...begun.replaceAll(LESS, "(")].every((sign) => OPENING_MARKS.includes(sign));
      const punctuationAfter = text.startsWith(GREATER, b) ? ">" : this.closing.exec(text)?.[0] ?? "";
      const [signBefore, signAfter] = [before, after].map((c) => (isTag || this.isPlain(c) ? "" : c));
      const around = lastOf(rightStrip(text.slice(Math.max(begin, a - 2), a))) + firstOf(leftStrip(text.slice(b, Math.min(b + 2, end))));
      const last = rightStrip(text.slice(Math.max(begin, a - MAX_TOKEN), a)).at(-1) ?? "";
      const mark = last && BREAKS.includes(last) ? last : "";
      const isAfterSpan = inner.length > 0 && !strip(text.slice(position, a));
      inner.push({
        text: text.slice(a, b), unit: units.length - (afterOpening ? 1 : 0), joinedBefore, joinedAfter, punctuationAfter, afterOpening,
        isEnclosed: around.length === 2 && around.search(this.emptyPair) === 0,
        signBefore, signAfter, markBefore: isAfterSpan ? inner.at(-1).markBefore : mark,
      });
      position = b;
    }
    core += text.slice(position, end);
    const afterText = text.slice(end);
    const final = lastOf(rightStrip(afterText));
    const isEndBorrowed = afterText !== "" && core !== "" && FINAL.includes(final) && !FINAL.includes(core.at(-1));
    return { before: text.slice(0, begin), core: isEndBorrowed ? core + final : core, after: afterText, inner, isEndBorrowed };
  }

  /**
   * Put the spans into the translation of the sentence, where the alignment says.
   * @param {Detached} detached @param {string} translation @param {Alignment} aligned
   */
  putBack(detached, translation, aligned) {
    return this.putAt(detached, translation, this.alignedPositions(detached, translation, aligned));
  }

  /**
   * Where the spans belong in the translation of the sentence, by the alignment; in proportion, if there is none.
   * @param {Detached} detached @param {string} translation @param {Alignment} aligned
   */
  alignedPositions({ core, inner }, translation, aligned) {
    const [nSource, nTarget] = [core, translation].map((text) => unitSpans(text).length);
    const links = aligned.length ? aligned : Array.from({ length: nSource }, (_, word) => [word, Math.floor(word * nTarget / nSource)]);
    const places = this.addresses(translation);
    const copied = [...this.addresses(core)].filter(([address]) => places.has(address)).map(([address, word]) => [word, places.get(address)]);
    const others = links.filter(([s, t]) => t < nTarget && !copied.some(([word, place]) => word === s || place === t));
    return this.positions(inner, [...others, ...copied], nTarget);
  }

  /**
   * The addresses in a text, each with the index of its unit.
   * @param {string} text @returns {Map<string, number>}
   */
  addresses(text) {
    const found = unitSpans(text).map(([start, end]) => this.address.exec(text.slice(start, end))?.[0]);
    return new Map(found.flatMap((address, i) => (address ? [[address, i]] : [])));
  }

  /**
   * Put the spans into the translation of the sentence.
   * @param {Detached} detached @param {string} translation @param {Position[]} positions where each belongs
   */
  putAt({ before, core, after, inner, isEndBorrowed }, translation, positions) {
    let output = strip(core) ? strip(translation) : core;
    const units = unitSpans(output);
    const enclosed = inner.flatMap((span, i) => (span.isEnclosed ? [i] : [])).sort((i, j) => positions[i][0] - positions[j][0]);
    const empty = [...output.matchAll(this.emptyPair)];
    const pairs = new Map(empty.length === enclosed.length ? enclosed.map((i, k) => [i, empty[k]]) : []);
    const offsets = [];
    const texts = [];
    positions.forEach(([place, closes], i) => {
      const span = inner[i];
      const pair = pairs.get(i);
      if (pair) {
        offsets.push(pair.index + pair[0].length);
        texts.push(span.text + pair[1]);
      } else if (closes || place >= units.length) {
        let at = units.length ? units.at(place - 1)[1] : 0;
        const follows = (sign) => sign !== "" && output.slice(0, at).endsWith(sign);
        let isJoined = span.joinedBefore || OPENING.some(follows) || follows(span.signBefore);
        if (span.punctuationAfter || place >= units.length) {
          at = betweenPunctuation(output, at, span);
          isJoined ||= OPENING.some(follows);
          const rest = output.slice(at);
          const stray = this.straySpace.exec(rest) ?? (this.spacedMark.test(output) ? null : this.straySpaceOfMark.exec(rest));
          if (stray && at && span.punctuationAfter && !span.joinedBefore) {
            at += stray[0].length;
            isJoined = true;
          }
        }
        offsets.push(at);
        isJoined ||= span.joinedAfter && span.text.startsWith("</"); // the space is before the tag in the source
        isJoined ||= UNSPACED_SIGN.test(lastOf(output.slice(0, at)));
        texts.push(isJoined ? span.text : ` ${span.text}`);
      } else {
        let at = units[place][0];
        while (span.afterOpening && at < units[place][1] - 1) {
          const isLess = output.startsWith(LESS, at);
          if (!isLess && !OPENING_MARKS.includes(output[at])) break;
          at += isLess ? LESS.length : 1;
        }
        offsets.push(at);
        const isStart = this.wholeTag.test(span.text) && !span.text.startsWith("</") && !span.text.endsWith("/>");
        const isJoined = span.joinedAfter || (span.afterOpening && span.punctuationAfter !== "") || (span.joinedBefore && isStart)
          || (span.signAfter !== "" && output.startsWith(span.signAfter, at)) || UNSPACED_SIGN.test(output.slice(at));
        texts.push(isJoined ? span.text : `${span.text} `);
      }
    });
    for (const [at, i] of this.insertions(inner.map((span) => span.text), offsets).reverse()) output = output.slice(0, at) + texts[i] + output.slice(at);
    const isOpen = core !== "" && !FINAL.includes(core.at(-1));
    let rest = after;
    if (after && (isOpen || isEndBorrowed)) {
      const bare = cut(output, `${FINAL} `);
      const mark = strip(output.slice(bare.length));
      const end = rightStrip(after).length;
      if (mark && mark === FULL_WIDTH_ENDS[after[end - 1]]) rest = after.slice(0, end - 1) + mark + after.slice(end);
      output = bare;
    }
    if (rest[0] === " " && UNSPACED_SIGN.test(lastOf(output))) rest = rest.slice(1);
    return before + output + rest;
  }

  /**
   * Offset and index of each span in the order of insertion, so that they are nested as they were.
   * @param {string[]} spans @param {number[]} offsets @returns {[offset: number, index: number][]}
   */
  insertions(spans, offsets) {
    const ends = new Map([...spans.map(/** @returns {[number, number]} */ (_, i) => [i, i]), ...this.tagPairs(spans)]);
    const closing = new Set([...ends].filter(([i, end]) => end > i).map(([, end]) => end));
    const children = new Map([[-1, []]]);
    const around = [-1];
    spans.forEach((_, i) => {
      if (closing.has(i)) {
        around.pop();
        return;
      }
      children.get(around.at(-1)).push(i);
      if (ends.get(i) > i) {
        children.set(i, []);
        around.push(i);
      }
    });
    for (const [parent, inner] of children) {
      const high = parent < 0 ? Math.max(0, ...offsets) : offsets[ends.get(parent)];
      let low = parent < 0 ? 0 : offsets[parent];
      inner.sort((i, j) => offsets[i] - offsets[j] || offsets[ends.get(i)] - offsets[ends.get(j)] || i - j);
      for (const i of inner) {
        offsets[i] = Math.min(Math.max(offsets[i], low), high);
        low = offsets[ends.get(i)] = Math.min(Math.max(offsets[ends.get(i)], offsets[i]), high);
      }
    }
    /** @type {[offset: number, index: number][]} */
    const results = [];
    const waiting = children.get(-1).toReversed();
    while (waiting.length) {
      const i = waiting.pop();
      results.push([offsets[i], i]);
      if (ends.get(i) > i) waiting.push(ends.get(i), ...children.get(i).toReversed());
    }
    return results;
  }

  /**
   * For each span the index of the target unit that it is inserted at, and whether it follows the unit before.
   * @param {InnerSpan[]} inner @param {Alignment} alignment @param {number} nTarget
   * @returns {Position[]}
   */
  positions(inner, alignment, nTarget) {
    /** @type {Position[]} */
    const results = inner.map((span) => {
      const place = placeOf(span.unit, alignment, nTarget);
      const isAfterWord = span.joinedBefore || span.signBefore !== "";
      const belongsBefore = span.punctuationAfter !== "" || (isAfterWord && !span.joinedAfter && !span.signAfter);
      return [place, span.text.startsWith("</") || (belongsBefore && place > 0 && !span.afterOpening)];
    });
    for (const [start, i] of this.tagPairs(inner.map((span) => span.text))) {
      const covered = alignment.filter(([s]) => inner[start].unit <= s && s < inner[i].unit).map(([, t]) => t);
      const [first, last] = covered.length ? [Math.min(...covered), Math.max(...covered) + 1] : [results[start][0], results[start][0]];
      results[start] = [first, false];
      results[i] = [last, last > first];
      for (let k = start + 1; k < i; k += 1) {
        const [place, closes] = results[k];
        results[k] = [Math.min(Math.max(place, first), last), (closes && place > first) || (place >= last && last > first)];
      }
    }
    return results;
  }
}

/**
 * Offset at which a span belongs in the punctuation that a part of a text ends with.
 * @param {string} text @param {number} end @param {InnerSpan} span
 */
function betweenPunctuation(text, end, span) {
  const begin = beforePunctuation(text, end, BREAKS + span.punctuationAfter);
  const [mark, after] = [span.markBefore, span.punctuationAfter.slice(0, 1)];
  const nMarks = after === mark && !leftStrip(text.slice(end)).startsWith(after) ? 2 : 1;
  const parts = text.slice(begin, end).split(mark);
  return mark && parts.length > nMarks ? begin + parts.slice(0, -nMarks).join(mark).length + 1 : begin;
}

/** @param {string} text @param {number} end @param {string} punctuation */
function beforePunctuation(text, end, punctuation) {
  let at = end;
  const endsWith = (entity) => text.slice(0, at).endsWith(entity);
  while (at) {
    if (endsWith(GREATER) && punctuation.includes(">")) at -= GREATER.length;
    else if (ENTITIES.some(endsWith) || !punctuation.includes(text[at - 1])) break;
    else at -= 1;
  }
  return at;
}

/**
 * Index of the target unit before which something between two source units belongs: where the fewest near links cross.
 * @param {number} unit @param {Alignment} alignment @param {number} nTarget
 */
function placeOf(unit, alignment, nTarget) {
  const balance = new Float64Array(nTarget);
  for (const [s, t] of alignment) balance[t] += s >= unit ? 1 / (s - unit + 1) ** 2 : -1 / (unit - s) ** 2;
  const crossing = [0];
  for (const x of balance) crossing.push(crossing.at(-1) + x);
  return crossing.lastIndexOf(Math.min(...crossing));
}
