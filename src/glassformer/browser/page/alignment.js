// Word alignment by cross-attention. Counterparts: tasks/alignment.py, runtime/cross_attention.py.

import { padded } from "./kernels.js";
import { unitSpans } from "./sentences.js";

const N_NORMALIZATIONS = 3;
const JUMP = 0.5;
const MIN_JUMP = 0.02;
const MIN_EMISSION = 1e-4;
const STRIP = 8; // columns whose weights lie together: kernels/product.h
/** @type {Projection[]} */
const PROJECTIONS = ["queries", "keys", "values"];

/** @param {number} n */
const zeros = (n) => new Float64Array(n);
/** @param {Float64Array} row */
const sumOf = (row) => row.reduce((a, b) => a + b, 0);

/**
 * Token ids of a text, and the words that each token is part of: the first of them, and the one after the last.
 * @param {string} text @param {Tokenizer} tokenizer @param {Span[]} words
 */
function wordsOfTokens(text, tokenizer, words) {
  const { ids, spans } = tokenizer.offsets(text);
  const nEnded = new Int32Array(text.length + 1); // number of words that end before a position or at it
  const nBegun = new Int32Array(text.length + 1); // number of words that begin before a position
  words.forEach(([begin, end], i) => {
    nBegun.fill(i + 1, begin + 1);
    nEnded.fill(i + 1, end);
  });
  return { ids, words: spans.map(([start, end]) => (end > start ? [nEnded[start], nBegun[end]] : [0, 0])) };
}

/**
 * The weights of a column of a product, of `n` inputs.
 * @param {Tables} model @param {number[]} product addresses @param {number} index @param {number} n
 */
function column(model, [panels, scale], index, n) {
  const k = padded(n);
  const bytes = new Int8Array(model.kernels.memory.buffer, model.base + panels + Math.floor(index / STRIP) * k * STRIP, k * STRIP);
  const factor = model.floats(scale, index + 1)[index];
  const at = 4 * (index % STRIP);
  const weights = zeros(n);
  for (let i = 0; i < n; i += 1) weights[i] = bytes[(i >> 2) * 4 * STRIP + at + (i & 3)] * factor;
  return weights;
}

/**
 * Output embedding of a token: the column of the last linear layer.
 * @param {Model} model @param {number} id
 */
function embedding(model, id) {
  return column(model, model.header.decode.instructions.at(-1).tables, id, model.header.sizes.d_model);
}

/**
 * The mean of the output embeddings, which changes no probability.
 * @param {Model} model
 */
function meanColumn(model) {
  if (!model.meanColumn) {
    const n = model.header.sizes.d_model;
    const mean = zeros(n);
    for (let id = 0; id < model.vocabSize; id += 1) { // millions of weights: a function for each takes long
      const weights = embedding(model, id);
      for (let i = 0; i < n; i += 1) mean[i] += weights[i] / model.vocabSize;
    }
    model.meanColumn = mean;
  }
  return model.meanColumn;
}

/**
 * Queries, keys or values of an attention after a run, for each row: [rows][features].
 * @param {Reader} model @param {AttentionRecord} attention @param {Projection} name @param {number} n
 * @returns {Float32Array[]}
 */
export function rowsOf(model, attention, name, n) {
  const { [name]: buffer, cache, n_kv_heads: nKvHeads, d_head: dHead } = attention;
  if (name !== "queries" && attention.kind === "cross") return model.sourceRows(cache, Number(name === "values"), nKvHeads * dHead);
  const program = attention.kind === "encoder" ? model.sourceReader : model.targetReader;
  return Array.from({ length: n }, (_, i) => program.row(buffer, i));
}

/**
 * Scores of the first n keys of a head of an attention for a query, scaled, with the bias of their distance.
 * @param {Tables} model @param {AttentionRecord} attention @param {number} head @param {Float32Array} query
 * @param {Float32Array[]} keys @param {number} position
 */
export function scoresOf(model, attention, head, query, keys, position, n = keys.length) {
  const { n_heads: nHeads, n_kv_heads: nKvHeads, d_head: dHead, scale, reach, bias } = attention;
  const at = Math.floor(head / (nHeads / nKvHeads)) * dHead;
  const table = bias < 0 ? null : model.floats(bias, nHeads * (2 * reach + 1));
  const scores = new Float64Array(n);
  const first = head * dHead;
  for (let j = 0; j < n; j += 1) {
    const key = keys[j];
    let sum = 0;
    for (let d = 0; d < dHead; d += 1) sum += query[first + d] * key[at + d];
    scores[j] = sum * scale;
    if (table) scores[j] += table[head * (2 * reach + 1) + reach + Math.max(-reach, Math.min(reach, j - position))];
  }
  return scores;
}

/**
 * Weights of a head of an attention for a query: the softmax of the scores of the first n keys.
 * @param {Tables} model @param {AttentionRecord} attention @param {number} head @param {Float32Array} query
 * @param {Float32Array[]} keys @param {number} position
 */
export function weightsOf(model, attention, head, query, keys, position, n = keys.length) {
  const weights = scoresOf(model, attention, head, query, keys, position, n);
  let top = -Infinity;
  for (let i = 0; i < n; i += 1) if (weights[i] > top) top = weights[i];
  let whole = 0;
  for (let i = 0; i < n; i += 1) whole += weights[i] = Math.exp(weights[i] - top);
  for (let i = 0; i < n; i += 1) weights[i] /= whole;
  return weights;
}

/**
 * What each source token adds to the logit of each target token, the mean over layers: [target, source].
 * @param {Model} model @param {number[]} source @param {number[]} target
 */
function contributions(model, source, target) {
  const { header } = model;
  const dModel = header.sizes.d_model;
  model.start([...source, header.eos], target.length + 1);
  model.read(model.targetReader, [header.bos, ...target].slice(0, target.length));
  const mean = meanColumn(model);
  const outputs = target.map((id) => embedding(model, id).map((x, i) => x - mean[i]));
  const total = target.map(() => zeros(source.length));
  const layers = header.read_target.attentions.filter(({ kind }) => kind === "cross");
  for (const layer of layers) {
    const { n_heads: nHeads, n_kv_heads: nKvHeads, d_head: dHead, projection: { tables, column: first, width } } = layer;
    const [queries, keys, values] = PROJECTIONS.map((name) => rowsOf(model, layer, name, target.length));
    const projection = Array.from({ length: dModel }, (_, i) => column(model, tables, first + i, width));
    target.forEach((_, t) => {
      const readout = zeros(width);
      for (let i = 0; i < dModel; i += 1) for (let j = 0; j < width; j += 1) readout[j] += outputs[t][i] * projection[i][j];
      const sums = zeros(source.length + 1);
      for (let h = 0; h < nHeads; h += 1) {
        const at = Math.floor(h / (nHeads / nKvHeads)) * dHead;
        weightsOf(model, layer, h, queries[t], keys, 0).forEach((weight, s) => {
          let sum = 0;
          for (let d = 0; d < dHead; d += 1) sum += readout[h * dHead + d] * values[s][at + d];
          sums[s] += weight * sum;
        });
      }
      for (let s = 0; s < source.length; s += 1) total[t][s] += Math.max(0, sums[s]) / layers.length;
    });
  }
  return total;
}

/**
 * Weight of each source word for each target word, normalized.
 * @param {Model} model @param {Tokenizer} tokenizer @param {string} source @param {string} target
 */
export function wordWeights(model, tokenizer, source, target) {
  const limit = model.maxLength - 1;
  const [sources, targets] = [source, target].map(unitSpans);
  const [src, tgt] = [wordsOfTokens(source, tokenizer, sources), wordsOfTokens(target, tokenizer.targets, targets)];
  const [srcIds, tgtIds] = [src, tgt].map(({ ids }) => ids.slice(0, limit));
  const nSource = sources.length;
  const weights = targets.map(() => zeros(nSource));
  if (!srcIds.length || !tgtIds.length) return weights;
  const counts = zeros(targets.length);
  for (const [first, end] of tgt.words.slice(0, limit)) for (let word = first; word < end; word += 1) counts[word] += 1;
  contributions(model, srcIds, tgtIds).forEach((row, t) => {
    for (let word = tgt.words[t][0]; word < tgt.words[t][1]; word += 1) {
      row.forEach((x, s) => {
        for (let k = src.words[s][0]; k < src.words[s][1]; k += 1) weights[word][k] += x / counts[word];
      });
    }
  });
  for (let n = 0; n < N_NORMALIZATIONS; n += 1) {
    for (let s = 0; s < nSource; s += 1) {
      const sum = Math.max(1e-9, weights.reduce((a, row) => a + row[s], 0));
      for (const row of weights) row[s] /= sum;
    }
    for (const row of weights) {
      const sum = Math.max(1e-9, sumOf(row));
      row.forEach((x, s) => { row[s] = x / sum; });
    }
  }
  return weights;
}

/**
 * Probability of each source word for each target word in a hidden Markov model.
 * @param {Float64Array[]} weights
 */
function posteriors(weights) {
  const [nTarget, nSource] = [weights.length, weights[0].length];
  const transition = Array.from({ length: nSource }, (_, i) => {
    const row = Float64Array.from({ length: nSource }, (_, j) => JUMP ** Math.abs(j - i - 1) + MIN_JUMP);
    const sum = sumOf(row);
    return row.map((x) => x / sum);
  });
  const emission = weights.map((row) => row.map((x) => (x + MIN_EMISSION) ** 2));
  const forward = emission.map((row) => row.slice());
  for (let t = 1; t < nTarget; t += 1) {
    const whole = sumOf(forward[t - 1]);
    for (let j = 0; j < nSource; j += 1) {
      let sum = 0;
      for (let i = 0; i < nSource; i += 1) sum += forward[t - 1][i] / whole * transition[i][j];
      forward[t][j] *= sum;
    }
  }
  const backward = emission.map((row) => row.map(() => 1));
  for (let t = nTarget - 2; t >= 0; t -= 1) {
    const next = emission[t + 1].map((x, j) => x * backward[t + 1][j]);
    for (let i = 0; i < nSource; i += 1) backward[t][i] = transition[i].reduce((sum, p, j) => sum + p * next[j], 0);
    const whole = sumOf(backward[t]);
    backward[t] = backward[t].map((x) => x / whole);
  }
  return forward.map((row, t) => row.map((x, s) => x * backward[t][s]));
}

/**
 * Pairs of a source word and a target word: each target word with its most probable source word.
 * @param {Model} model @param {Tokenizer} tokenizer @param {string} source @param {string} target @returns {Alignment}
 */
export function align(model, tokenizer, source, target) {
  const weights = wordWeights(model, tokenizer, source, target);
  const isUsed = (row) => row.some((x) => x !== 0);
  const nTarget = weights.findLastIndex(isUsed) + 1;
  if (!nTarget) return [];
  const nSource = Math.max(...weights.map((row) => row.findLastIndex((x) => x !== 0))) + 1;
  const found = posteriors(weights.slice(0, nTarget).map((row) => row.slice(0, nSource)));
  return found.flatMap((row, t) => (isUsed(weights[t]) ? [[row.indexOf(Math.max(...row)), t]] : []));
}
