// The span of a context that answers a question. Counterpart: tasks/question_answering.py.

import { EncoderTask, softmax } from "./encoder_task.js";
import { codePoints, strip } from "./text.js";

const MAX_ANSWER_TOKENS = 30;
const MAX_QUESTION_TOKENS = 64;
const N_SPANS = 5; // the best ones of a window, of which some may be white space

/**
 * The most probable spans [score, first, last] of tokens, best first.
 * @param {number[]} firsts @param {number[]} lasts
 */
function bestSpans(firsts, lasts) {
  /** @type {[score: number, first: number, last: number][]} */
  const spans = [];
  firsts.forEach((p, first) => {
    for (let last = first; last < Math.min(lasts.length, first + MAX_ANSWER_TOKENS); last += 1) {
      const score = p * lasts[last];
      if (spans.length < N_SPANS || score > spans.at(-1)[0]) {
        const at = spans.findIndex(([other]) => score > other);
        spans.splice(at < 0 ? spans.length : at, 0, [score, first, last]);
        spans.length = Math.min(spans.length, N_SPANS);
      }
    }
  });
  return spans;
}

export class QuestionAnswerer extends EncoderTask {
  /**
   * Windows [start, end) of n tokens, each of which has a third in common with the next.
   * @param {number} n @param {number} size
   */
  * windows(n, size) {
    for (let start = 0; ; start += size - Math.floor(size / 3)) {
      yield [start, Math.min(n, start + size)];
      if (start + size >= n) return;
    }
  }

  /**
   * How many tokens of a question are used, and how many tokens there can be of question and context.
   * @param {number} nQuestion
   */
  capacity(nQuestion) {
    const space = this.header.max_len - this.nSpecials;
    return [Math.min(nQuestion, MAX_QUESTION_TOKENS, Math.floor(space / 2)), space];
  }

  /**
   * Of a question and a context, which a tab separates.
   * @param {string} text
   */
  tokens(text) {
    const [question, ...context] = text.split("\t");
    const all = [this.tokensOf(question), this.tokensOf(context.join("\t"), question.length + 1)];
    const [nAsked, space] = this.capacity(all[0].length);
    const lists = [all[0].slice(0, nAsked), all[1].slice(0, space - nAsked)];
    return { lists, limit: lists.some((list, i) => list.length < all[i].length) ? lists.flat().length : null };
  }

  /** @type {EncoderTask["predictions"]} */
  predictions(rows) {
    const outputs = this.encoder.outputs(rows);
    const [firsts, lasts] = [0, 1].map((i) => softmax(outputs.map((row) => row[i])));
    return ["span", rows.map((_, i) => [i, null, null, null, [["start", firsts[i]], ["end", lasts[i]]]])];
  }

  /** @type {EncoderTask["outputOf"]} */
  outputOf(_, { text }) {
    const [question, ...context] = text.split("\t");
    return this.answer({ question, context: context.join("\t") }).result.answer || "–";
  }

  /**
   * The most probable answer, with its position in characters: "" if the context has none.
   * @param {{ question: string, context: string }} values
   */
  answer({ question, context }) {
    const all = this.tokenizer.encode(question);
    const [nAsked, space] = this.capacity(all.length);
    const asked = all.slice(0, nAsked);
    const { ids, spans } = this.tokenizer.offsets(context);
    const begin = asked.length + 1 + this.header.n_separators;
    let none = 1;
    let best = { answer: "", score: -1, start: 0, end: 0 };
    for (const [start, end] of this.windows(ids.length, space - asked.length)) {
      const outputs = this.encoder.outputs(this.hidden(asked, ids.slice(start, end)));
      const [firsts, lasts] = [0, 1].map((i) => softmax(outputs.map((row) => row[i])));
      none = Math.min(none, firsts[0] * lasts[0]);
      const inContext = (probabilities) => probabilities.slice(begin, begin + end - start);
      for (const [score, first, last] of bestSpans(inContext(firsts), inContext(lasts))) {
        const [from] = spans[start + first];
        const text = context.slice(from, spans[start + last][1]);
        const answer = strip(text);
        if (answer && score > best.score) {
          const at = codePoints(context, from + text.indexOf(answer));
          best = { answer, score, start: at, end: at + codePoints(answer, answer.length) };
        }
      }
    }
    const result = best.score > none || (best.answer && !this.header.may_find_none) ? best : { answer: "", score: none, start: 0, end: 0 };
    return { result, limit: asked.length < all.length ? asked.length : null };
  }
}
