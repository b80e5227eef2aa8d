// A tag for each word, and what adjacent words of one tag are together. Counterparts: tasks/tagging.py, pipelines/token_classification.py.

import { EncoderTask, softmax } from "./encoder_task.js";
import { likely } from "./record.js";
import { codePoints, wordsIn } from "./text.js";

const TYPE = /^(?:[BI]-)?(.*)$/su; // of a tag

export class Tagger extends EncoderTask {
  /**
   * Windows [start, end) of words, which overlap if there are several.
   * @param {unknown[][]} subwords @returns {[start: number, end: number][]}
   */
  windows(subwords) {
    const limit = this.header.max_len - 2;
    /** @type {[start: number, end: number][]} */
    const found = [];
    for (let start = 0; ;) {
      let [n, end] = [0, start];
      while (end < subwords.length && (n + subwords[end].length <= limit || end === start)) n += subwords[end++].length;
      found.push([start, end]);
      if (end === subwords.length) return found;
      const most = Math.min(Math.floor(limit / 4), limit - subwords[end].length);
      let [shared, next] = [0, end];
      while (next - 1 > start && shared + subwords[next - 1].length <= most) shared += subwords[--next].length;
      start = next;
    }
  }

  /**
   * Token ids of a word, of which there is at least one.
   * @param {string} word
   */
  subwords(word) {
    const own = (text) => this.tokenizer.encode(text).slice(this.tokenizer.first.length);
    return [own(word), own(" "), [this.header.eos]].find((ids) => ids.length).slice(0, this.header.max_len - 2);
  }

  /** @param {string} text @returns {{ lists: SpanToken[][], limit: number | null }} */
  tokens(text) {
    const words = wordsIn(text).map(({ 0: word, index }) => {
      const ids = this.subwords(word);
      const { spans } = this.tokenizer.offsets(word);
      const own = spans.slice(this.tokenizer.first.length);
      const isWhole = own.length !== ids.length; // else each token is a part of the word
      return ids.map(/** @returns {SpanToken} */ (id, i) => {
        const [start, end] = isWhole ? [0, word.length] : own[i];
        return [id, [index + start, index + end]];
      });
    });
    const [[start, end] = [0, 0], ...others] = words.length ? this.windows(words) : [];
    return { lists: [words.slice(start, end).flat(), []], limit: others.length ? words.slice(start, end).flat().length : null };
  }

  /**
   * The tags of the words that begin among the tokens.
   * @type {EncoderTask["predictions"]}
   */
  predictions(rows, { text, offsets }) {
    const starts = new Set(wordsIn(text).map(({ index }) => index));
    const firsts = [...offsets.keys()].filter((i) => {
      return offsets[i] && starts.has(offsets[i][0]) && offsets[i - 1]?.[0] !== offsets[i][0]; // several tokens can be of one character
    });
    const outputs = this.encoder.outputs(firsts.map((i) => rows[i]));
    const { labels } = this.header;
    return ["tags", outputs.map((row, i) => [firsts[i], null, null, null, likely(softmax(row.subarray(0, labels.length)), (j) => labels[j])])];
  }

  /**
   * The probabilities of the tags of each word. The first half of an overlap is taken from the earlier window.
   * @param {string[]} words
   */
  probabilities(words) {
    const { labels } = this.header;
    const subwords = words.map((word) => this.subwords(word));
    const windows = words.length ? this.windows(subwords) : [];
    return windows.flatMap(([start, end], i) => {
      const skip = i ? Math.floor((windows[i - 1][1] - start) / 2) : 0;
      const stop = windows[i + 1] ? windows[i + 1][0] + Math.floor((end - windows[i + 1][0]) / 2) : end;
      const hidden = this.hidden(subwords.slice(start, end).flat());
      let at = 1;
      const firsts = subwords.slice(start, end).map((ids) => hidden[(at += ids.length) - ids.length]);
      return this.encoder.outputs(firsts.slice(skip, stop - start)).map((outputs) => softmax(outputs.subarray(0, labels.length)));
    });
  }

  /**
   * The most probable tag of each word of a text, with its probability and its position in UTF-16.
   * @param {string} text
   */
  tags(text) {
    const words = wordsIn(text);
    const rows = this.probabilities(words.map(([word]) => word));
    return words.map(({ 0: word, index }, i) => {
      const score = Math.max(...rows[i]);
      return { word, tag: this.header.labels[rows[i].indexOf(score)], score, start: index, end: index + word.length };
    });
  }

  /**
   * Groups of words, without those of the tag O. Positions are in characters.
   * @param {{ text: string }} values
   */
  tag({ text }) {
    const groups = [];
    for (const { word, tag, score, start, end } of this.tags(text)) {
      const [, type] = TYPE.exec(tag);
      const last = groups.at(-1);
      if (last && last.type === type && !tag.startsWith("B-")) Object.assign(last, { end, words: [...last.words, word], scores: [...last.scores, score] });
      else groups.push({ type, tag, start, end, words: [word], scores: [score] });
    }
    const result = groups.filter(({ type }) => type !== "O").map(({ tag, start, end, words, scores }) => ({
      entity_group: tag.slice(tag.indexOf("-") + 1), score: scores.reduce((a, b) => a + b, 0) / scores.length, word: words.join(" "), start: codePoints(text, start), end: codePoints(text, end),
    }));
    return { result, limit: null };
  }
}
