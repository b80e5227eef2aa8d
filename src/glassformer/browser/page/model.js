// A model that translates: its programs and caches. Counterpart: runtime/model.py.

import { Tables, fill, headsOff, padded, range } from "./kernels.js";

const FIRST_SLOTS = 1024;
const MAX_LOGITS = 4e6; // that are computed together
let floats; // of all numbers in half precision

/**
 * Natural logarithms of the softmax of logits.
 * @param {Float32Array} logits
 */
export function normalized(logits) {
  let top = -Infinity;
  for (let i = 0; i < logits.length; i += 1) if (logits[i] > top) top = logits[i]; // by index, which is faster than for-of
  let sum = 0;
  for (let i = 0; i < logits.length; i += 1) sum += Math.exp(logits[i] - top);
  const logSum = top + Math.log(sum);
  const logProbs = new Float64Array(logits.length);
  for (let i = 0; i < logits.length; i += 1) logProbs[i] = logits[i] - logSum;
  return logProbs;
}

export class Model extends Tables {
  /** @param {Kernels} kernels @param {Header} header @param {number} base */
  constructor(kernels, header, base) {
    super(kernels, header, base);
    this.encoder = this.program("encode");
    this.decoder = this.program("decode");
    this.sourceReader = this.program("read_source"); // keep queries, keys and values
    this.targetReader = this.program("read_target");
    this.scorer = this.program("score"); // has the logits of all tokens
    this.lens = this.program("lens"); // has those from the output of any layer
    this.eos = header.eos;
    this.maxLength = header.max_len;
    this.moreTokens = header.more_tokens;
    this.vocabSize = header.vocab_size;
    /** @type {Float64Array | undefined} */
    this.meanColumn = undefined; // of the output embeddings: alignment.js
    this.reserve(FIRST_SLOTS);
  }

  /**
   * Caches for a number of tokens.
   * @param {number} n
   */
  reserve(n) {
    if (n <= (this.capacity ?? 0)) return;
    const pairs = (widths) => widths.flatMap((width) => [0, 1].map(() => this.kernels.allocate(2 * n * padded(width))));
    const sources = pairs(this.header.encode.cache_widths);
    const targets = pairs(this.header.decode.cache_widths.slice(0, this.header.n_own_caches));
    this.capacity = n; // only if there was memory for all
    this.sources = sources;
    this.caches = [...targets, ...sources.slice(2)];
  }

  /**
   * Encode a source. `nSlots`: number of tokens of all hypotheses that there will be.
   * @param {number[]} source @param {number} nSlots
   */
  start(source, nSlots, program = this.encoder) {
    const n = source.length;
    this.reserve(2 ** Math.ceil(Math.log2(Math.max(n, nSlots))));
    this.sourceSlots = range(n);
    this.free = 0;
    program.run(this.rowsOf(Int32Array.from(source), this.sourceSlots, [fill(n, n), fill(n, n)]), this.sources);
  }

  /**
   * The rows of a whole text. `lengths`: what each attends to, of itself and of the source.
   * @param {Int32Array} ids @param {Int32Array} slots @param {Int32Array[]} lengths @returns {Batch}
   */
  rowsOf(ids, slots, lengths) {
    const n = ids.length;
    return { ids, positions: range(n), slots, lists: [slots, this.sourceSlots], begins: [fill(n, 0), fill(n, 0)], lengths };
  }

  /**
   * The k most probable next tokens of hypotheses of the source, [hypotheses, k].
   * @param {OpenHypothesis[]} hypotheses @param {number} k
   */
  step(hypotheses, k) {
    const n = hypotheses.length;
    const length = hypotheses[0].ids.length + 1;
    const slots = Int32Array.from(hypotheses, () => this.free++);
    const list = new Int32Array(n * length);
    hypotheses.forEach((hypothesis, i) => {
      hypothesis.slots = [...hypothesis.slots, slots[i]];
      list.set(hypothesis.slots, i * length);
    });
    return this.decoder.run({
      ids: Int32Array.from(hypotheses, ({ ids }) => ids.at(-1) ?? this.header.bos), positions: fill(n, length - 1), slots,
      lists: [list, this.sourceSlots], begins: [range(n).map((i) => i * length), fill(n, 0)],
      lengths: [fill(n, length), fill(n, this.sourceSlots.length)],
    }, this.caches, k);
  }

  /**
   * Log-probabilities of target tokens, given the tokens before them, after `start`.
   * @param {number[]} target
   */
  score(target) {
    this.read(this.scorer, [this.header.bos, ...target.slice(0, -1)]);
    return target.map((id, i) => this.logProbs(i)[id]);
  }

  /**
   * The log-probability of each of several targets of a source.
   * @param {number[]} source @param {number[][]} targets
   */
  scores(source, targets) {
    const longest = Math.max(1, ...targets.map(({ length }) => length));
    const nTogether = Math.max(1, Math.floor(Math.min(FIRST_SLOTS, MAX_LOGITS / this.vocabSize) / longest));
    const sums = [];
    this.start(source, nTogether * longest);
    for (let at = 0; at < targets.length; at += nTogether) {
      const part = targets.slice(at, at + nTogether);
      this.read(this.scorer, ...part.map((target) => [this.header.bos, ...target.slice(0, -1)]));
      let row = 0;
      for (const target of part) {
        let sum = 0;
        for (const id of target) {
          const [logits, logSum] = this.scorer.logits(row, this.vocabSize);
          sum += logits[id] - logSum;
          row += 1;
        }
        sums.push(sum);
      }
    }
    return sums;
  }

  /**
   * Execute a program for given tokens of targets, one after the other, after `start`.
   * @param {Program} program @param {number[][]} targets
   */
  read(program, ...targets) {
    const ids = Int32Array.from(targets.flat());
    const n = ids.length;
    if (n > this.capacity) throw new RangeError("more tokens than slots");
    const positions = Int32Array.from(targets.flatMap((target) => target.map((_, i) => i)));
    const lengths = [positions.map((i) => i + 1), fill(n, this.sourceSlots.length)];
    const begins = [positions.map((position, i) => i - position), fill(n, 0)];
    program.run({ ...this.rowsOf(ids, range(n), lengths), positions, begins }, this.caches);
  }

  /**
   * Log-probabilities of all tokens at a position that the scorer has read.
   * @param {number} position
   */
  logProbs(position) {
    return this.normalized(this.scorer.result(position));
  }

  /**
   * From now on, the outputs of some heads are 0: rows of kind of attention, layer and head.
   * @param {HeadOff[]} off
   */
  switchOff(off) {
    const { read_source: source, read_target: target } = this.header;
    for (const program of [this.encoder, this.sourceReader]) program.switchOff(headsOff(source, off));
    for (const program of [this.decoder, this.targetReader, this.scorer]) program.switchOff(headsOff(target, off));
  }

  /**
   * Log-probabilities of all tokens.
   * @param {Float32Array} outputs
   */
  normalized(outputs) {
    return normalized(outputs.subarray(0, this.vocabSize));
  }

  /**
   * Keys or values of the source in a cache, as floats: [tokens, width].
   * @param {number} cache @param {number} which @param {number} width
   */
  sourceRows(cache, which, width) {
    const at = this.caches[2 * cache + which];
    const stride = padded(this.header.decode.cache_widths[cache]);
    floats ??= Float32Array.from(range(2 ** 16), fromHalf);
    const halves = this.kernels.halves(at, this.sourceSlots.length * stride);
    return Array.from(this.sourceSlots, (_, i) => {
      const row = new Float32Array(width);
      for (let j = 0; j < width; j += 1) row[j] = floats[halves[i * stride + j]];
      return row;
    });
  }
}

/**
 * The number of a half.
 * @param {number} half
 */
function fromHalf(half) {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}
