// Tokenizers, as tokenizer.json describes them. Counterparts: tokens/tokenizer.py, and the library `tokenizers`.

const BYTE_LEVEL_WORDS = new RegExp( // GPT-2's pattern; \s of Rust's regular expressions is White_Space
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\p{White_Space}\\p{L}\\p{N}]+|\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+", "gu",
);
const WORD = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}"; // \w there
const WORDS = new RegExp(`[${WORD}]+|[^${WORD}\\p{White_Space}]+`, "gu");
const CHINESE = /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/u;
const CLEANED = [[" .", "."], [" ?", "?"], [" !", "!"], [" ,", ","], [" ' ", "'"], [" n't", "n't"], [" 'm", "'m"], [" do not", " don't"],
  [" 's", "'s"], [" 've", "'ve"], [" 're", "'re"]];
const MAX_KEPT = 50000; // words
const BYTE_TOKEN = /^<0x(..)>$/;

/** A character for each byte, and the byte of each. */
function alphabet() {
  const isPrintable = (b) => (b >= 33 && b < 127) || (b >= 161 && b < 173) || b >= 174;
  const characters = [];
  for (let b = 0, n = 256; b < 256; b += 1) characters.push(String.fromCharCode(isPrintable(b) ? b : n++));
  return characters;
}

const CHARACTERS = alphabet();
const BYTE = new Map(CHARACTERS.map((character, byte) => [character, byte]));
const encoder = new TextEncoder();
const textOf = (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(bytes));

/** Base class. `tokens` returns the tokens of a text: id, begin and end of its characters, in UTF-16; `join` the text of tokens. */
class Tokenizer {
  constructor({ vocab, prefix, specials, first, unknown }) {
    Object.assign(this, { vocab, prefix, first, unknown, specials: new Set(specials) });
    this.idOf = new Map(vocab.map((token, id) => [token, id]));
  }

  encode(text) {
    return this.offsets(text).ids;
  }

  /** Token ids of a text, and where the characters of each begin and end. Parts of a character have those of the character. */
  offsets(text) {
    const n = this.prefix.length;
    const tokens = this.tokens((this.prefix + text).toWellFormed());
    const spans = tokens.map(([, start, end]) => [Math.max(0, start - n), Math.max(0, end - n)]);
    return { ids: [...this.first, ...tokens.map(([id]) => id)], spans: [...this.first.map(() => [0, 0]), ...spans] };
  }

  decode(ids) {
    const text = this.join(ids.filter((id) => !this.specials.has(id)).map((id) => this.vocab[id]));
    return text.startsWith(this.prefix) ? text.slice(this.prefix.length) : text;
  }

  /** The longest text of tokens that further ones cannot change: without a character that is not complete. */
  decodeWhole(ids) {
    let n = ids.length;
    while (n && (!this.decode(ids.slice(n - 1, n)) || BYTE_TOKEN.test(this.vocab[ids[n - 1]]))) n -= 1;
    return this.decode(ids.slice(0, n)).replace(/\ufffd+$/u, "");
  }

  /** Text of one token, also of a special one. */
  tokenText(id) {
    return this.specials.has(id) ? this.vocab[id] : this.join([this.vocab[id]]);
  }

  startsWord(id) {
    return /^[Ġ ▁]/u.test(this.vocab[id]);
  }
}

/** Words in bytes, each a character: `split` divides such a word into tokens. */
class ByteLevel extends Tokenizer {
  known = new Map();

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

  tokens(text) {
    const found = [];
    for (const { 0: word, index } of text.matchAll(BYTE_LEVEL_WORDS)) {
      const spans = []; // of the character of each byte
      let at = index;
      for (const character of word) {
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

  join(tokens) {
    return textOf(Array.from(tokens.join(""), (character) => BYTE.get(character)));
  }
}

class Bpe extends ByteLevel {
  constructor(record) {
    super(record);
    this.ranks = new Map(record.merges.map((pair, rank) => [pair, rank]));
  }

  /** Merges in their order, until there is none. */
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
  constructor(record) {
    super(record);
    this.scores = new Map(record.vocab.map((token, id) => [token, record.scores[id]]));
    this.longest = record.vocab.reduce((longest, token) => Math.max(longest, token.length), 0);
  }

  /** The most probable tokens (Viterbi 1967). */
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
  tokens(text) {
    const found = [];
    let at = 0;
    for (const character of text) {
      const end = at + character.length;
      const bytes = () => Array.from(encoder.encode(character), (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
      for (const token of this.idOf.has(character) ? [character] : bytes()) found.push([this.idOf.get(token), at, end]);
      at = end;
    }
    return found;
  }

  join(tokens) {
    let text = "";
    let bytes = [];
    const flush = () => {
      const decoded = textOf(bytes);
      text += encoder.encode(decoded).join() === bytes.join() ? decoded : "\ufffd".repeat(bytes.length);
      bytes = [];
    };
    for (const token of tokens) {
      const [, byte] = BYTE_TOKEN.exec(token) ?? [];
      if (byte) bytes.push(parseInt(byte, 16));
      else {
        flush();
        text += token;
      }
    }
    flush();
    return text;
  }
}

/** Frequent words, and a token for all others. */
class Words extends Tokenizer {
  constructor(record) {
    super(record);
    this.lowercase = record.lowercase;
  }

  tokens(text) {
    return Array.from(text.matchAll(WORDS), ({ 0: word, index }) => {
      const form = this.lowercase ? Array.from(word, (character) => character.toLowerCase()).join("") : word;
      return [this.idOf.get(form) ?? this.unknown, index, index + word.length];
    });
  }

  join(tokens) {
    return tokens.join(" ");
  }
}

/** WordPiece with BERT's normalization. */
class WordPiece extends Tokenizer {
  constructor(record) {
    super(record);
    Object.assign(this, { lowercase: record.lowercase, stripAccents: record.strip_accents, limit: record.max_word });
  }

  /** A character as BERT writes it: without control characters and accents, Chinese ones between spaces. */
  normalized(character) {
    if (character === "\ufffd" || /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/u.test(character)) return "";
    if (/\p{White_Space}/u.test(character)) return " ";
    let text = CHINESE.test(character) ? ` ${character} ` : character;
    if (this.stripAccents) text = text.normalize("NFD").replace(/\p{Mn}/gu, "");
    return this.lowercase ? Array.from(text, (x) => x.toLowerCase()).join("") : text;
  }

  tokens(text) {
    const found = [];
    let word = []; // characters with their positions
    const flush = () => {
      if (word.length) found.push(...this.pieces(word));
      word = [];
    };
    let at = 0;
    for (const character of text) {
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

  /** The longest token from the left, again and again. */
  pieces(word) {
    const whole = [this.unknown, word[0][1], word.at(-1)[2]];
    if (word.length > this.limit) return [whole];
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

  join(tokens) {
    return tokens.map((token, i) => {
      const text = !i ? token : token.startsWith("##") ? token.slice(2) : ` ${token}`;
      return CLEANED.reduce((cleaned, [from, to]) => cleaned.replaceAll(from, to), text);
    }).join("");
  }
}

const KINDS = { bpe: Bpe, unigram: Unigram, char: Characters, word: Words, wordpiece: WordPiece };

/** The tokenizer of a model file. */
export function tokenizerOf(record) {
  return new KINDS[record.kind](record);
}
