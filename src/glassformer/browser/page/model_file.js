// The file of a model: its length, a header in JSON, and tables. Counterpart: browser/model_file.py.

const LENGTH = 8; // bytes of the length of the header

/** The sum of zlib.adler32 of bytes that come in parts. */
class Checksum {
  constructor() {
    this.a = 1;
    this.b = 0;
  }

  /** @param {Uint8Array} bytes */
  add(bytes) {
    let { a, b } = this;
    for (let i = 0; i < bytes.length;) { // the sums are less than 2 ** 31: integers are faster
      for (const end = Math.min(bytes.length, i + 3600); i < end; i += 1) b += a += bytes[i];
      a %= 65521;
      b %= 65521;
    }
    Object.assign(this, { a, b });
  }

  get value() {
    return this.b * 65536 + this.a;
  }
}

/** @param {Bytes} first @param {Bytes} second */
function joined(first, second) {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

/**
 * The bytes of a response, as they come.
 * @param {Response} response
 */
async function* partsOf(response) {
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
}

/**
 * The header of a model file, and the address of its tables in the memory of the kernels.
 * @param {Kernels} kernels
 * @param {Iterable<Bytes> | AsyncIterable<Bytes>} parts its bytes, in parts, which are copied as they come
 * @param {number} size number of bytes
 * @param {number} sum their checksum
 * @param {(n: number) => void} [progress] called with the number of bytes that have come
 * @returns {Promise<{ header: Header, base: number }>}
 */
export async function received(kernels, parts, size, sum, progress) {
  const checksum = new Checksum();
  let beginning = new Uint8Array(0); // up to the end of the header
  let [n, start, base, header] = [0, 0, 0, undefined];
  for await (const part of parts) {
    if (n + part.length > size) throw new RangeError("more bytes than there should be");
    checksum.add(part);
    if (header) kernels.bytes(base + n - start, part.length).set(part);
    else {
      beginning = beginning.length ? joined(beginning, part) : part;
      start = beginning.length < LENGTH ? Infinity : LENGTH + Number(new DataView(beginning.buffer, beginning.byteOffset).getBigUint64(0, true));
      if (beginning.length >= start) {
        header = JSON.parse(new TextDecoder().decode(beginning.subarray(LENGTH, start)));
        base = kernels.allocate(size - start);
        kernels.bytes(base, beginning.length - start).set(beginning.subarray(start));
      }
    }
    n += part.length;
    progress?.(n);
  }
  if (!header || n < size || checksum.value !== sum) throw new RangeError("fewer or other bytes than there should be");
  return { header, base };
}

/**
 * The same of a file on a server.
 * @param {Kernels} kernels @param {string} url @param {number} size @param {number} sum
 * @param {(n: number) => void} progress
 */
export async function fetched(kernels, url, size, sum, progress) {
  const response = await fetch(url);
  if (!response.ok) throw new TypeError(`status ${response.status}`); // as without a server
  return received(kernels, partsOf(response), size, sum, progress);
}
