// Sets of numbers that reach a window below the newest: which state packets have arrived, and which
// datagrams were seen before.

import { varintSize, Writer } from "../wire/protobuf.js";

const WINDOW = 1024;
const MAX_RUNS = 63;

/** The numbers of the last 1 024 that were put in. */
class Recent {
  newest = 0;
  protected bits = new Uint32Array(WINDOW / 32);

  protected raise(n: number): void {
    if (n - this.newest >= WINDOW) this.bits.fill(0);
    else for (let i = this.newest + 1; i <= n; i++) this.bits[(i % WINDOW) >> 5]! &= ~(1 << i % 32);
    this.newest = n;
  }

  /** Puts in a number within reach, and reports whether it was not there. */
  protected mark(n: number): boolean {
    const i = (n % WINDOW) >> 5;
    const bit = 1 << n % 32;
    const was = this.bits[i]! & bit;
    this.bits[i]! |= bit;
    return was === 0;
  }

  protected has(n: number): boolean {
    return (this.bits[(n % WINDOW) >> 5]! & (1 << n % 32)) !== 0;
  }
}

/** Recognises datagrams that were seen before, or that are too old to tell. */
export class Duplicates extends Recent {
  fresh(n: number): boolean {
    if (n > this.newest) this.raise(n);
    else if (this.newest - n >= WINDOW) return false;
    return this.mark(n);
  }
}

/** The state packets to be acknowledged. */
export class Acks extends Recent {
  private any = false;
  private runs = new Uint32Array(MAX_RUNS);

  /** Puts a packet in, and reports whether that changed anything. */
  add(id: number): boolean {
    if (!this.any) {
      this.any = true;
      this.newest = id;
    } else if (id > this.newest) this.raise(id);
    else if (this.newest - id >= WINDOW) return false;
    return this.mark(id);
  }

  /** Writes the field of the datagram: the lengths of runs, from the newest downwards. */
  write(w: Writer, field: number): void {
    if (!this.any) return;
    let left = Math.min(WINDOW, this.newest + 1);
    let n = 0;
    let size = 0;
    for (let id = this.newest, arrived = true; n < MAX_RUNS && left > 0; n++, arrived = !arrived) {
      let k = 0;
      while (k < left && this.has(id - k) === arrived) k++;
      this.runs[n] = k;
      size += varintSize(k);
      left -= k;
      id -= k;
    }
    if (n % 2 === 0) size -= varintSize(this.runs[--n]!); // The last run is of missing ones: it says nothing.
    const head = this.newest > 0 ? 1 + varintSize(this.newest) : 0;
    w.uvarint(field * 8 + 2);
    w.uvarint(head + 1 + varintSize(size) + size);
    w.number(1, this.newest);
    w.uvarint(2 * 8 + 2);
    w.uvarint(size);
    for (let i = 0; i < n; i++) w.uvarint(this.runs[i]!);
  }
}
