// The file of a model: its length, a header in JSON, and tables. Counterpart: browser/model_file.py.

const LENGTH = 8; // bytes of the length of the header

/** The sum of zlib.adler32 of bytes that come in parts. */
export class Checksum {
  constructor() {
    [this.a, this.b] = [1, 0];
  }

  add(bytes) {
    for (let i = 0; i < bytes.length;) {
      for (const end = Math.min(bytes.length, i + 3800); i < end; i += 1) this.b += this.a += bytes[i];
      this.a %= 65521;
      this.b %= 65521;
    }
    return this;
  }

  get value() {
    return this.b * 65536 + this.a;
  }
}

function joined(first, second) {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

/** The bytes of a response, as they come. */
async function* partsOf(response) {
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
}

/**
 * The header of a model file, and the address of its tables in the memory of the kernels.
 * @param parts its bytes, in parts
 * @param size number of bytes
 * @param sum their checksum
 * @param progress called with the number of bytes that have come
 */
export async function received(kernels, parts, size, sum, progress) {
  const checksum = new Checksum();
  let beginning = new Uint8Array(0);
  let [n, header] = [0, undefined];
  const tables = (async function* after() {
    for await (const part of parts) {
      checksum.add(part);
      progress?.(n += part.length);
      if (header) {
        yield part;
        continue;
      }
      beginning = beginning.length ? joined(beginning, part) : part;
      const end = beginning.length < LENGTH ? Infinity : LENGTH + Number(new DataView(beginning.buffer, beginning.byteOffset).getBigUint64(0, true));
      if (beginning.length < end) continue;
      header = JSON.parse(new TextDecoder().decode(beginning.subarray(LENGTH, end)));
      yield beginning.subarray(end);
    }
  })();
  const first = await tables.next();
  if (!header) throw new RangeError("no header");
  const rest = (async function* all() {
    yield first.value;
    yield* tables;
  })();
  const base = await kernels.receive(rest, size - beginning.length + first.value.length);
  if (checksum.value !== sum) throw new RangeError("another checksum");
  return { header, base };
}

/** The same of a file on a server. */
export async function fetched(kernels, url, size, sum, progress) {
  const response = await fetch(url);
  if (!response.ok) throw new TypeError(`status ${response.status}`); // as without a server
  return received(kernels, partsOf(response), size, sum, progress);
}
