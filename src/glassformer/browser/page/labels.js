// A label or a number for a text or a pair of texts. Counterparts: tasks/classification.py, tasks/regression.py.

import { EncoderTask, mean, softmax } from "./encoder_task.js";
import { written } from "./numbers.js";
import { likely } from "./record.js";

export class Labels extends EncoderTask {
  /**
   * Outputs of the head for a text.
   * @param {Float32Array[]} hidden
   */
  outputs(hidden) {
    return this.encoder.outputs([this.header.pooling === "first" ? hidden[0] : mean(hidden)])[0];
  }

  /**
   * The lowest and the highest number of a regression.
   * @returns {[number, number]}
   */
  get range() {
    const [low, high] = this.header.labels.map(Number);
    return [low, high];
  }

  /**
   * The number that an output of a regression is.
   * @param {Float32Array} outputs
   */
  number([output]) {
    const [low, high] = this.range;
    return low + (high - low) * (output + 0.5);
  }

  /** @type {EncoderTask["predictions"]} */
  predictions(rows) {
    const outputs = this.outputs(rows);
    if (this.header.task === "regression") return ["number", [[0, null, null, null, [[written(this.number(outputs), ...this.range), 1]]]]];
    return ["label", [[0, null, null, null, likely(softmax(outputs.subarray(0, this.header.labels.length)), (i) => this.header.labels[i])]]];
  }

  /** @type {EncoderTask["outputOf"]} */
  outputOf([[, , , , [[text, p]]]]) {
    return this.header.task === "regression" ? text : `${text} ${p.toFixed(3)}`;
  }

  /**
   * The labels with their probabilities, the most probable first; for regression the number.
   * @param {{ text: string, pair?: string }} values
   */
  predict({ text, pair }) {
    const { labels, task } = this.header;
    const { ids, limit } = this.encode(text, pair);
    const outputs = this.outputs(this.hidden(ids[0], ids[1]));
    if (task === "regression") return { result: [{ label: "number", score: this.number(outputs) }], limit };
    const probabilities = softmax(outputs.subarray(0, labels.length));
    const rows = labels.map((label, i) => ({ label, score: probabilities[i] }));
    return { result: rows.sort((a, b) => b.score - a.score), limit };
  }
}
