// SentencePiece's tokenizers, as the library `tokenizers` has them: of T5, Marian, XLM-R and the first Llama models.
import { Tokenizer, byteTokens, encoder, withoutBytes } from "./base_tokenizer.js";

const SPACE = "\u2581"; // a space in a token
const INSIDE = new RegExp(`[^${SPACE}]${SPACE}`, "u"); // a space within a token
const MAX_KEPT = 50000; // words
const UNKNOWN_PENALTY = 10; // of the log-probability
const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

/**
 * A text as characters, each with the begin and the end of what it was made of.
 * @param {string} text @param {number} start @returns {Character[]}
 */
function charactersOf(text, start) {
  let at = start;
  return Array.from(text, (character) => [character, at, (at += character.length)]);
}

/**
 * The text of such characters.
 * @param {Character[]} characters
 */
const joined = (characters) => characters.map(([character]) => character).join("");

/** SentencePiece's map of characters: a double-array trie (Darts-clone) from texts to others. */
class CharacterMap {
  /** @param {string} encoded */
  constructor(encoded) {
    const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
    const size = new DataView(bytes.buffer).getUint32(0, true);
    this.units = new Uint32Array(bytes.slice(4, 4 + size).buffer);
    this.texts = bytes.subarray(4 + size);
  }

  /**
   * What a text becomes by its shortest begin in the map; undefined: there is none.
   * @param {string} text
   */
  get(text) {
    const offset = (unit) => (unit >>> 10) << ((unit & 512) >>> 6);
    let at = offset(this.units[0]);
    for (const byte of encoder.encode(text)) {
      at ^= byte;
      const unit = this.units[at];
      if (!byte || (unit & 0x800000ff) >>> 0 !== byte) return undefined;
      at ^= offset(unit);
      if (unit & 256) {
        const start = this.units[at] & 0x7fffffff;
        return new TextDecoder().decode(this.texts.subarray(start, this.texts.indexOf(0, start)));
      }
    }
    return undefined;
  }

  /** @param {Character[]} characters */
  normalize(characters) {
    /** @type {Character[]} */
    const found = [];
    let at = 0;
    for (const { segment } of graphemes.segment(joined(characters))) {
      const part = characters.slice(at, (at += Array.from(segment).length));
      const whole = encoder.encode(segment).length < 6 ? this.get(segment) : undefined;
      for (const piece of whole === undefined ? part.map((character) => [character]) : [part]) {
        const text = whole ?? this.get(piece[0][0]) ?? piece[0][0];
        for (const character of text) found.push([character, piece[0][1], piece.at(-1)[2]]);
      }
    }
    return found;
  }
}

/** Replaces what a pattern matches by a text. */
class Replacement {
  /** @param {string} pattern @param {string} content */
  constructor(pattern, content) {
    this.pattern = new RegExp(pattern, "gu");
    this.content = content;
  }

  /** @param {Character[]} characters */
  normalize(characters) {
    /** @type {Character[]} */
    const found = [];
    let [at, position] = [0, 0]; // number of the next character, and its position in the text
    const move = (end) => {
      const start = at;
      for (; position < end; at += 1) position += characters[at][0].length;
      return characters.slice(start, at);
    };
    for (const match of joined(characters).matchAll(this.pattern)) {
      found.push(...move(match.index));
      const part = move(match.index + match[0].length);
      /** @type {Span} */
      const span = part.length ? [part[0][1], part.at(-1)[2]] : [characters[at]?.[1] ?? 0, characters[at]?.[1] ?? 0];
      for (const character of this.content) found.push([character, ...span]);
    }
    return [...found, ...characters.slice(at)];
  }
}

/** @type {Record<string, (step: TokenizerStep) => { normalize(characters: Character[]): Character[] }>} */
const NORMALIZERS = {
  charsmap: ({ map }) => new CharacterMap(map),
  replace: ({ pattern, content }) => new Replacement(pattern, content),
  prepend: ({ content }) => ({
    normalize: (characters) => {
      if (!characters.length) return [];
      const [, start, end] = characters[0];
      const added = Array.from(content, /** @returns {Character} */ (character) => [character, start, end]);
      return [...added, ...characters];
    },
  }),
};

/**
 * Divides characters before each for which a function of it and its number says so; what `drop` names is left out.
 * @param {Character[]} characters @param {(character: Character, index: number) => boolean} isStart
 * @param {(character: Character) => boolean} drop
 * @returns {Character[][]}
 */
function divided(characters, isStart, drop = () => false) {
  /** @type {Character[][]} */
  const parts = [[]];
  characters.forEach((character, i) => {
    if (isStart(character, i)) parts.push([]);
    if (!drop(character)) parts.at(-1).push(character);
  });
  return parts.filter((part) => part.length);
}

/** @param {Character} character */
const isSpace = ([character]) => /^\p{White_Space}$/u.test(character);

/** @type {Record<string, (step?: TokenizerStep) => (part: Character[]) => Character[][]>} */
const SPLITTERS = {
  whitespace: () => (part) => divided(part, isSpace, isSpace),
  metaspace: ({ prepend, split }) => (part) => {
    /** @type {Character[]} */
    const spaced = part.map(([character, ...span]) => [character === " " ? SPACE : character, ...span]);
    const [first, ...span] = spaced[0];
    if (first !== SPACE && (prepend === "always" || (prepend === "first" && span[0] === 0))) spaced.unshift([SPACE, ...span]);
    return split ? divided(spaced, ([character]) => character === SPACE) : [spaced];
  },
  words: () => (part) => divided(part, ([character], i) => i > 0 && character === SPACE && part[i - 1][0] !== SPACE), // no token is in two of these
  boundary: ({ pattern }) => (part) => {
    const starts = new Set(Array.from(joined(part).matchAll(new RegExp(pattern, "gu")), ({ index }) => index));
    let position = 0;
    return divided(part, ([character]) => {
      position += character.length;
      return starts.has(position - character.length);
    });
  },
};

/** @type {Record<string, (step: TokenizerStep) => (tokens: string[]) => string[]>} */
const DECODERS = {
  replace: ({ pattern, content }) => (tokens) => tokens.map((token) => token.replace(new RegExp(pattern, "gu"), () => content)),
  bytes: () => withoutBytes,
  metaspace: ({ prepend }) => (tokens) => tokens.map((token, i) => token.replaceAll(SPACE, !i && prepend !== "never" ? "" : " ")),
  fuse: () => (tokens) => [tokens.join("")],
  strip: ({ content, start }) => (tokens) => tokens.map((token) => {
    let n = 0;
    while (n < start && token[n] === content) n += 1;
    return token.slice(n);
  }),
};

export class SentencePiece extends Tokenizer {
  /** @type {Map<string, Token[]>} */
  known = new Map();

  /** @param {TokenizerRecord} record */
  constructor(record) {
    super(record);
    const made = (makers, steps) => steps.map(({ type, ...options }) => makers[type](options));
    this.normalizers = made(NORMALIZERS, record.normalizers);
    this.splitters = made(SPLITTERS, record.splitters);
    this.decoders = made(DECODERS, record.decoders);
    this.byteFallback = record.byte_fallback;
    this.added = record.added; // longest first
    if (this.idOf.has(SPACE) && !record.vocab.some((token) => INSIDE.test(token))) this.splitters.push(SPLITTERS.words());
    if (record.scores) {
      this.scores = new Map(record.vocab.map((token, id) => [token, record.scores[id]]));
      this.longest = record.vocab.reduce((longest, token) => Math.max(longest, Array.from(token).length), 0);
      this.unknownScore = record.scores.reduce((least, score) => Math.min(least, score), Infinity) - UNKNOWN_PENALTY;
    } else this.ranks = new Map(record.merges.map((pair, rank) => [pair, rank]));
  }

  /** @param {string} text @returns {Token[]} */
  tokens(text) {
    /** @type {Token[]} */
    const found = [];
    for (const [part, start, id] of this.withAdded(text)) {
      if (id !== undefined) found.push([id, start, start + part.length]);
      else found.push(...this.ordinary(charactersOf(part, start)));
    }
    return found;
  }

  /**
   * The parts of a text between added tokens, and these with their id.
   * @param {string} text @returns {Generator<[text: string, start: number, id?: number]>}
   */
  *withAdded(text) {
    let start = 0;
    for (let at = 0; at < text.length && this.added.length;) {
      const token = this.added.find((added) => text.startsWith(added, at));
      if (token) {
        if (at > start) yield [text.slice(start, at), start];
        yield [token, at, this.idOf.get(token)];
        start = at += token.length;
      } else at += 1;
    }
    if (start < text.length) yield [text.slice(start), start];
  }

  /** @param {Character[]} characters @returns {Token[]} */
  ordinary(characters) {
    const normalized = this.normalizers.reduce((current, step) => step.normalize(current), characters);
    let words = normalized.length ? [normalized] : [];
    for (const split of this.splitters) words = words.flatMap(split);
    return words.flatMap((word) => this.wordTokens(joined(word))
      .map(/** @returns {Token} */ ([id, start, end]) => [id, word[start][1], word[end - 1][2]]));
  }

  /**
   * Ids of a word, and the numbers of the characters where each begins and ends. Tokens of bytes have those of the
   * text.
   * @param {string} word
   */
  wordTokens(word) {
    let tokens = this.known.get(word);
    if (!tokens) {
      tokens = this.scores ? this.mostProbable(Array.from(word)) : this.merged(Array.from(word));
      if (this.known.size >= MAX_KEPT) this.known.clear();
      this.known.set(word, tokens);
    }
    return tokens;
  }

  /**
   * Tokens for characters that are in none: for their bytes, if there are such, or the unknown one.
   * @param {string[]} characters @param {number} start @param {number} end @returns {Token[]}
   */
  unknownTokens(characters, start, end) {
    const text = characters.slice(start, end).join("");
    const bytes = this.byteFallback ? byteTokens(text).map((token) => this.idOf.get(token)) : [undefined];
    const ids = bytes.includes(undefined) ? [this.unknown] : bytes;
    return (this.idOf.has(text) ? [this.idOf.get(text)] : ids).map(/** @returns {Token} */ (id) => [id, start, end]);
  }

  /**
   * The most probable tokens (Viterbi 1967). Characters that are in none are one unknown token together.
   * @param {string[]} characters @returns {Token[]}
   */
  mostProbable(characters) {
    /** @type {{ score: number, start: number, isUnknown?: boolean }[]} */
    const best = [{ score: 0, start: -1 }];
    const reach = (end, score, start, isUnknown) => {
      if (score > (best[end]?.score ?? -Infinity)) best[end] = { score, start, isUnknown };
    };
    for (let start = 0; start < characters.length; start += 1) {
      let token = "";
      for (let end = start + 1; end <= Math.min(characters.length, start + this.longest); end += 1) {
        token += characters[end - 1];
        const score = this.scores.get(token);
        if (score !== undefined) reach(end, best[start].score + score, start, this.idOf.get(token) === this.unknown);
        else if (end === start + 1) reach(end, best[start].score + this.unknownScore, start, true);
      }
    }
    /** @type {Token[]} */
    const tokens = [];
    let end = characters.length;
    while (end > 0) {
      let { start, isUnknown } = best[end];
      while (isUnknown && start > 0 && best[start].isUnknown) start = best[start].start;
      /** @returns {Token[]} */
      const known = () => [[this.idOf.get(characters.slice(start, end).join("")), start, end]];
      tokens.unshift(...(isUnknown ? this.unknownTokens(characters, start, end) : known()));
      end = start;
    }
    return tokens;
  }

  /**
   * Merges in their order, until there is none.
   * @param {string[]} characters @returns {Token[]}
   */
  merged(characters) {
    /** @type {[text: string, start: number, end: number, unknown?: Token[]][]} */
    const parts = []; // text, begin, end, and the tokens of unknown ones
    characters.forEach((character, i) => {
      const last = parts.at(-1);
      if (this.idOf.has(character)) parts.push([character, i, i + 1]);
      else if (this.byteFallback) parts.push([character, i, i + 1, this.unknownTokens(characters, i, i + 1)]);
      else if (last?.[3]) last.splice(2, 2, i + 1, [[this.unknown, last[1], i + 1]]);
      else parts.push([character, i, i + 1, [[this.unknown, i, i + 1]]]);
    });
    for (;;) {
      let best = Infinity;
      let at = -1;
      for (let i = 0; i + 1 < parts.length; i += 1) {
        const rank = parts[i][3] || parts[i + 1][3] ? undefined : this.ranks.get(`${parts[i][0]} ${parts[i + 1][0]}`);
        if (rank < best) [best, at] = [rank, i];
      }
      if (at < 0) break;
      parts.splice(at, 2, [parts[at][0] + parts[at + 1][0], parts[at][1], parts[at + 1][2]]);
    }
    return parts.flatMap(/** @returns {Token[]} */ ([text, start, end, unknown]) => unknown ?? [[this.idOf.get(text), start, end]]);
  }

  /** @param {string[]} tokens */
  join(tokens) {
    return this.decoders.reduce((texts, decode) => decode(texts), tokens).join("");
  }
}
