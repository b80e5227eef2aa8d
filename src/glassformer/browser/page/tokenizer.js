// Tokenizers, as tokenizer.json describes them. Counterparts: tokens/tokenizer.py, and the library `tokenizers`.
import { Tokenizer, byteTokens, encoder, textOf, withoutBytes } from "./base_tokenizer.js";
import { SentencePiece } from "./sentencepiece.js";

const BYTE_LEVEL_WORDS = new RegExp( // GPT-2's pattern; \s of Rust's regular expressions is White_Space
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\p{White_Space}\\p{L}\\p{N}]+|\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+", "gu",
);
const WORD = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}"; // \w there
const WORDS = new RegExp(`[${WORD}]+|[^${WORD}\\p{White_Space}]+`, "gu");
const CHINESE = /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/u;
const CLEANED = [[" .", "."], [" ?", "?"], [" !", "!"], [" ,", ","], [" ' ", "'"], [" n't", "n't"], [" 'm", "'m"], [" do not", " don't"],
  [" 's", "'s"], [" 've", "'ve"], [" 're", "'re"]];
const MAX_KEPT = 50000; // words

/** A character for each byte, and the byte of each. */
function alphabet() {
  const isPrintable = (b) => (b >= 33 && b < 127) || (b >= 161 && b < 173) || b >= 174;
  const characters = [];
  for (let b = 0, n = 256; b < 256; b += 1) characters.push(String.fromCharCode(isPrintable(b) ? b : n++));
  return characters;
}

const CHARACTERS = alphabet();
const BYTE = new Map(CHARACTERS.map((character, byte) => [character, byte]));

/** Words in bytes, each a character: `split` divides such a word into tokens. */
class ByteLevel extends Tokenizer {
  /** @type {Map<string, string[]>} */
  known = new Map();

  /**
   * The tokens of a word: here each of its characters.
   * @param {string[]} characters @returns {string[]}
   */
  split(characters) {
    return characters;
  }

  /** @param {string} word */
  wordTokens(word) {
    let tokens = this.known.get(word);
    if (!tokens) {
      tokens = this.split(Array.from(encoder.encode(word), (byte) => CHARACTERS[byte]));
      if (this.known.size >= MAX_KEPT) this.known.clear();
      this.known.set(word, tokens);
    }
    return tokens;
  }

  encode(text) {
    const ids = [...this.first];
    for (const [word] of (this.prefix + text).toWellFormed().matchAll(BYTE_LEVEL_WORDS)) {
      for (const token of this.wordTokens(word)) ids.push(this.idOf.get(token));
    }
    return ids;
  }

  /** @param {string} text @returns {Token[]} */
  tokens(text) {
    /** @type {Token[]} */
    const found = [];
    for (const { 0: word, index } of text.matchAll(BYTE_LEVEL_WORDS)) {
      /** @type {Span[]} */
    const spans = []; // of the character of each byte
      let at = index;
      for (const character of word) {
        /** @type {Span} */
        const span = [at, at + character.length];
        at = span[1];
        for (let n = encoder.encode(character).length; n > 0; n -= 1) spans.push(span);
      }
      let byte = 0;
      for (const token of this.wordTokens(word)) {
        found.push([this.idOf.get(token), spans[byte][0], spans[(byte += token.length) - 1][1]]);
      }
    }
    return found;
  }

  /** @param {string[]} tokens */
  join(tokens) {
    return textOf(Array.from(tokens.join(""), (character) => BYTE.get(character)));
  }
}

class Bpe extends ByteLevel {
  /** @param {TokenizerRecord} record */
  constructor(record) {
    super(record);
    this.ranks = new Map(record.merges.map((pair, rank) => [pair, rank]));
  }

  /**
   * Merges in their order, until there is none.
   * @param {string[]} parts
   */
  split(parts) {
    for (;;) {
      let best = Infinity;
      let at = -1;
      for (let i = 0; i + 1 < parts.length; i += 1) {
        const rank = this.ranks.get(`${parts[i]} ${parts[i + 1]}`);
        if (rank < best) [best, at] = [rank, i];
      }
      if (at < 0) return parts;
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
  }
}

class Unigram extends ByteLevel {
  /** @param {TokenizerRecord} record */
  constructor(record) {
    super(record);
    this.scores = new Map(record.vocab.map((token, id) => [token, record.scores[id]]));
    this.longest = record.vocab.reduce((longest, token) => Math.max(longest, token.length), 0);
  }

  /**
   * The most probable tokens (Viterbi 1967).
   * @param {string[]} characters @returns {string[]}
   */
  split(characters) {
    const word = characters.join("");
    const best = [{ score: 0, start: -1 }];
    for (let start = 0; start < word.length; start += 1) {
      for (let end = start + 1; end <= Math.min(word.length, start + this.longest); end += 1) {
        const score = best[start].score + this.scores.get(word.slice(start, end)); // NaN: no token
        if (score > (best[end]?.score ?? -Infinity)) best[end] = { score, start };
      }
    }
    const tokens = [];
    for (let end = word.length; end > 0; end = best[end].start) tokens.unshift(word.slice(best[end].start, end));
    return tokens;
  }
}

/** Characters, and bytes for those that are not in the vocabulary. */
class Characters extends Tokenizer {
  /** @param {string} text @returns {Token[]} */
  tokens(text) {
    /** @type {Token[]} */
    const found = [];
    let at = 0;
    for (const character of text) {
      const end = at + character.length;
      for (const token of this.idOf.has(character) ? [character] : byteTokens(character)) found.push([this.idOf.get(token), at, end]);
      at = end;
    }
    return found;
  }

  /** @param {string[]} tokens */
  join(tokens) {
    return withoutBytes(tokens).join("");
  }
}

/** Frequent words, and a token for all others. */
class Words extends Tokenizer {
  /** @param {TokenizerRecord} record */
  constructor(record) {
    super(record);
    this.lowercase = record.lowercase;
  }

  /** @param {string} text @returns {Token[]} */
  tokens(text) {
    return Array.from(text.matchAll(WORDS), ({ 0: word, index }) => {
      const form = this.lowercase ? Array.from(word, (character) => character.toLowerCase()).join("") : word;
      return [this.idOf.get(form) ?? this.unknown, index, index + word.length];
    });
  }

  /** @param {string[]} tokens */
  join(tokens) {
    return tokens.join(" ");
  }
}

/** WordPiece with BERT's normalization. */
class WordPiece extends Tokenizer {
  /** @param {TokenizerRecord} record */
  constructor(record) {
    super(record);
    this.lowercase = record.lowercase;
    this.stripAccents = record.strip_accents;
    this.limit = record.max_word;
  }

  /**
   * A character as BERT writes it: without control characters and accents, Chinese ones between spaces.
   * @param {string} character
   */
  normalized(character) {
    if (character === "\ufffd" || /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/u.test(character)) return "";
    if (/\p{White_Space}/u.test(character)) return " ";
    let text = CHINESE.test(character) ? ` ${character} ` : character;
    if (this.stripAccents) text = text.normalize("NFD").replace(/\p{Mn}/gu, "");
    return this.lowercase ? Array.from(text, (x) => x.toLowerCase()).join("") : text;
  }

  /** @param {string} text @returns {Token[]} */
  tokens(text) {
    /** @type {Token[]} */
    const found = [];
    /** @type {Character[]} */
    let word = []; // characters with their positions
    const flush = () => {
      if (word.length) found.push(...this.pieces(word));
      word = [];
    };
    let at = 0;
    for (const character of text) {
      /** @type {Span} */
      const span = [at, (at += character.length)];
      for (const x of this.normalized(character)) {
        if (/\p{White_Space}/u.test(x)) flush();
        else if (/[\p{P}$+<=>^`|~]/u.test(x)) {
          flush();
          word.push([x, ...span]);
          flush();
        } else word.push([x, ...span]);
      }
    }
    flush();
    return found;
  }

  /**
   * The longest token from the left, again and again.
   * @param {Character[]} word @returns {Token[]}
   */
  pieces(word) {
    /** @type {Token} */
    const whole = [this.unknown, word[0][1], word.at(-1)[2]];
    if (word.length > this.limit) return [whole];
    /** @type {Token[]} */
    const found = [];
    for (let start = 0; start < word.length;) {
      let end = word.length;
      let id;
      for (; end > start; end -= 1) {
        id = this.idOf.get((start ? "##" : "") + word.slice(start, end).map(([x]) => x).join(""));
        if (id !== undefined) break;
      }
      if (id === undefined) return [whole];
      found.push([id, word[start][1], word[end - 1][2]]);
      start = end;
    }
    return found;
  }

  /** @param {string[]} tokens */
  join(tokens) {
    return tokens.map((token, i) => {
      const text = !i ? token : token.startsWith("##") ? token.slice(2) : ` ${token}`;
      return CLEANED.reduce((cleaned, [from, to]) => cleaned.replaceAll(from, to), text);
    }).join("");
  }
}

/** @type {Record<string, new (record: TokenizerRecord) => Tokenizer>} */
const KINDS = { bpe: Bpe, unigram: Unigram, char: Characters, word: Words, wordpiece: WordPiece, sentencepiece: SentencePiece };

/**
 * The tokenizer of a model file.
 * @param {TokenizerRecord} record @returns {Tokenizer}
 */
export function tokenizerOf(record) {
  const tokenizer = new KINDS[record.kind](record);
  if (record.targets) tokenizer.targets = tokenizerOf(record.targets);
  return tokenizer;
}
