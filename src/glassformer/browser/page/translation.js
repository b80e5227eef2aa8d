// The steps of a translation. Counterparts: tasks/steps.py, tasks/splitting.py, tasks/joining.py, tasks/continuations.py, corpora/words.py.

import { align } from "./alignment.js";
import { isCapitals, recased, upper } from "./casing.js";
import { codePositions } from "./code_positions.js";
import { wordsWithConfidence } from "./confidence.js";
import { Inline, matches } from "./inline.js";
import { distribution, headOf, layersOf, record } from "./record.js";
import { Searches, search } from "./search.js";
import { UNSPACED_SIGN, continuesLetter, spaceAfter, unitSpans } from "./sentences.js";
import { KnownWords } from "./spelling.js";
import { Glossary, unmet, withTerms } from "./terms.js";
import { split, strip, wordsIn } from "./text.js";

const CLAUSE_ENDS = [",", ";", ":", "，", "、", "；", "：", "،", "؛"]; // after which a sentence without spaces is cut
const MAX_EXAMINED = 20000; // characters at the end of a text, for repetitions
const MAX_ABBREVIATION = 10; // characters
const MAX_TOKENS_OF_LETTER = 4; // of one byte in UTF-8 each
const REPEATED_NGRAMS = [3, 2];
const MAX_BEAM = 64;

/**
 * Whether what follows the beginning of a text does not change its last word; letters of scripts without spaces need no
 * space.
 * @param {string} begun @param {string} rest
 */
function beginsWord(begun, rest) {
  return !strip(rest[0]) || UNSPACED_SIGN.test(begun.at(-1)) || UNSPACED_SIGN.test(rest);
}

export class Translator {
  /** @param {Model} model @param {Tokenizer} tokenizer */
  constructor(model, tokenizer) {
    const { header } = model;
    this.model = model;
    this.searches = new Searches(model);
    this.tokenizer = tokenizer;
    this.header = header;
    this.inline = new Inline(header.patterns);
    /** @param {string} name */
    const pattern = (name, flags = "u") => new RegExp(header.patterns[name], flags);
    this.listMark = new RegExp(`^(?:${header.patterns.list_mark})`, "u");
    this.address = pattern("address", "gu");
    this.sentenceEnd = pattern("sentence_end", "gu");
    this.casedWord = pattern("cased_word", "gu");
    this.repetitions = ["repeated_words", "repeated_syllables", "repeated_compounds", "repeated_characters"].map((name) => pattern(name));
    this.digitGroups = pattern("digit_groups", "gu");
    this.punctuation = pattern("punctuation", "gu");
    this.abbreviated = pattern("abbreviated");
    /** @type {Record<string, RegExp>} */
    this.protect = { markers: pattern("markers", "gu"), all: pattern("all", "gu") };
    if (header.words) this.words = new KnownWords(header.words, pattern("spelled_word", "gu"), pattern("sentence_begin"));
    this.letter = header.letters === null ? /\p{L}/u : new RegExp(`[${header.letters}]`, "u");
    /** @type {Map<string, Glossary>} */
    this.glossaries = new Map();
  }

  /**
   * A glossary of pairs of terms; none if there are no pairs.
   * @param {string[][]} pairs @returns {Glossary | undefined}
   */
  glossaryOf(pairs = []) {
    const key = JSON.stringify(pairs);
    if (!pairs.length) return undefined;
    if (!this.glossaries.has(key)) this.glossaries = new Map([[key, new Glossary(pairs)]]);
    return this.glossaries.get(key);
  }

  /**
   * Whether a text has words in a script of the training.
   * @param {string} text
   */
  hasWords(text) {
    const bare = text.replace(this.address, " ");
    return /\p{L}/u.test(bare) ? this.header.letters !== "" && this.letter.test(bare) : this.header.translates_letterless;
  }

  /** @param {string} text @param {Glossary} [glossary] */
  isTranslated(text, glossary) {
    return this.hasWords(text) || Boolean(glossary?.find(text).length);
  }

  /**
   * A text without its typing errors; and the words that had one, each with the word that replaced it.
   * @param {string} text @param {Glossary} [glossary] @returns {[text: string, readAs: [written: string, word: string][]]}
   */
  repaired(text, glossary) {
    const readings = this.words?.readings(text, glossary?.find(text) ?? []) ?? [];
    let result = text;
    for (const { start, written, word } of readings) result = result.slice(0, start) + word + result.slice(start + written.length);
    return [result, readings.map(({ written, word }) => /** @type {[string, string]} */ ([written, word])).reverse()];
  }

  /**
   * Code of the language of the sources (0) or of the translations (1); empty if it is not known.
   * @param {number} side
   */
  language(side) {
    return (this.header.languages?.[side] ?? "").toLowerCase().split(/[-_]/u)[0];
  }

  /**
   * A source (0) or a translation (1) in the case that the model knows best.
   * @param {string} text @param {number} [side]
   */
  recased(text, side = 0) {
    return recased(text, side ? this.tokenizer.targets : this.tokenizer, this.casedWord, this.language(side));
  }

  /**
   * Word alignment; of texts in capitals in the case that the model knows.
   * @param {string} source @param {string} target @param {boolean} isRecased
   */
  align(source, target, isRecased) {
    const [src, tgt] = isRecased ? [this.recased(source), this.recased(target, 1)] : [source, target];
    return align(this.model, this.tokenizer, src, tgt);
  }

  /**
   * A text in the case that the model knows, in which the terms of the text are found as well.
   * @param {string} text @param {Glossary} [glossary]
   */
  caseOf(text, glossary) {
    let recasedText = this.recased(text);
    if (!glossary || recasedText === text) return recasedText;
    const found = new Set(glossary.find(recasedText).map(({ start, end }) => `${start} ${end}`));
    for (const { start, end } of glossary.find(text)) {
      if (!found.has(`${start} ${end}`)) recasedText = recasedText.slice(0, start) + text.slice(start, end) + recasedText.slice(end);
    }
    return recasedText;
  }

  /** @param {string} text */
  repeats(text) {
    const end = [...text].slice(-MAX_EXAMINED).join("").toLowerCase().replace(this.digitGroups, "");
    return this.repetitions.some((repetition) => repetition.test(end));
  }

  /**
   * Whether a translation of a text may repeat itself, because the text does: also with marks between the words.
   * @param {string} source
   */
  mayRepeat(source) {
    return this.repeats(source) || this.repeats(source.replace(this.punctuation, ""));
  }

  /** @param {TranslationOptions & { prefix?: number[], noRepeat?: number }} options @returns {SearchOptions} */
  options({ beam, nbest = 1, prefix = [], noRepeat = 0 }) {
    return { beam: Math.max(beam ?? this.header.beam, nbest), nbest, alpha: this.header.length_penalty, noRepeat, prefix };
  }

  /** @param {{ ids: number[] }} output */
  textOf({ ids }) {
    return this.tokenizer.decode(ids).replaceAll("\n", " ");
  }

  /**
   * The tokens before each text of a domain.
   * @param {string} [tag]
   */
  tagOf(tag) {
    return tag ? [this.header.tags[tag]] : [];
  }

  /**
   * Parts of a text of at most the maximum length, with the white space before each, and the terms that it requires.
   * `tag`: name of its domain. `nSentences`: maximum number of sentences of a part; 0: any number.
   * @param {string} text @param {Glossary} [glossary] @param {string} [tag] @param {number} [nSentences] @returns {Part[]}
   */
  partsOf(text, glossary, tag, nSentences = 0) {
    if (!strip(text)) return [];
    const begin = this.tagOf(tag);
    const several = this.split(text, this.model.maxLength - 1 - begin.length, nSentences);
    return several.map(([space, ids]) => {
      const source = several.length === 1 ? text : this.tokenizer.decode(ids);
      return { space, source, ids: [...begin, ...ids, this.header.eos], required: glossary?.find(source) ?? [] };
    });
  }

  /**
   * The sentences of a text, each with the white space before it. One of more tokens than `most` also ends after what is
   * probably an abbreviation.
   * @param {string} text @param {number} most @returns {[space: string, sentence: string][]}
   */
  sentences(text, most) {
    const nBefore = this.tokenizer.first.length;
    return this.splitText(text, true).flatMap(([spaceBefore, sentence]) => {
      if (this.tokenizer.encode(sentence).length - nBefore <= most) return [/** @type {[string, string]} */ ([spaceBefore, sentence])];
      return this.splitText(sentence, false).map(([within, part], i) => /** @type {[string, string]} */ ([i ? within : spaceBefore, part]));
    });
  }

  /**
   * Parts of a text that end like sentences, each with the white space before it. `isStrict`: not after abbreviations.
   * @param {string} text @param {boolean} isStrict @returns {[space: string, part: string][]}
   */
  splitText(text, isStrict) {
    const ends = Array.from(text.matchAll(this.sentenceEnd)).filter((match) => !isStrict || this.isEnd(text, match));
    /** @type {[space: string, part: string][]} */
    const parts = [];
    let end = 0;
    for (const stop of [...ends.map((match) => match.index + match[0].length), text.length]) {
      const part = strip(text.slice(end, stop));
      if (!part) continue;
      const begin = text.indexOf(part, end);
      parts.push([text.slice(end, begin), part]);
      end = begin + part.length;
    }
    return parts;
  }

  /**
   * Whether a sentence ends there, and not an abbreviation.
   * @param {string} text @param {RegExpMatchArray} match
   */
  isEnd(text, match) {
    if (text[match.index - 1] !== ".") return true;
    const [following = ""] = text.slice(match.index + match[0].length);
    if (/^[\p{Lowercase}\p{Nd}]$/u.test(following)) return false;
    return !this.abbreviated.test(text.slice(Math.max(0, match.index - MAX_ABBREVIATION), match.index));
  }

  /** @param {string} text @param {number} limit @param {number} nSentences @returns {[space: string, ids: number[]][]} */
  split(text, limit, nSentences) {
    const ids = this.tokenizer.encode(text);
    const isShort = !nSentences || this.splitText(text, true).length <= nSentences;
    if (ids.length <= limit && isShort) return [["", ids]];
    const { first: before, space } = this.tokenizer; // each part begins with the tokens `before`
    const most = limit - before.length;
    /** @param {string} each */
    const encoded = (each) => this.tokenizer.encode(each).slice(before.length);
    /** @type {[space: string, ids: number[]][]} */
    const parts = [];
    let begin; // of the last part in the text, if it is that of a sentence
    let end = 0;
    let nJoined = 0;
    for (const [spaceBefore, sentence] of this.sentences(text, most)) {
      const start = end + spaceBefore.length;
      end = start + sentence.length;
      const [first, ...rest] = this.splitIds(encoded(sentence), most);
      const joined = begin === undefined ? [...(parts.at(-1)?.[1] ?? []), ...encoded(space + sentence)] : encoded(text.slice(begin, end));
      if (parts.length && !rest.length && joined.length <= most && nJoined !== nSentences) {
        parts.at(-1)[1] = joined;
        nJoined += 1;
        continue;
      }
      parts.push([parts.length ? spaceBefore : "", first], ...rest.map((more) => /** @type {[string, number[]]} */ (["", more])));
      begin = rest.length ? undefined : start;
      nJoined = 1;
    }
    return parts.map(([space, own]) => [space, [...before, ...own]]);
  }

  /** @param {number[]} all @param {number} limit @returns {number[][]} */
  splitIds(all, limit) {
    const parts = [];
    let ids = all;
    while (ids.length > limit) {
      const ends = Array.from({ length: limit - Math.floor(limit / 2) }, (_, i) => limit - i);
      const endsWith = (i, texts) => texts.some((text) => this.tokenizer.decode(ids.slice(0, i)).endsWith(text));
      const end = ends.find((i) => this.tokenizer.startsWord(ids[i])) ?? ends.find((i) => endsWith(i, CLAUSE_ENDS))
        ?? ends.find((i) => !endsWith(i, ["\ufffd"]) && !this.isWithinLetter(ids, i)) ?? limit;
      parts.push(ids.slice(0, end));
      ids = ids.slice(end);
    }
    return [...parts, ids];
  }

  /** Whether a position in token ids is between a letter and its marks. @param {number[]} ids @param {number} position */
  isWithinLetter(ids, position) {
    const before = this.tokenizer.decode(ids.slice(0, position));
    const after = this.tokenizer.decode(ids.slice(position, position + MAX_TOKENS_OF_LETTER));
    return continuesLetter([...before.slice(-2)].at(-1) ?? "", [...after.slice(0, 2)][0] ?? "");
  }

  /**
   * The outputs of a part, best first; decoded again without repeated n-grams if one repeats itself, and with its
   * terms.
   * @param {Part} part @param {TranslationOptions} options
   */
  decode(part, options) {
    let { found } = this.searches.of(part.ids, this.options(options));
    let repeated = false;
    for (const noRepeat of REPEATED_NGRAMS) {
      if (this.mayRepeat(part.source) || !found.some((hypothesis) => this.repeats(this.textOf(hypothesis)))) break;
      repeated = true;
      found = search(this.model, part.ids, this.options({ ...options, noRepeat }));
    }
    const outputs = found.map((hypothesis) => this.withTerms(part, hypothesis));
    return { outputs, repeated };
  }

  /** @param {Part} part @param {Hypothesis} hypothesis */
  withTerms(part, hypothesis, prefix = "") {
    const isTruncated = hypothesis.ids.at(-1) !== this.header.eos;
    return withTerms(this, part, { ...hypothesis, text: this.textOf(hypothesis), isTruncated }, this.header.length_penalty, prefix);
  }

  /** @param {TranslationOutput} result @param {TranslationOptions} options */
  withConfidence(result, { confidence }) {
    if (confidence && this.header.confidence) result.words = wordsWithConfidence(this.header.confidence, result, this.tokenizer);
  }

  /**
   * What happens inside of the model for the first part of a line, and a translation of it; nothing if it is not
   * translated.
   * @param {string} original @param {TranslationOptions} options @param {string} [target]
   */
  record(original, options = {}, target = undefined) {
    const { mark, detached, core, modelText, isKept, readAs } = this.line(strip(original), options);
    const parts = isKept ? [] : this.partsOf(modelText, undefined, options.tag);
    if (!parts.length) return null;
    const notes = [
      parts.length > 1 && `The text is longer than the model can read: the first of ${parts.length} parts.`,
      (mark || detached) && "List marks and markers are not given to the model.",
      readAs.length && `The model is given ${readAs.map(([written, word]) => `${word} for ${written}`).join(", ")}.`,
      modelText !== core && "The model is given the text in the case that it knows.",
    ];
    const [found, recorded] = record(this.searches, this.tokenizer, parts[0].source, { ...this.options({}), ...options.search, off: options.off, begin: this.tagOf(options.tag) }, target);
    this.recorded = recorded;
    return { ...found, notes: [...notes.filter(Boolean), ...found.notes] };
  }

  /** The predictions of each layer for the last record. */
  lens() {
    return layersOf(this.model, this.tokenizer, this.recorded);
  }

  /**
   * What the model predicts at a position of the target of the last record.
   * @param {{ position: number }} values
   */
  distribution({ position }) {
    return distribution(this.model, this.tokenizer, this.recorded, position);
  }

  /**
   * The matrices of a head for the last record.
   * @param {HeadName} values
   */
  head(values) {
    return headOf(this.model, this.recorded, values);
  }

  /**
   * What a text is translated as: list mark, protected spans, the sentence without them, and what the model is given.
   * @param {string} text @param {TranslationOptions & { glossary?: Glossary }} options
   */
  line(text, { protect, glossary }) {
    const mark = this.listMark.exec(text)?.[0] ?? "";
    const rest = text.slice(mark.length);
    const spans = protect ? matches(this.protect[protect], rest) : [];
    const detached = spans.length ? this.inline.detach(rest, spans) : undefined;
    const bare = detached?.core ?? rest;
    if (!this.isTranslated(bare, glossary)) return { mark, rest, detached: undefined, core: rest, isKept: true, modelText: rest, readAs: [] };
    const [core, readAs] = this.repaired(bare, glossary);
    const modelText = this.caseOf(core, glossary);
    if (detached) return { mark, rest, detached: { ...detached, core }, core, isKept: false, modelText, readAs };
    return { mark, rest: core, detached, core, isKept: false, modelText, readAs };
  }

  /**
   * The translations of a line, best first: text, score, ids, log-probabilities; words and alignment if they are
   * wanted.
   * @param {string} original @param {TranslationOptions} options @returns {TranslationOutput[]}
   */
  translate(original, options = {}) {
    const stripped = strip(original);
    const glossary = this.glossaryOf(options.terms);
    const { mark, rest, detached, core, isKept, modelText, readAs } = this.line(stripped, { ...options, glossary });
    const parts = isKept ? [] : this.partsOf(modelText, glossary, options.tag, this.header.n_sentences);
    const decoded = parts.map((part) => this.decode(part, options));
    const results = [];
    for (let rank = 0; rank < (options.nbest ?? 1); rank += 1) {
      const chosen = decoded.map(({ outputs }) => outputs[Math.min(rank, outputs.length - 1)]);
      /** @type {TranslationOutput} */
      const result = {
        ids: chosen.flatMap(({ ids }) => ids), logProbs: chosen.flatMap(({ logProbs }) => logProbs),
        score: chosen.reduce((sum, { score }) => sum + score, 0), readAs, forced: chosen.flatMap(({ forced = [] }) => forced),
        missing: chosen.flatMap((output, i) => unmet(parts[i].required, output.text).map(({ targets }) => targets.join("|"))),
        repeated: decoded.some(({ repeated }) => repeated), truncated: chosen.some(({ isTruncated }) => isTruncated), text: isKept ? core : "",
      };
      chosen.forEach((output, i) => {
        if (result.text) result.text += spaceAfter(result.text, parts[i].space);
        result.text += output.text;
      });
      this.withConfidence(result, options);
      if (modelText !== core && isCapitals(core)) result.text = upper(result.text, this.language(1));
      if (detached) {
        result.text = this.inline.putAt(detached, result.text, detached.inner.length ? this.positions(detached, result.text, modelText !== core) : []);
      }
      result.text = mark + result.text;
      if (options.align) result.alignment = this.align(mark + rest, result.text, modelText !== core);
      const at = original.indexOf(stripped);
      result.text = stripped ? original.slice(0, at) + result.text + original.slice(at + stripped.length) : original;
      results.push(result);
    }
    return results;
  }

  /**
   * Where the protected spans belong in a translation: what the alignment says, or a model that was trained with codes.
   * @param {Detached} detached @param {string} translation @param {boolean} isRecased
   */
  positions(detached, translation, isRecased) {
    const [core, output] = isRecased ? [this.recased(detached.core), this.recased(translation, 1)] : [detached.core, translation];
    const links = align(this.model, this.tokenizer, core, output);
    const positions = this.inline.alignedPositions(detached, translation, links);
    if (!this.header.codes.length) return positions;
    return codePositions(this.model, this.tokenizer, this.inline, { ...detached, core }, output, positions, links);
  }

  /**
   * Take the protected spans out of a text and of the beginning of its translation.
   * @param {string} text @param {string} prefix @param {string} [protect]
   * @returns {{ source: string, prefix: string, written: string, detached?: Detached }}
   */
  begun(text, prefix, protect) {
    const pattern = this.protect[protect];
    if (!pattern || !matches(pattern, text).length) return { source: text, prefix, written: prefix };
    const written = matches(pattern, prefix).map(([a, b]) => prefix.slice(a, b));
    const done = matches(pattern, text).filter(([a, b]) => {
      const at = written.indexOf(text.slice(a, b));
      if (at >= 0) written.splice(at, 1);
      return at >= 0;
    });
    const left = done.length ? this.inline.detach(text, done, false).core : text;
    const spans = matches(pattern, left);
    const detached = spans.length ? this.inline.detach(left, spans) : undefined;
    return { source: detached?.core ?? left, prefix: split(prefix.replace(pattern, "")).join(" "), written: prefix, detached };
  }

  /**
   * Translations of a line that begin with a prefix and continue with different words, the most probable first.
   * @param {string} whole @param {string} given @param {number} n @param {TranslationOptions} options
   * @returns {TranslationOutput[]}
   */
  continuations(whole, given, n, options = {}) {
    const glossary = this.glossaryOf(options.terms);
    let mark = this.listMark.exec(whole)?.[0] ?? "";
    let [text, prefix] = [whole, given];
    const isMark = !strip(prefix) || strip(prefix) === strip(mark);
    if (mark && (isMark || prefix.startsWith(mark))) {
      text = text.slice(mark.length);
      prefix = isMark ? "" : prefix.slice(mark.length);
    } else mark = "";
    const { source: begunSource, prefix: bare, written, detached } = this.begun(text, prefix, options.protect);
    const [source] = this.repaired(begunSource, glossary);
    const modelText = this.caseOf(source, glossary);
    const isRecased = modelText !== source;
    const inCapitals = isRecased && isCapitals(source);
    const begun = inCapitals ? this.recased(bare, 1) : bare;
    const [part, ...others] = this.partsOf(modelText, glossary, options.tag);
    if (!part) return [];
    if (others.length) throw new Error(`The text is longer than the ${this.model.maxLength - 1} tokens that the model reads at once: there are no translations that begin with a given text. Divide it.`);
    if (!this.isTranslated(source, glossary)) return whole.startsWith(written) ? [{ text: whole, ids: [], logProbs: [], missing: [] }] : [];
    const before = strip(begun) ? this.tokenizer.targets.encode(begun) : [];
    const nTokens = Math.min(2 * n, MAX_BEAM);
    const next = search(this.model, part.ids, { ...this.options({ beam: nTokens, nbest: nTokens, prefix: before }), maxTokens: 1 });
    /** @type {Map<string, PartOutput>} */
    const found = new Map();
    for (const { ids } of next) {
      if (found.size === n || ids.length <= before.length) continue;
      const [best] = search(this.model, part.ids, this.options({ ...options, nbest: 1, prefix: ids }));
      const output = this.textOf(best);
      const rest = output.slice(begun.length);
      if (!output.startsWith(begun) || !strip(rest) || (strip(begun) && !beginsWord(begun, rest))) continue;
      const word = rest.slice(...unitSpans(rest)[0]);
      if (found.has(word)) continue;
      const until = output.slice(0, begun.length + rest.indexOf(word) + word.length);
      found.set(word, this.withTerms(part, best, until));
    }
    return Array.from(found.values(), (output) => {
      /** @type {TranslationOutput} */
      const result = { ...output, missing: unmet(part.required, output.text).map(({ targets }) => targets.join("|")) };
      this.withConfidence(result, options);
      const rest = output.text.slice(begun.length);
      result.text = mark + written + this.rest(begun, inCapitals ? upper(rest, this.language(1)) : rest, detached, source, isRecased);
      if (options.align) result.alignment = this.align(whole, result.text, isRecased);
      return result;
    });
  }

  /**
   * What follows the beginning of a translation, with the protected spans.
   * @param {string} begun @param {string} rest @param {Detached} detached @param {string} source
   * @param {boolean} isRecased
   */
  rest(begun, rest, detached, source, isRecased) {
    if (!detached) return rest;
    const n = unitSpans(begun).length;
    const links = detached.inner.length ? this.align(source, begun + rest, isRecased) : [];
    const alignment = links.map(([unit, target]) => [unit, Math.max(0, target - n)]);
    const space = rest.slice(0, wordsIn(rest)[0]?.index);
    return space + this.inline.putBack(detached, rest, alignment);
  }
}
