// Continuations of a text, and summaries, which are continuations. Counterparts: tasks/causal_lm.py, tasks/summarization.py, generate/sample.py.
// The random numbers are those of the browser.

import { Tables, fill, headsOff, padded, range } from "./kernels.js";
import { normalized } from "./model.js";
import { attentionMap, attentionOf, canSwitch, distributionOf, layerOutputs, lensOf, predictionsOf, rollout, stepsOf, streamOf, vectorsOf } from "./record.js";
import { repeating } from "./search.js";
import { characterSpans, split } from "./text.js";

const MAX_INSPECTED = 200; // tokens

export class LanguageModel extends Tables {
  /** @param {Kernels} kernels @param {Header} header @param {number} base @param {Tokenizer} tokenizer */
  constructor(kernels, header, base, tokenizer) {
    super(kernels, header, base);
    this.tokenizer = tokenizer;
    this.prefill = this.program("prefill");
    this.decoder = this.program("decode");
    this.scorer = this.program("score");
    this.outputLayer = this.program("lens");
    this.targetReader = this.program("read_target"); // keeps queries, keys and values
    this.caches = header.decode.cache_widths.flatMap((width) => [0, 1].map(() => kernels.allocate(2 * header.max_len * padded(width))));
    this.slots = range(header.max_len);
  }

  /**
   * The prompt for a text, of at most so many tokens as fit with the new ones, and whether its beginning was cut
   * off.
   * @param {string} text @param {number} nNew
   */
  prompt(text, nNew) {
    const { max_len: maxLength, bos, has_start: hasStart } = this.header;
    const ids = this.tokenizer.encode(text);
    if (hasStart || !ids.length) ids.unshift(bos);
    const nKept = Math.max(maxLength - nNew, Math.floor(maxLength / 2));
    return { ids: this.lastOf(ids, nKept), limit: ids.length > nKept ? nKept : null };
  }

  /**
   * The last n tokens of a prompt, of which the first is its start token if it has one.
   * @param {number[]} ids @param {number} n
   */
  lastOf(ids, n) {
    const start = this.header.has_start ? ids.slice(0, 1) : [];
    return ids.length <= n ? ids : [...start, ...ids.slice(ids.length - n + start.length)];
  }

  /**
   * Execute a program for tokens that follow `position` others.
   * @param {Program} program @param {ArrayLike<number>} ids @param {number} position @param {number} [k]
   */
  run(program, ids, position, k) {
    const n = ids.length;
    const positions = range(n).map((i) => i + position);
    const [zeros, lengths] = [fill(n, 0), positions.map((i) => i + 1)];
    return program.run({
      ids: Int32Array.from(ids), positions, types: zeros, slots: positions, lists: [this.slots, this.slots], begins: [zeros, zeros], lengths: [lengths, zeros],
    }, this.caches, k);
  }

  /**
   * Ids of a continuation, one after another. Temperature 0: the most probable tokens that repeat no n-gram.
   * @param {number[]} prompt @param {number} nNew
   */
  * tokens(prompt, nNew, temperature = 0, random = Math.random) {
    const { top_k: topK, no_repeat: noRepeat, ends, max_len: maxLength } = this.header;
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
      if (ends.includes(last)) return;
    }
  }

  /**
   * Parts of a continuation, which together are its text. A character of several tokens comes with the last of them.
   * @param {string} text @param {{ maxTokens: number, temperature: number }} options
   * @returns {Generator<CompletionPart>}
   */
  * complete(text, { maxTokens, temperature }, random = Math.random) {
    const nNew = Math.min(maxTokens, this.header.max_len - 1);
    const { ids: prompt, limit } = this.prompt(text, nNew);
    if (limit !== null) yield { limit };
    const ids = prompt.slice(-1); // so that the space between the prompt and what follows is decoded
    let shown = this.tokenizer.decode(ids);
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

  /**
   * From now on, the outputs of some heads are 0: rows of kind of attention, layer and head.
   * @param {HeadOff[]} off
   */
  switchOff(off) {
    const { prefill, decoder, scorer, targetReader } = this;
    for (const program of [prefill, decoder, scorer, targetReader]) program.switchOff(headsOff(this.header.read_target, off));
  }

  /** What is shown of a text: the last tokens of its prompt, where their characters are, and how many tokens follow. */
  inspected(text) {
    const { ids: all, limit } = this.prompt(text, 1);
    const prompt = this.lastOf(all, MAX_INSPECTED);
    const { spans } = this.tokenizer.offsets(text);
    const offsets = [null, ...spans].slice(-prompt.length);
    if (this.header.has_start) offsets[0] = null;
    return { prompt, offsets, nNew: 1, isCut: limit !== null || prompt.length < all.length };
  }

  /**
   * What happens inside of the model for a text, as a record of `glassformer inspect`: with each prediction of its next tokens.
   * @param {string} text @param {{ off?: HeadOff[] }} options `off`: heads whose outputs are 0
   */
  record(text, { off = [] } = {}) {
    const { header, tokenizer } = this;
    const { prompt, offsets, nNew, isCut, first = 0 } = this.inspected(text);
    const continuation = () => [...this.tokens(prompt, nNew)];
    const outputOf = (ids) => tokenizer.decode(ids) || tokenizer.tokenText(ids[0]);
    const unchanged = off.length ? outputOf(continuation()) : null;
    return this.without(off, () => {
      const found = continuation();
      const all = [...prompt, ...found];
      const [ids, expected] = [all.slice(0, -1), all.slice(1)];
      const n = ids.length;
      this.run(this.targetReader, ids, 0);
      const attention = header.read_target.attentions.map((x) => attentionMap(this, x, n, n, "text"));
      const stream = { text: streamOf(this.targetReader, n) };
      const vectors = { text: vectorsOf(this.targetReader, n) };
      const [outputs, last] = layerOutputs(this.targetReader, n);
      const predictions = predictionsOf(this.outputLayer, last, header, tokenizer, expected);
      this.recorded = { off, ids, expected };
      return {
        format: 1, task: header.task, family: header.family, sizes: header.sizes,
        notes: [isCut && `The text is longer: its ${first ? "first" : "last"} ${first || prompt.length} tokens are shown.`].filter(Boolean),
        sides: { text: { text, ids, tokens: ids.map((id) => tokenizer.tokenText(id)), offsets: characterSpans(text, ids.map((_, i) => offsets[i] ?? null)) } },
        vectors, attention, rollout: { decoder: rollout(attention) }, stream, lens: {}, predictions,
        predicts: "next", first_predicted: first, answer: "", beam: [], best_path: [], alignment: null, agreement: null, saliency: {},
        live: { off, unchanged, output: outputOf(found), canSwitch: canSwitch([header.read_target]), hasDistribution: true, hasLens: Object.keys(outputs).length > 0 },
      };
    });
  }

  /** The predictions of each layer for the last record. */
  lens() {
    const { header, tokenizer, recorded: { off, ids, expected } } = this;
    return this.without(off, () => {
      this.run(this.targetReader, ids, 0);
      const [outputs] = layerOutputs(this.targetReader, ids.length);
      return lensOf(outputs, header.vocab_size * header.sizes.d_model, (rows) => predictionsOf(this.outputLayer, rows, header, tokenizer, expected));
    });
  }

  /**
   * What the model predicts at a position of the last record.
   * @param {{ position: number }} values @returns {Distribution}
   */
  distribution({ position }) {
    const { off, ids } = this.recorded;
    return this.without(off, () => {
      this.run(this.scorer, ids.slice(0, position + 1), 0);
      return distributionOf(this.tokenizer, normalized(this.scorer.result(position).subarray(0, this.header.vocab_size)));
    });
  }

  /**
   * The matrices of a head for the last record.
   * @param {HeadName} name
   */
  head({ kind, layer, head }) {
    const { off, ids } = this.recorded;
    return this.without(off, () => {
      this.run(this.targetReader, ids, 0);
      return stepsOf(this, attentionOf(this.header.read_target, kind, layer), head, ids.length, ids.length);
    });
  }
}

export class Summarizer extends LanguageModel {
  /**
   * The prompt for a text: its beginning, if it is longer than those of the training and leaves no space for a summary.
   * @param {string} text
   */
  promptOf(text) {
    const { max_len: maxLength, max_summary: maxSummary, longest_source: longest, eos } = this.header;
    const ids = this.tokenizer.encode(text);
    const capacity = ids.length <= longest ? longest : Math.max(1, maxLength - maxSummary - 1);
    return { prompt: [...ids.slice(0, capacity), eos], limit: ids.length > capacity ? capacity : null };
  }

  inspected(text) {
    const { prompt, limit } = this.promptOf(text);
    return { prompt, offsets: this.tokenizer.offsets(text).spans.slice(0, prompt.length - 1), nNew: this.header.max_summary, isCut: limit !== null, first: prompt.length - 1 };
  }

  /** @param {{ text: string }} values */
  summarize({ text }) {
    const { prompt, limit } = this.promptOf(text);
    const ids = [...this.tokens(prompt, this.header.max_summary)];
    return { result: split(this.tokenizer.decode(ids)).join(" "), limit };
  }
}
