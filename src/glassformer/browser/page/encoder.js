// An encoder and its head. Counterpart: runtime/encoder.py.

import { Tables, fill, headsOff, padded, range } from "./kernels.js";

export class Encoder extends Tables {
  /** @param {Kernels} kernels @param {Header} header @param {number} base */
  constructor(kernels, header, base) {
    super(kernels, header, base);
    this.encoder = this.program("encode");
    this.sourceReader = this.program("read_source"); // keeps queries, keys and values
    this.caches = header.encode.cache_widths.flatMap((width) => [0, 1].map(() => kernels.allocate(2 * header.max_len * padded(width))));
    if (header.head) this.head = this.program("head");
    if (header.lens) this.lens = this.program("lens"); // normalizes the output of any layer
  }

  /**
   * Execute a program for all tokens of a text.
   * @param {Program} program @param {number[]} ids @param {number[]} types
   */
  read(program, ids, types) {
    const n = ids.length;
    const slots = range(n);
    const own = fill(n, n);
    program.run({
      ids: Int32Array.from(ids), positions: slots, types: Int32Array.from(types, (type) => Math.min(type, this.header.max_type)), slots,
      lists: [slots, slots], begins: [fill(n, 0), fill(n, 0)], lengths: [own, own],
    }, this.caches);
  }

  /**
   * Output of the last layer for each token.
   * @param {number[]} ids @param {number[]} types
   */
  hidden(ids, types) {
    this.read(this.encoder, ids, types);
    return Array.from(ids, (_, i) => this.encoder.result(i));
  }

  /**
   * From now on, the outputs of some heads are 0: rows of kind of attention, layer and head.
   * @param {HeadOff[]} off
   */
  switchOff(off) {
    for (const program of [this.encoder, this.sourceReader]) program.switchOff(headsOff(this.header.read_source, off));
  }

  /**
   * Outputs of the head for rows of features.
   * @param {Float32Array[]} rows
   */
  outputs(rows) {
    return this.head.apply(rows);
  }
}
