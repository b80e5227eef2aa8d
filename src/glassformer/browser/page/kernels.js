// The kernels in WebAssembly: which build this browser computes exactly, memory, and programs. Counterpart: kernels/program.py.

export const KIND = { SCALE: 1, PRODUCT: 9, ATTEND: 10, BEST: 11 };

const PANEL = 64; // widths of buffers are multiples of it
const PIECES = 16; // parts of the vocabulary in BEST
const SIZES = { op: 76, program: 88, rows: 56, phase: 64 }; // bytes of the structures in program.h
const PAGE = 65536;
/** @type {number[]} */
const NO_CACHES = [];

/**
 * n times a number, and the numbers from 0 to n - 1: arrays that a program reads.
 * @param {number} n @param {number} value
 */
export const fill = (n, value) => new Int32Array(n).fill(value);
/** @param {number} n */
export const range = (n) => Int32Array.from({ length: n }, (_, i) => i);

/** @param {number} n */
export function padded(n) {
  return Math.ceil(n / PANEL) * PANEL;
}

/**
 * A module that returns the first sum of the relaxed product of 16 bytes a and 16 bytes b, with b as those of 7 bits.
 * @param {number} a @param {number} b @returns {number}
 */
function relaxedProduct(a, b) {
  const constant = (x) => [0xfd, 0x0c, ...new Array(16).fill(x)];
  const code = [0, ...constant(a), ...constant(b), ...constant(0), 0xfd, 0x93, 0x02, 0xfd, 0x1b, 0, 0x0b];
  const header = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7f, 3, 2, 1, 0, 7, 5, 1, 1, 0x66, 0, 0];
  const bytes = new Uint8Array([...header, 10, code.length + 2, 1, code.length, ...code]);
  const { f } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;
  return /** @type {Function} */ (f)();
}

/** The builds that this browser computes exactly, the fastest first. What the relaxed product does with bytes above 127 differs. */
export function exactBuilds() {
  const builds = [];
  try {
    const [plus, minus, both] = [relaxedProduct(127, 255), relaxedProduct(0x81, 255), relaxedProduct(0x81, 0x81)];
    if (plus === 4 * 127 * 255 && minus === -4 * 127 * 255) builds.push("relaxed");
    if (plus === -4 * 127 && minus === 4 * 127 && both === 4 * 127 * 127) builds.push("signed");
  } catch { /* no relaxed SIMD */ }
  return [...builds, "simd"];
}

export class OutOfMemory extends Error {}

export class Kernels {
  /** @param {BufferSource} bytes the module */
  constructor(bytes) {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), {});
    this.exports = /** @type {KernelExports} */ (/** @type {unknown} */ (exports));
    this.memory = this.exports.memory;
    this.top = this.exports.__heap_base.value;
    Object.values(SIZES).forEach((size, i) => {
      if (this.exports.size_of(i) !== size) throw new Error("the kernels of this page have other structures");
    });
  }

  /**
   * Memory for n bytes of zeros, at a multiple of 64, which is never freed.
   * @param {number} n
   */
  allocate(n) {
    const at = Math.ceil(this.top / 64) * 64;
    const missing = at + n - this.memory.buffer.byteLength;
    if (missing > 0) {
      try {
        this.memory.grow(Math.ceil(missing / PAGE));
      } catch {
        throw new OutOfMemory();
      }
    }
    this.top = at + n;
    return at;
  }

  /** @param {number} at @param {number} n */
  ints(at, n) { return new Int32Array(this.memory.buffer, at, n); }
  /** @param {number} at @param {number} n */
  longs(at, n) { return new BigInt64Array(this.memory.buffer, at, n); }
  /** @param {number} at @param {number} n */
  floats(at, n) { return new Float32Array(this.memory.buffer, at, n); }
  /** @param {number} at @param {number} n */
  bytes(at, n) { return new Uint8Array(this.memory.buffer, at, n); }
  /** @param {number} at @param {number} n */
  halves(at, n) { return new Uint16Array(this.memory.buffer, at, n); }

  /**
   * A copy of an array in this memory. Returns its address.
   * @param {Int32Array | BigInt64Array} array
   */
  copy(array) {
    const at = this.allocate(array.byteLength);
    this.bytes(at, array.byteLength).set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return at;
  }

  /** @param {number[]} addresses */
  pointers(addresses) {
    return this.copy(Int32Array.from(addresses.length ? addresses : [0]));
  }
}

/**
 * For each attention of a program that reads, the heads that are switched off.
 * @param {ReadingRecord} record @param {HeadOff[]} off
 */
export function headsOff({ attentions }, off) {
  return attentions.map(({ kind, layer }) => off.filter(([otherKind, otherLayer]) => kind === otherKind && layer === otherLayer).map(([, , head]) => head));
}

/** Base class of models: a header, and the address of the tables of its programs. `switchOff` sets heads whose outputs are 0 from then on. */
export class Tables {
  /** @param {Kernels} kernels @param {Header} header @param {number} base */
  constructor(kernels, header, base) {
    this.kernels = kernels;
    this.header = header;
    this.base = base;
  }

  /** @param {string} name @returns {Program} */
  program(name) {
    return new Program(this.kernels, this.header[name], this.base);
  }

  /**
   * A table of floats.
   * @param {number} offset @param {number} n
   */
  floats(offset, n) {
    return this.kernels.floats(this.base + offset, n);
  }

  /**
   * Execute something while the outputs of some heads are 0: rows of kind of attention, layer and head.
   * @template T @param {HeadOff[]} off @param {() => T} act
   */
  without(off, act) {
    this.switchOff(off);
    try {
      return act();
    } finally {
      this.switchOff([]);
    }
  }
}

/** A program that can be executed for any number of rows. */
export class Program {
  /**
   * @param {Kernels} kernels
   * @param {ProgramRecord & Partial<ReadingRecord>} record the program in the header of the model
   * @param {number} base address of the tables
   */
  constructor(kernels, record, base) {
    this.kernels = kernels;
    this.record = record;
    this.base = base;
    this.capacity = 0;
    /** @type {Map<string, [at: number, size: number]>} */
    this.kept = new Map();
    this.off = "";
    const { instructions, widths, cache_widths: cacheWidths } = record;
    this.write(instructions);
    /** @param {number[]} numbers */
    const longs = (numbers) => kernels.copy(BigInt64Array.from(numbers.length ? numbers : [0], (x) => BigInt(padded(x))));
    this.strides = longs(widths);
    this.cacheStrides = longs(cacheWidths);
    this.program = kernels.allocate(SIZES.program);
    this.rows = kernels.allocate(SIZES.rows);
    this.attentions = instructions.filter((x) => x.kind === KIND.ATTEND);
  }

  /**
   * The operations that a run executes.
   * @param {Instruction[]} instructions
   */
  write(instructions) {
    const { kernels, base } = this;
    const n = instructions.length;
    const ops = this.reserve("ops", SIZES.op * n);
    this.phases = this.reserve("phases", SIZES.phase * 2 * (n + 1));
    this.ops = ops;
    this.nOps = n;
    instructions.forEach((x, i) => {
      const at = ops + SIZES.op * i;
      const fields = kernels.ints(at, SIZES.op / 4);
      fields.fill(0).set([x.kind, x.out[0], x.a[0], x.b[0], x.out[1], x.a[1], x.b[1], x.n, x.m, x.option, x.cache]);
      kernels.floats(at + 44, 1)[0] = x.number;
      fields.set([x.group, x.reach, x.activation], 12);
      x.tables.forEach((offset, j) => { fields[15 + j] = offset < 0 ? 0 : base + offset; });
    });
  }

  /**
   * From now on, the outputs of some heads are 0. `heads`: for each attention, in their order, the indices of these
   * heads.
   * @param {number[][]} heads
   */
  switchOff(heads) {
    const wanted = heads.flat().length ? JSON.stringify(heads) : "";
    if (wanted === this.off) return;
    this.off = wanted;
    let i = 0;
    this.write(this.record.instructions.flatMap((x) => {
      if (x.kind !== KIND.ATTEND) return [x];
      /** @param {number} head @returns {Instruction} */
      const zero = (head) => ({ ...x, kind: KIND.SCALE, a: [x.out[0], x.out[1] + head * x.m], out: [x.out[0], x.out[1] + head * x.m], b: [-1, 0], n: x.m, number: 0, tables: [-1, -1, -1, -1] });
      return [x, ...heads[i++].map(zero)];
    }));
  }

  /**
   * Memory for n bytes, kept for the next call.
   * @param {string} name @param {number} n
   */
  reserve(name, n) {
    const [at, size] = this.kept.get(name) ?? [0, -1];
    if (n <= size) return at;
    /** @type {[number, number]} */
    const larger = [this.kernels.allocate(2 * n), 2 * n];
    this.kept.set(name, larger);
    return larger[0];
  }

  /**
   * Execute the program.
   * @param {Batch} batch ids, positions, types and slots of the rows; lists, begins and lengths of self-attention and
   *   cross-attention
   * @param {number[]} caches addresses of keys and values, in halves: the same array as long as they are the same
   * @param k number of most probable tokens, if the program ends with BEST
   * @returns their log-probabilities and ids, [rows, k]
   */
  run(batch, caches, k = 0) {
    const { kernels, record } = this;
    const n = batch.ids.length;
    if (n > this.capacity) {
      const capacity = Math.max(n, 2 * this.capacity);
      const buffers = record.widths.map((width) => kernels.allocate(4 * capacity * padded(width)));
      this.bufferList = kernels.pointers(buffers);
      this.buffers = buffers; // only if there was memory for all
      this.capacity = capacity;
    }
    if (this.caches !== caches) {
      this.cacheList = kernels.pointers(caches);
      this.caches = caches;
    }
    const longest = batch.lengths.flatMap((lengths) => [...lengths]).reduce((a, b) => Math.max(a, b), 0);
    const scores = this.attentions.map(({ n: width, m }) => (width / m) * (longest + 16 + m + 16)); // see attention.h
    const scratchSize = padded(Math.max(0, ...scores));
    const scratch = this.reserve("scratch", 4 * scratchSize);
    const workspace = this.reserve("workspace", 4 * n * PIECES * (2 * 16 + 2 * k));
    const arrays = [batch.ids, batch.positions, batch.slots, ...batch.lists, ...batch.begins, ...batch.lengths];
    let at = this.reserve("rows", 4 * (arrays.reduce((sum, array) => sum + array.length, 0) + n * (2 * k + 2)));
    /** @param {Int32Array} array */
    const put = (array) => {
      kernels.ints(at, array.length).set(array);
      at += 4 * array.length;
      return at - 4 * array.length;
    };
    const [ids, positions, slots, ...parts] = arrays.map(put);
    const types = batch.types ? put(batch.types) : ids; // no program without types reads them
    const [least, best, bestIds] = [at, at + 4 * n, at + 4 * n * (1 + k)];
    kernels.floats(least, n).fill(-Infinity);
    kernels.longs(this.program, 5).set([this.nOps, record.widths.length, k, scratchSize, 1].map(BigInt));
    const { ops, bufferList, strides, cacheList, cacheStrides, phases } = this;
    kernels.ints(this.program + 40, 11)
      .set([ops, bufferList, strides, cacheList, cacheStrides, phases, scratch, workspace, least, best, bestIds]);
    kernels.longs(this.rows, 1)[0] = BigInt(n);
    kernels.ints(this.rows + 8, 12).set([ids, positions, types, slots, ...parts, 0, 0]);
    kernels.exports.run(this.program, this.rows);
    return { logProbs: kernels.floats(best, n * k).slice(), ids: kernels.ints(bestIds, n * k).slice() };
  }

  /**
   * The rows of the result of a program that begins with rows of floats.
   * @param {ArrayLike<number>[]} rows
   */
  apply(rows) {
    this.begin(rows);
    return Array.from(rows, (_, i) => this.result(i));
  }

  /**
   * Execute a program that begins with rows of floats, which become the third table of its first operation.
   * @param {ArrayLike<number>[]} rows
   */
  begin(rows) {
    const n = rows.length;
    if (!n) return;
    const width = this.record.instructions[0].n;
    const stride = Math.ceil(width / 16) * 16;
    const table = this.reserve("table", 4 * stride * n);
    rows.forEach((row, i) => this.kernels.floats(table + 4 * stride * i, width).set(row));
    this.kernels.ints(this.ops + 60 + 4 * 2, 1)[0] = table;
    const [numbers, zeros] = [range(n), fill(n, 0)];
    this.run({ ids: numbers, positions: zeros, types: zeros, slots: zeros, lists: [zeros, zeros], begins: [zeros, zeros], lengths: [zeros, zeros] }, NO_CACHES);
  }

  /**
   * A copy of a row of the result.
   * @param {number} row
   */
  result(row) {
    return this.row(this.lastBuffer, row);
  }

  /**
   * The first n logits in a row of the result, until the next call, and the logarithm of the sum of their exponentials.
   * @param {number} row @param {number} n
   * @returns {[logits: Float32Array, logSum: number]}
   */
  logits(row, n) {
    const at = this.resultAt(row);
    return [this.kernels.floats(at, n), this.kernels.exports.log_sum_exp(at, n)];
  }

  /**
   * The k largest of the first n logits in a row of the result, with their ids, the largest first.
   * @param {number} row @param {number} n @param {number} k
   * @returns {[id: number, logit: number][]}
   */
  largest(row, n, k) {
    const values = this.reserve("largest", 8 * k);
    this.kernels.exports.largest(this.resultAt(row), n, k, values, values + 4 * k);
    const [logits, ids] = [this.kernels.floats(values, k), this.kernels.ints(values + 4 * k, k)];
    return Array.from({ length: Math.min(n, k) }, (_, i) => [ids[i], logits[i]]);
  }

  /**
   * How many of the first n logits in a row of the result are larger than a number.
   * @param {number} row @param {number} n @param {number} than
   */
  nLarger(row, n, than) {
    return this.kernels.exports.n_larger(this.resultAt(row), n, than);
  }

  /** @param {number} row */
  resultAt(row) {
    return this.buffers[this.lastBuffer] + 4 * row * padded(this.record.widths[this.lastBuffer]);
  }

  get lastBuffer() {
    return this.record.instructions.at(-1).out[0];
  }

  /**
   * A copy of a row of a buffer after a run.
   * @param {number} buffer @param {number} row
   */
  row(buffer, row) {
    const width = this.record.widths[buffer];
    return this.kernels.floats(this.buffers[buffer] + 4 * row * padded(width), width).slice();
  }
}
