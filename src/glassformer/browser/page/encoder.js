// An encoder and its head. Counterpart: runtime/encoder.py.

import { Program, fill, padded, range } from "./kernels.js";

export class Encoder {
  constructor(kernels, header, tables) {
    const base = kernels.copy(tables);
    Object.assign(this, { kernels, header, program: new Program(kernels, header.encode, base) });
    this.caches = header.encode.cache_widths.flatMap((width) => [0, 1].map(() => kernels.allocate(2 * header.max_len * padded(width))));
    if (header.head) this.head = new Program(kernels, header.head, base);
  }

  /** Output of the last layer for each token. */
  hidden(ids, types) {
    const n = ids.length;
    const slots = range(n);
    const own = fill(n, n);
    this.program.run({
      ids: Int32Array.from(ids), positions: slots, types: Int32Array.from(types, (type) => Math.min(type, this.header.max_type)), slots,
      lists: [slots, slots], begins: [fill(n, 0), fill(n, 0)], lengths: [own, own],
    }, this.caches);
    return Array.from({ length: n }, (_, i) => this.program.result(i));
  }

  /** Outputs of the head for rows of features. */
  outputs(rows) {
    return this.head.apply(rows);
  }
}
