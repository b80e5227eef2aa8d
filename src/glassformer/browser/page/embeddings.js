// The similarity of texts: the cosine of the means of their encoder outputs, or of those of their first tokens. Counterpart: tasks/feature_extraction.py.

import { EncoderTask, mean } from "./encoder_task.js";

export class SentenceEmbedder extends EncoderTask {
  /**
   * The similarity of a text to each of some others.
   * @param {{ text: string, others: string[] }} values
   */
  similarities({ text, others }) {
    let limit = null;
    const [first, ...vectors] = [text, ...others].map((each) => {
      const encoded = this.encode(each);
      limit ??= encoded.limit;
      const hidden = this.hidden(encoded.ids[0]);
      const vector = this.header.pooling === "first" ? hidden[0] : mean(hidden);
      const norm = Math.max(Math.hypot(...vector), 1e-12);
      return vector.map((x) => x / norm);
    });
    return { result: vectors.map((vector) => vector.reduce((sum, x, i) => sum + x * first[i], 0)), limit };
  }
}
