// A label or a number for a text or a pair of texts. Counterparts: tasks/classification.py, tasks/regression.py.

import { EncoderTask, mean, softmax } from "./encoder_task.js";

export class Labels extends EncoderTask {
  /** The labels with their probabilities, the most probable first; for regression the number. */
  predict({ text, pair }) {
    const { labels, pooling, task } = this.header;
    const { ids, limit } = this.encode(text, pair);
    const hidden = this.hidden(...ids);
    const [outputs] = this.encoder.outputs([pooling === "first" ? hidden[0] : mean(hidden)]);
    if (task === "regression") {
      const [low, high] = labels.map(Number);
      return { result: [{ label: "number", score: low + (high - low) * (outputs[0] + 0.5) }], limit };
    }
    const probabilities = softmax(outputs.subarray(0, labels.length));
    const rows = labels.map((label, i) => ({ label, score: probabilities[i] }));
    return { result: rows.sort((a, b) => b.score - a.score), limit };
  }
}
