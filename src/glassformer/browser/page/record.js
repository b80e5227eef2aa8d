// What happens inside of the model for one sentence, as a record of `glassformer inspect`. Counterpart: inspection/inspect.py.

import { rowsOf, scoresOf, weightsOf } from "./alignment.js";
import { lengthPenalty } from "./search.js";
import { characterSpans } from "./text.js";

const TOP = 8; // most probable tokens of each position
const SHOWN = 50; // most probable tokens of a distribution
const MAX_LENS = 2e9; // multiplications of the output layer for the tokens of all layers

/** @param {number[]} shape @returns {Matrix} */
const array = (shape) => Object.assign(new Float32Array(shape.reduce((a, b) => a * b, 1)), { shape });
/** @param {Matrix} values @returns {Packed} */
export const packed = (values) => ({ shape: values.shape, values });

/**
 * Euclidean norm of some features of a row.
 * @param {Float32Array} row
 */
function norm(row, begin = 0, end = row.length) {
  let sum = 0;
  for (let i = begin; i < end; i += 1) sum += row[i] * row[i];
  return Math.sqrt(sum);
}

/**
 * The mean over the first axis.
 * @param {Packed} array
 */
function mean({ shape: [n, ...shape], values }) {
  const result = array(shape);
  values.forEach((x, i) => { result[i % result.length] += x / n; });
  return result;
}

/**
 * Attention weights of all heads, [heads, queries, keys], and norms of queries, keys and values. `side`: of models that
 * have only one.
 * @param {Reader} model @param {AttentionRecord} attention @param {number} nQueries @param {number} nKeys
 * @param {string} [side] @returns {AttentionMap}
 */
export function attentionMap(model, attention, nQueries, nKeys, side) {
  const { kind, layer, n_heads: nHeads, n_kv_heads: nKvHeads, d_head: dHead } = attention;
  /** @param {Projection} name @param {number} n */
  const of = (name, n) => rowsOf(model, attention, name, n);
  const rows = { queries: of("queries", nQueries), keys: of("keys", nKeys), values: of("values", nKeys) };
  const weights = array([nHeads, nQueries, nKeys]);
  for (let h = 0; h < nHeads; h += 1) {
    rows.queries.forEach((query, i) => {
      const n = kind === "decoder" ? i + 1 : nKeys;
      weights.set(weightsOf(model, attention, h, query, rows.keys, i, n), (h * nQueries + i) * nKeys);
    });
  }
  const norms = Object.fromEntries(Object.entries(rows).map(([name, all]) => {
    const values = array([nHeads, all.length]);
    for (let h = 0; h < nHeads; h += 1) {
      const head = name === "queries" ? h : Math.floor(h / (nHeads / nKvHeads));
      all.forEach((row, i) => { values[h * all.length + i] = norm(row, head * dHead, (head + 1) * dHead); });
    }
    return [name, packed(values)];
  }));
  const [queries, keys] = { encoder: ["source", "source"], decoder: ["target", "target"], cross: ["target", "source"] }[kind];
  return { name: `${kind}.${layer}`, kind, layer, queries: side ?? queries, keys: side ?? keys, weights: packed(weights), norms };
}

/**
 * The matrices of a head, for the tokens that a program has read: queries, keys, values, scores, weights and output.
 * @param {Reader} model @param {AttentionRecord} attention @param {number} head @param {number} nQueries
 * @param {number} nKeys @returns {HeadSteps}
 */
export function stepsOf(model, attention, head, nQueries, nKeys) {
  const { kind, n_heads: nHeads, n_kv_heads: nKvHeads, d_head: dHead, scale } = attention;
  const shared = Math.floor(head / (nHeads / nKvHeads));
  const queries = rowsOf(model, attention, "queries", nQueries);
  const [keys, values] = [rowsOf(model, attention, "keys", nKeys), rowsOf(model, attention, "values", nKeys)];
  /** @param {Float32Array[]} rows @param {number} h */
  const of = (rows, h) => Object.assign(Float32Array.from(rows.flatMap((row) => [...row.subarray(h * dHead, (h + 1) * dHead)])), { shape: [rows.length, dHead] });
  const [scores, weights, output] = [array([nQueries, nKeys]), array([nQueries, nKeys]), array([nQueries, dHead])];
  queries.forEach((query, i) => {
    scores.set(scoresOf(model, attention, head, query, keys, i), i * nKeys);
    const row = weightsOf(model, attention, head, query, keys, i, kind === "decoder" ? i + 1 : nKeys);
    weights.set(row, i * nKeys);
    row.forEach((weight, j) => { for (let d = 0; d < dHead; d += 1) output[i * dHead + d] += weight * values[j][shared * dHead + d]; });
  });
  const found = { Q: of(queries, head), K: of(keys, shared), V: of(values, shared), scores, weights, output };
  return { scale, hasBias: attention.bias >= 0, matrices: Object.fromEntries(Object.entries(found).map(([name, x]) => [name, packed(x)])) };
}

/**
 * The attention of a kind in a layer.
 * @param {ReadingRecord} record @param {AttentionKind} kind @param {number} layer
 */
export function attentionOf({ attentions }, kind, layer) {
  return attentions.find((x) => x.kind === kind && x.layer === layer);
}

/**
 * Attention from each position to each token through all layers, with residuals weighted 0.5.
 * @param {AttentionMap[]} maps
 */
export function rollout(maps) {
  const [, n] = maps[0].weights.shape;
  const half = (i, j) => (i === j ? 0.5 : 0);
  let total = Float64Array.from({ length: n * n }, (_, k) => 2 * half(Math.floor(k / n), k % n));
  for (const { weights } of maps) {
    const average = mean(weights);
    const next = new Float64Array(n * n);
    for (let i = 0; i < n; i += 1) {
      for (let k = 0; k < n; k += 1) {
        const factor = 0.5 * average[i * n + k] + half(i, k);
        for (let j = 0; j < n; j += 1) next[i * n + j] += factor * total[k * n + j];
      }
    }
    total = next;
  }
  return packed(Object.assign(Float32Array.from(total), { shape: [n, n] }));
}

/**
 * Indices of the n largest numbers, the largest first.
 * @param {ArrayLike<number>} values @param {number} n @returns {number[]}
 */
function largest(values, n) {
  const found = [];
  let least = -Infinity; // of those found, if they are n
  for (let i = 0; i < values.length; i += 1) {
    if (values[i] <= least && found.length === n) continue;
    let at = Math.min(found.length, n - 1);
    for (; at && values[found[at - 1]] < values[i]; at -= 1) found[at] = found[at - 1];
    found[at] = i;
    if (found.length === n) least = values[found[n - 1]];
  }
  return found;
}

/**
 * The largest of some probabilities with the texts of their indices, as of a prediction.
 * @param {ArrayLike<number>} probabilities @param {(index: number) => string} textOf @returns {Likely}
 */
export function likely(probabilities, textOf) {
  return largest(probabilities, TOP).map((i) => [textOf(i), probabilities[i]]);
}

/**
 * The extensions that a search considered, and the indices of those that lead to the best translation.
 * @param {number} eos @param {Tokenizer} tokenizer @param {Searched} searched @param {SearchOptions} options
 * @returns {{ nodes: SearchNode[], best: number[] }}
 */
function searchTree(eos, tokenizer, { found, steps }, options) {
  /** @type {SearchNode[]} */
  const nodes = [];
  const indexOf = new Map(); // of the node that ends with the tokens
  for (const [extensions, open, length, outcome] of steps) {
    extensions.forEach((x, i) => {
      if (x.total === -Infinity) return;
      const isEnded = i < options.beam && x.token === eos;
      const status = isEnded ? "ended" : open.includes(x) ? outcome : "pruned";
      const isDone = isEnded || status === "cut";
      const ids = [...x.parent.ids, x.token];
      const parent = indexOf.get(x.parent.ids.join(" ")) ?? -1;
      if (status !== "pruned") indexOf.set(ids.join(" "), nodes.length);
      const [score, text] = isDone ? [x.total / lengthPenalty(length, options.alpha), tokenizer.decode(ids)] : [null, null];
      nodes.push([parent, length - 1, tokenizer.tokenText(x.token), x.logProb, x.total, status, score, text]);
    });
  }
  const best = [];
  for (let i = indexOf.get(found[0].ids.join(" ")) ?? -1; i >= 0; [i] = nodes[i]) best.unshift(i);
  return { nodes, best };
}

/**
 * Mean of all cross-attention heads, and the fraction of heads whose largest weight is on the same token as that of the
 * mean.
 * @param {AttentionMap[]} maps @param {number} nQueries @param {number} nKeys
 */
function agreementOf(maps, nQueries, nKeys) {
  const heads = maps.flatMap(({ weights: { shape: [n], values } }) => (
    Array.from({ length: n }, (_, h) => values.subarray(h * nQueries * nKeys, (h + 1) * nQueries * nKeys))));
  const alignment = array([nQueries, nKeys]);
  for (const head of heads) head.forEach((x, i) => { alignment[i] += x / heads.length; });
  const best = (values, i) => largest(values.subarray(i * nKeys, (i + 1) * nKeys), 1)[0];
  const agreement = array([nQueries]);
  for (let i = 0; i < nQueries; i += 1) {
    agreement[i] = heads.filter((head) => best(head, i) === best(alignment, i)).length / heads.length;
  }
  return { alignment: packed(alignment), agreement: packed(agreement) };
}

/**
 * Norms of the residual stream after each sub-layer for n tokens, after a program has read them.
 * @param {Program} program @param {number} n @returns {Record<string, Packed>}
 */
export function streamOf(program, n) {
  return Object.fromEntries(program.record.stream.map(([name, buffer]) => {
    const norms = array([n]);
    for (let i = 0; i < n; i += 1) norms[i] = norm(program.row(buffer, i));
    return [name, packed(norms)];
  }));
}

/**
 * The vectors of n tokens that the first layer reads, after a program has read them.
 * @param {Program} program @param {number} n @returns {Record<string, Packed>}
 */
export function vectorsOf(program, n) {
  const rows = Array.from({ length: n }, (_, i) => program.row(program.record.first_input, i));
  const values = array([n, rows[0].length]);
  rows.forEach((row, i) => values.set(row, i * row.length));
  return { "input of layer 1": packed(values) };
}

/**
 * The outputs of the layers for n tokens, after a program has read them: of each but the last by module path, and of the
 * last.
 * @param {Program} program @param {number} n @returns {[Record<string, Float32Array[]>, Float32Array[]]}
 */
export function layerOutputs(program, n) {
  const rowsIn = (buffer) => Array.from({ length: n }, (_, i) => program.row(buffer, i));
  const layers = program.record.stream.filter(([name]) => name.endsWith("feedforward_residual"));
  const [, last] = layers.pop();
  return [Object.fromEntries(layers.map(([name, buffer]) => [name.split(".").slice(0, 2).join("."), rowsIn(buffer)])), rowsIn(last)];
}

/**
 * What an output layer makes of the outputs of a layer: at each position, the most probable tokens and the rank of the
 * expected one.
 * @param {Program} lens the output layer @param {Float32Array[]} rows @param {Header} header @param {Tokenizer} tokenizer
 * @param {number[]} expected @returns {Prediction[]}
 */
export function predictionsOf(lens, rows, { vocab_size: n }, tokenizer, expected) {
  lens.begin(rows);
  return expected.map((id, position) => {
    const largest = lens.largest(position, n, TOP); // first: it may move the memory that logits are read from
    const [logits, logSum] = lens.logits(position, n);
    /** @type {Likely} */
    const best = largest.map(([other, x]) => [tokenizer.tokenText(other), Math.exp(x - logSum)]);
    return [position, tokenizer.tokenText(id), logits[id] - logSum, lens.nLarger(position, n, logits[id]), best];
  });
}

/**
 * The tokens of a position, the most probable first, with the logarithms of all probabilities in this order.
 * @param {Tokenizer} tokenizer @param {Float64Array} logProbs @returns {Distribution}
 */
export function distributionOf(tokenizer, logProbs) {
  const order = Array.from(logProbs.keys()).sort((a, b) => logProbs[b] - logProbs[a]);
  return { texts: order.slice(0, SHOWN).map((id) => tokenizer.tokenText(id)), logProbs: Float64Array.from(order, (id) => logProbs[id]) };
}

/**
 * The predictions of each layer; none, if they take too long.
 * @param {Record<string, Float32Array[]>} outputs @param {number} size
 * @param {(rows: Float32Array[]) => Prediction[]} predictions
 * @returns {Record<string, Prediction[]>}
 */
export function lensOf(outputs, size, predictions) {
  const n = Object.values(outputs).reduce((sum, rows) => sum + rows.length, 0);
  if (n * size > MAX_LENS) return {};
  return Object.fromEntries(Object.entries(outputs).map(([name, rows]) => [name, predictions(rows)]));
}

/**
 * Whether heads can be switched off: the kernels take four features at a time.
 * @param {ReadingRecord[]} records
 */
export function canSwitch(records) {
  return records.every(({ attentions }) => attentions.every(({ d_head: dHead }) => dHead % 4 === 0));
}

/**
 * The record of a text, and of a translation of it that is given, or else found. Neither is too long for the model.
 * @param {Searches} searches of the model @param {Tokenizer} tokenizer @param {string} text
 * @param {SearchOptions & { off?: HeadOff[], begin?: number[] }} options of the search; `off`: heads whose outputs are
 *   0; `begin`: tokens before the text
 * @param {string} [target] @returns {[InspectionRecord, Recorded]} and what the model was given
 */
export function record(searches, tokenizer, text, { off = [], begin = [], ...options }, target) {
  const { model } = searches;
  const { header } = model;
  const textsOf = (ids) => ids.map((id) => tokenizer.tokenText(id));
  const source = [...begin, ...tokenizer.encode(text), header.eos];
  const unchanged = off.length ? tokenizer.decode(searches.of(source, options).found[0].ids) : null;
  return model.without(off, () => {
    const searched = target === undefined ? searches.of(source, options, off) : undefined;
    const { nodes, best } = searched ? searchTree(header.eos, tokenizer, searched, options) : { nodes: [], best: [] };
    const expected = searched ? searched.found[0].ids : [...tokenizer.targets.encode(target), header.eos];
    const inputs = [header.bos, ...expected.slice(0, -1)];
    const [nSource, nTarget] = [source.length, inputs.length];
    model.start(source, nTarget, model.sourceReader);
    const attention = header.read_source.attentions.map((x) => attentionMap(model, x, nSource, nSource));
    const stream = { source: streamOf(model.sourceReader, nSource) };
    const vectors = { source: vectorsOf(model.sourceReader, nSource) };
    model.read(model.targetReader, inputs);
    attention.push(...header.read_target.attentions.map((x) => attentionMap(model, x, nTarget, x.kind === "cross" ? nSource : nTarget)));
    stream.target = streamOf(model.targetReader, nTarget);
    vectors.target = vectorsOf(model.targetReader, nTarget);
    const [outputs, last] = layerOutputs(model.targetReader, nTarget);
    const predictions = predictionsOf(model.lens, last, header, tokenizer, expected);
    const ofKind = (kind) => attention.filter((x) => x.kind === kind);
    const output = tokenizer.decode(expected);
    const [sourceSpans, own] = [tokenizer.offsets(text).spans, tokenizer.targets.offsets(output)];
    const isOwn = own.ids.every((id, i) => id === expected[i]); // else the output is written with other tokens than it is read with
    return [{
      format: 1, task: header.task, family: header.family, sizes: header.sizes, notes: [],
      sides: {
        source: { text, ids: source, tokens: textsOf(source), offsets: characterSpans(text, source.map((_, i) => sourceSpans[i - begin.length] ?? null)) },
        target: { text: output, ids: inputs, tokens: textsOf(inputs), offsets: characterSpans(output, inputs.map((_, i) => (isOwn && own.spans[i - 1]) || null)) },
      },
      vectors, attention, rollout: { encoder: rollout(ofKind("encoder")), decoder: rollout(ofKind("decoder")) },
      stream, lens: {}, predictions, predicts: "next", first_predicted: 0, answer: "", beam: nodes, best_path: best,
      ...agreementOf(ofKind("cross"), nTarget, nSource), saliency: {},
      live: { off, unchanged, output, canSwitch: canSwitch([header.read_source, header.read_target]), search: { beam: options.beam, alpha: options.alpha }, hasDistribution: true, hasLens: Object.keys(outputs).length > 0 },
    }, { off, source, inputs, expected }];
  });
}

/**
 * The predictions of each layer of the model of a record.
 * @param {Model} model @param {Tokenizer} tokenizer @param {Recorded} recorded
 */
export function layersOf(model, tokenizer, { off, source, inputs, expected }) {
  const { header } = model;
  return model.without(off, () => {
    model.start(source, inputs.length, model.sourceReader);
    model.read(model.targetReader, inputs);
    const [outputs] = layerOutputs(model.targetReader, inputs.length);
    return lensOf(outputs, model.vocabSize * header.sizes.d_model, (rows) => predictionsOf(model.lens, rows, header, tokenizer, expected));
  });
}

/**
 * What the model of a record predicts at a position of its target: see `distributionOf`. `source` and `inputs`: the
 * tokens of its sides.
 * @param {Model} model @param {Tokenizer} tokenizer @param {Recorded} recorded @param {number} position
 */
export function distribution(model, tokenizer, { off, source, inputs }, position) {
  return model.without(off, () => {
    model.start(source, inputs.length);
    model.read(model.scorer, inputs.slice(0, position + 1));
    return distributionOf(tokenizer, model.logProbs(position));
  });
}

/**
 * The matrices of a head of the model of a record: see `stepsOf`.
 * @param {Model} model @param {Recorded} recorded @param {HeadName} name
 */
export function headOf(model, { off, source, inputs }, { kind, layer, head }) {
  const { read_source: readSource, read_target: readTarget } = model.header;
  return model.without(off, () => {
    model.start(source, inputs.length, model.sourceReader);
    if (kind === "encoder") return stepsOf(model, attentionOf(readSource, kind, layer), head, source.length, source.length);
    model.read(model.targetReader, inputs);
    return stepsOf(model, attentionOf(readTarget, kind, layer), head, inputs.length, kind === "decoder" ? inputs.length : source.length);
  });
}
