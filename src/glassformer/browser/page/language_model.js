// Continuations of a text. Counterparts: tasks/causal_lm.py, generate/sample.py. The random numbers are those of the browser.

import { Program, fill, padded, range } from "./kernels.js";

export class LanguageModel {
  constructor(kernels, header, tables, tokenizer) {
    const base = kernels.copy(tables);
    Object.assign(this, { header, tokenizer, prefill: new Program(kernels, header.prefill, base), decoder: new Program(kernels, header.decode, base) });
    this.caches = header.decode.cache_widths.flatMap((width) => [0, 1].map(() => kernels.allocate(2 * header.max_len * padded(width))));
    this.slots = range(header.max_len);
  }

  /** The prompt for a text, of at most so many tokens as leave room for the new ones, and whether its beginning was cut off. */
  prompt(text, nNew) {
    const { max_len: maxLength, bos, has_start: hasStart } = this.header;
    const ids = this.tokenizer.encode(text);
    if (hasStart || !ids.length) ids.unshift(bos);
    const nKept = Math.max(maxLength - nNew, Math.floor(maxLength / 2));
    return { ids: ids.slice(-nKept), limit: ids.length > nKept ? nKept : null };
  }

  /** Execute a program for tokens that follow `position` others. */
  run(program, ids, position, k) {
    const n = ids.length;
    const positions = range(n).map((i) => i + position);
    const [zeros, lengths] = [fill(n, 0), positions.map((i) => i + 1)];
    return program.run({
      ids: Int32Array.from(ids), positions, types: zeros, slots: positions, lists: [this.slots, this.slots], begins: [zeros, zeros], lengths: [lengths, zeros],
    }, this.caches, k);
  }

  /** Ids of a continuation, one after another. Temperature 0: the most probable tokens. */
  * tokens(prompt, nNew, temperature, random) {
    const { top_k: topK, eos, max_len: maxLength } = this.header;
    if (prompt.length > 1) this.run(this.prefill, prompt.slice(0, -1), 0);
    let last = prompt.at(-1);
    for (let n = 0; n < Math.min(nNew, maxLength - prompt.length); n += 1) {
      const k = temperature ? Math.min(topK, this.tokenizer.vocab.length) : 1;
      const { ids, logProbs } = this.run(this.decoder, [last], prompt.length - 1 + n, k);
      const weights = Array.from(logProbs, (x) => Math.exp((x - logProbs[0]) / (temperature || 1)));
      let left = random() * weights.reduce((a, b) => a + b, 0);
      const chosen = weights.findIndex((weight) => (left -= weight) < 0);
      last = ids[Math.max(0, chosen)];
      yield last;
      if (last === eos) return;
    }
  }

  /** Parts of a continuation, which together are its text. A character of several tokens comes with the last of them. */
  * complete(text, { maxTokens, temperature }, random = Math.random) {
    const nNew = Math.min(maxTokens, this.header.max_len - 1);
    const { ids: prompt, limit } = this.prompt(text, nNew);
    if (limit !== null) yield { limit };
    const ids = [];
    let shown = "";
    const part = (whole) => {
      const rest = whole.slice(shown.length);
      shown += rest;
      return { text: rest };
    };
    for (const id of this.tokens(prompt, nNew, temperature, random)) {
      ids.push(id);
      yield part(this.tokenizer.decodeWhole(ids));
    }
    yield part(this.tokenizer.decode(ids));
  }
}
