// Beam search of one sentence. Counterpart: generate/search.py, with its policy and rules.

const KEPT = 2; // searches: of a model, and with heads switched off

/** @param {number} n @param {number} alpha */
export function lengthPenalty(n, alpha) {
  return ((5 + n) / 6) ** alpha;
}

/**
 * Compare so that the largest comes first; minus infinity is equal to itself.
 * @param {number} a @param {number} b
 */
const descending = (a, b) => (a === b ? 0 : b - a);

/**
 * Tokens that would repeat an n-gram.
 * @param {number[]} ids @param {number} n @returns {Set<number>}
 */
export function repeating(ids, n) {
  const last = ids.slice(ids.length - n + 1).join(" ");
  const found = new Set();
  for (let i = 0; i + n <= ids.length; i += 1) if (ids.slice(i, i + n - 1).join(" ") === last) found.add(ids[i + n - 1]);
  return found;
}

/**
 * The best translations of a source, best first: their ids, logProbs and score.
 * @param {Model} model `start` encodes a source; `step` has the most probable next tokens of hypotheses
 * @param {number[]} source token ids with the end-of-sentence token
 * @param {SearchOptions} options `prefix`: tokens that every translation begins with; `report`: called with the
 *   extensions of each step; `noRepeat`: size of the n-grams that occur once only; 0: any
 * @returns {Hypothesis[]}
 */
export function search(model, source, { beam, alpha, nbest = 1, prefix = [], noRepeat = 0, maxTokens, report }) {
  const { eos } = model;
  const limit = Math.min(model.maxLength, (maxTokens ?? source.length + model.moreTokens) + prefix.length);
  const considered = 2 * beam;
  const filler = eos === 0 ? 1 : 0; // a token that does not end
  /** @type {Hypothesis[]} */
  let finished = [];
  /** @type {OpenHypothesis[]} */
  let hypotheses = [{ ids: [], logProbs: [], slots: [], sum: 0 }];
  model.start(source, (limit + 1) * beam);
  for (let length = 1; ; length += 1) {
    /** @type {Set<number>[]} */
    const excluded = hypotheses.map(({ ids }) => (noRepeat ? repeating(ids, noRepeat) : new Set()));
    const k = Math.min(considered + Math.max(...excluded.map((tokens) => tokens.size)), model.vocabSize);
    const found = model.step(hypotheses, k);
    /** @type {Extension[]} */
    let extensions = [];
    hypotheses.forEach((parent, i) => {
      /** @type {[token: number, logProb: number][]} */
      let own = [];
      for (let j = i * k; j < (i + 1) * k; j += 1) own.push([found.ids[j], excluded[i].has(found.ids[j]) ? -Infinity : found.logProbs[j]]);
      if (excluded[i].size || excluded.some((tokens) => tokens.size)) own.sort(([, a], [, b]) => descending(a, b));
      own = own.slice(0, considered);
      if (length <= prefix.length) own = own.map((_, j) => (j ? [filler, -Infinity] : [prefix[length - 1], 0]));
      for (const [token, logProb] of own) extensions.push({ parent, token, logProb, total: Math.fround(parent.sum + logProb) });
    });
    extensions.sort((a, b) => descending(a.total, b.total));
    extensions = extensions.slice(0, considered);
    while (extensions.length < considered) extensions.push({ parent: hypotheses.at(-1), token: filler, logProb: -Infinity, total: -Infinity });
    const open = extensions.filter(({ token }) => token !== eos).slice(0, beam);
    const ended = extensions.slice(0, beam).filter(({ token }) => token === eos);
    if (length >= limit) ended.push(...open);
    for (const { parent, token, logProb, total } of ended) {
      if (total > -Infinity) finished.push({ ids: [...parent.ids, token], logProbs: [...parent.logProbs, logProb], score: total / lengthPenalty(length, alpha) });
    }
    finished.sort((a, b) => descending(a.score, b.score));
    finished = finished.slice(0, beam);
    const reachable = Math.max(...open.map(({ total }) => total)) / lengthPenalty(limit, alpha);
    const continues = finished.length < beam && (finished.length < nbest || reachable > finished[nbest - 1].score);
    const outcome = length < limit && continues ? "kept" : length >= limit ? "cut" : "left";
    report?.(extensions, open, length, outcome);
    if (outcome !== "kept") break;
    hypotheses = open.map(({ parent, token, logProb, total }) => (
      { ids: [...parent.ids, token], logProbs: [...parent.logProbs, logProb], slots: parent.slots, sum: total }));
  }
  if (!finished.length) throw new Error("the outputs of the model are not finite");
  return finished.slice(0, nbest);
}

/** The last searches of a model, so that what happens in a translation is shown without another search. */
export class Searches {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    /** @type {Map<string, Searched>} */
    this.last = new Map();
  }

  /**
   * What `search` finds, and what it reported. `off`: the heads that are switched off.
   * @param {number[]} source @param {SearchOptions} options @param {HeadOff[]} [off] @returns {Searched}
   */
  of(source, options, off = []) {
    const key = JSON.stringify([source, options, off]);
    let searched = this.last.get(key);
    if (!searched) {
      /** @type {SearchStep[]} */
      const steps = [];
      searched = { found: search(this.model, source, { ...options, report: (...step) => steps.push(step) }), steps };
    }
    this.last.delete(key); // and to the end
    this.last.set(key, searched);
    if (this.last.size > KEPT) this.last.delete(this.last.keys().next().value);
    return searched;
  }
}
