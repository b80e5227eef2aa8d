// What all tokenizers have in common, and tokens for single bytes.
export const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
/** @param {Iterable<number>} bytes */
export const textOf = (bytes) => decoder.decode(new Uint8Array(bytes));
const BYTE_TOKEN = /^<0x(..)>$/;

/**
 * Tokens for the bytes of a text.
 * @param {string} text
 */
export function byteTokens(text) {
  return Array.from(encoder.encode(text), (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
}

/**
 * Tokens in which those of successive bytes are one text: of bytes that are no UTF-8, a replacement character each.
 * @param {string[]} tokens
 */
export function withoutBytes(tokens) {
  const texts = [];
  let bytes = [];
  const flush = () => {
    const decoded = textOf(bytes);
    if (bytes.length) texts.push(encoder.encode(decoded).join() === bytes.join() ? decoded : "\ufffd".repeat(bytes.length));
    bytes = [];
  };
  for (const token of tokens) {
    const [, byte] = BYTE_TOKEN.exec(token) ?? [];
    if (byte) bytes.push(parseInt(byte, 16));
    else {
      flush();
      texts.push(token);
    }
  }
  flush();
  return texts;
}

/** Base class. `tokens` returns the tokens of a text: id, begin and end of its characters, in UTF-16; `join` the text of tokens. */
export class Tokenizer {
  /** @param {TokenizerRecord} record */
  constructor({ vocab, prefix, space, specials, first, unknown }) {
    this.vocab = vocab;
    this.prefix = prefix;
    this.space = space; // before a text that follows another one
    this.first = first;
    this.unknown = unknown;
    this.specials = new Set(specials);
    /** @type {Map<string, number>} */
    this.idOf = new Map(vocab.map((token, id) => [token, id]));
    /** @type {string[]} */
    this.texts = []; // of tokens, by id: those that were asked for
    /** @type {Tokenizer} */
    this.targets = this; // that of target texts
  }

  /** @param {string} text @returns {number[]} */
  encode(text) {
    return this.offsets(text).ids;
  }

  /**
   * Token ids of a text, and where the characters of each begin and end. Parts of a character have those of the
   * character.
   * @param {string} text @returns {{ ids: number[], spans: Span[] }}
   */
  offsets(text) {
    const n = this.prefix.length;
    const tokens = this.tokens((this.prefix + text).toWellFormed());
    const spans = tokens.map(/** @returns {Span} */ ([, start, end]) => [Math.max(0, start - n), Math.max(0, end - n)]);
    const before = this.first.map(/** @returns {Span} */ () => [0, 0]);
    return { ids: [...this.first, ...tokens.map(([id]) => id)], spans: [...before, ...spans] };
  }

  /** @param {number[]} ids @returns {string} */
  decode(ids) {
    const text = this.join(ids.filter((id) => !this.specials.has(id)).map((id) => this.vocab[id]));
    return text.startsWith(this.prefix) ? text.slice(this.prefix.length) : text;
  }

  /**
   * The longest text of tokens that further ones cannot change: without a character that is not complete.
   * @param {number[]} ids
   */
  decodeWhole(ids) {
    let n = ids.length;
    while (n && (!this.decode(ids.slice(n - 1, n)) || BYTE_TOKEN.test(this.vocab[ids[n - 1]]))) n -= 1;
    return this.decode(ids.slice(0, n)).replace(/\ufffd+$/u, "");
  }

  /**
   * Text of one token, also of a special one.
   * @param {number} id
   */
  tokenText(id) {
    this.texts[id] ??= this.specials.has(id) ? this.vocab[id] : this.join([this.vocab[id]]);
    return this.texts[id];
  }

  /** @param {number} id */
  startsWord(id) {
    return /^\ue000?[Ġ ▁]/u.test(this.vocab[id]); // U+E000: a token that no text is encoded to
  }
}
