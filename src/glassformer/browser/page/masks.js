// The most probable tokens for the masks of a text. Counterpart: tasks/masked_lm.py.

import { EncoderTask, softmax } from "./encoder_task.js";

const CONTINUATION = "##"; // of WordPiece
const N_TOKENS = 5;

export class MaskedLM extends EncoderTask {
  constructor(encoder, tokenizer) {
    super(encoder, tokenizer);
    this.pattern = new RegExp(this.header.masks.map((mask) => mask.replace(/[\\^$.*+?()[\]{}|]/gu, "\\$&")).join("|"), "gu");
  }

  /** Token ids of a text with masks. */
  encodeMasked(text) {
    const { mask_id: mask, tokens_include_space: includeSpace } = this.header;
    const { prefix } = this.tokenizer;
    const parts = text.split(this.pattern);
    return parts.flatMap((part, i) => {
      const cut = includeSpace && i < parts.length - 1 ? part.replace(/ +$/u, "") : part;
      const own = i && cut.startsWith(prefix) ? cut.slice(prefix.length) : cut;
      return [...(i ? [mask] : []), ...(cut ? this.tokenizer.encode(own) : [])];
    });
  }

  /** A text with a token after what was before a mask. */
  appended(before, id) {
    const token = this.tokenizer.tokenText(id);
    const bare = before.replace(/ +$/u, "");
    if (token.startsWith(CONTINUATION)) return bare + token.slice(CONTINUATION.length);
    if (!this.header.tokens_include_space) return before + token;
    return bare + (bare && this.tokenizer.startsWord(id) ? " " : "") + token.replace(/^ +| +$/gu, "");
  }

  /** The tokens with their probabilities for each mask that the maximum length leaves, the most probable first. */
  fill({ text }) {
    const { max_len: maxLength, mask_id: mask, vocab_size: n } = this.header;
    const all = this.encodeMasked(text);
    const ids = all.slice(0, maxLength - 2);
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
    return { result, limit: all.length > ids.length ? ids.length : null };
  }
}
