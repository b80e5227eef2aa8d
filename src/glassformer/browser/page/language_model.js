// Continuations of a text, and summaries, which are continuations. Counterparts: tasks/causal_lm.py, tasks/summarization.py, generate/sample.py.
// The random numbers are those of the browser.

import { Program, fill, padded, range } from "./kernels.js";
import { repeating } from "./search.js";
import { split } from "./text.js";

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

  /** Ids of a continuation, one after another. Temperature 0: the most probable tokens that repeat no n-gram. */
  * tokens(prompt, nNew, temperature = 0, random = Math.random) {
    const { top_k: topK, no_repeat: noRepeat, eos, max_len: maxLength } = this.header;
    const before = [];
    if (prompt.length > 1) this.run(this.prefill, prompt.slice(0, -1), 0);
    let last = prompt.at(-1);
    for (let n = 0; n < Math.min(nNew, maxLength - prompt.length); n += 1) {
      const excluded = noRepeat ? repeating(before, noRepeat) : new Set();
      const k = Math.min(temperature ? topK : 1 + excluded.size, this.tokenizer.vocab.length);
      const { ids, logProbs } = this.run(this.decoder, [last], prompt.length - 1 + n, k);
      const allowed = range(k).filter((i) => !excluded.has(ids[i])).slice(0, temperature ? k : 1);
      const weights = Array.from(allowed, (i) => Math.exp((logProbs[i] - logProbs[0]) / (temperature || 1)));
      let left = random() * weights.reduce((a, b) => a + b, 0);
      const chosen = weights.findIndex((weight) => (left -= weight) < 0);
      last = ids[allowed[Math.max(0, chosen)]];
      before.push(last);
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

export class Summarizer extends LanguageModel {
  /** The prompt for a text: its beginning, if it is longer than those of the training and leaves no space for a summary. */
  promptOf(text) {
    const { max_len: maxLength, max_summary: maxSummary, longest_source: longest, eos } = this.header;
    const ids = this.tokenizer.encode(text);
    const capacity = ids.length <= longest ? longest : Math.max(1, maxLength - maxSummary - 1);
    return { prompt: [...ids.slice(0, capacity), eos], limit: ids.length > capacity ? capacity : null };
  }

  summarize({ text }) {
    const { prompt, limit } = this.promptOf(text);
    const ids = [...this.tokens(prompt, this.header.max_summary)];
    return { result: split(this.tokenizer.decode(ids)).join(" "), limit };
  }
}
