// The most probable tokens for the masks of a text. Counterpart: tasks/masked_lm.py.

import { EncoderTask, softmax } from "./encoder_task.js";
import { likely } from "./record.js";

const CONTINUATION = "##"; // of WordPiece
const N_TOKENS = 5;

export class MaskedLM extends EncoderTask {
  /** @param {Encoder} encoder @param {Tokenizer} tokenizer */
  constructor(encoder, tokenizer) {
    super(encoder, tokenizer);
    this.pattern = new RegExp(this.header.masks.map((mask) => mask.replace(/[\\^$.*+?()[\]{}|]/gu, "\\$&")).join("|"), "gu");
  }

  /**
   * Tokens [id, span] of a text with masks.
   * @param {string} text @returns {SpanToken[]}
   */
  maskedTokens(text) {
    const { mask_id: mask, tokens_include_space: includeSpace } = this.header;
    const { prefix } = this.tokenizer;
    const masks = text.match(this.pattern) ?? [];
    let at = 0;
    return text.split(this.pattern).flatMap((part, i) => {
      const cut = includeSpace && i < masks.length ? part.replace(/ +$/u, "") : part;
      const skipped = i && cut.startsWith(prefix) ? prefix.length : 0;
      const begin = at + (i ? masks[i - 1].length : 0);
      /** @type {SpanToken[]} */
      const masked = i ? [[mask, [at, begin]]] : [];
      const found = [...masked, ...(cut ? this.tokensOf(cut.slice(skipped), begin + skipped) : [])];
      at = begin + part.length;
      return found;
    });
  }

  tokens(text) {
    const all = this.maskedTokens(text);
    const first = all.slice(0, this.header.max_len - 2);
    return { lists: [first, []], limit: first.length < all.length ? first.length : null };
  }

  /** @type {EncoderTask["predictions"]} */
  predictions(rows) {
    const { vocab_size: n } = this.header;
    return ["words", this.encoder.outputs(rows).map((outputs, i) => [i, null, null, null, likely(softmax(outputs.subarray(0, n)), (id) => this.tokenizer.tokenText(id))])];
  }

  /** @type {EncoderTask["outputOf"]} */
  outputOf(predictions, { ids }) {
    return predictions.filter(([i]) => ids[i] === this.header.mask_id).map(([, , , , best]) => best[0][0].trim()).join(" ") || "–";
  }

  /**
   * A text with a token after what was before a mask.
   * @param {string} before @param {number} id
   */
  appended(before, id) {
    const token = this.tokenizer.tokenText(id);
    const bare = before.replace(/ +$/u, "");
    if (token.startsWith(CONTINUATION)) return bare + token.slice(CONTINUATION.length);
    if (!this.header.tokens_include_space) return before + token;
    return bare + (bare && this.tokenizer.startsWord(id) ? " " : "") + token.replace(/^ +| +$/gu, "");
  }

  /**
   * The tokens with their probabilities for each mask that the maximum length leaves, the most probable first.
   * @param {{ text: string }} values
   */
  fill({ text }) {
    const { mask_id: mask, vocab_size: n } = this.header;
    const { lists: [tokens], limit } = this.tokens(text);
    const ids = tokens.map(([id]) => id);
    const hidden = this.hidden(ids);
    const parts = text.split(this.pattern);
    const masks = text.match(this.pattern) ?? [];
    const rows = ids.flatMap((id, i) => (id === mask ? [hidden[i + 1]] : []));
    const result = this.encoder.outputs(rows).map((outputs, i) => {
      const probabilities = softmax(outputs.subarray(0, n));
      const best = Array.from(probabilities.keys()).sort((a, b) => probabilities[b] - probabilities[a]).slice(0, N_TOKENS);
      const before = parts.slice(0, i + 1).map((part, j) => (j ? masks[j - 1] : "") + part).join("");
      const after = parts.slice(i + 1).map((part, j) => (j ? masks[i + j] : "") + part).join("");
      return best.map((id) => ({ score: probabilities[id], token_str: this.tokenizer.tokenText(id), sequence: this.appended(before, id) + after }));
    });
    return { result, limit };
  }
}
