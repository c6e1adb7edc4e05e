// Reads numbers among bits (docs/WIRE.md, "Numbers of bits").

import { join, TWO32, TWO53 } from "./numbers.js";
import { outOfRange, refuse } from "./refusal.js";

const SPARE = 8; // zeros behind the bytes, so that no read checks for the end

/**
 * Reads bits. Numbers are plain numbers; a number from 2^53 on is rounded, and wide() returns its
 * exact value. Every method throws a Refusal if the bits end too early.
 */
export class BitReader {
  /** The next bit, and the end of the bits. */
  at = 0;
  end = 0;
  private bytes = new Uint8Array(2048);
  /** The halves of the last number that was 2^53 or more. */
  hi = 0;
  lo = 0;

  /** Begins to read bytes from a position, of which the last few bits are padding. */
  open(bytes: Uint8Array, from: number, padding: number): void {
    const n = bytes.length - from;
    if (padding > n * 8) {
      refuse("too much padding");
    }
    if (n + SPARE > this.bytes.length) {
      this.bytes = new Uint8Array(2 * (n + SPARE));
    }
    for (let i = 0; i < n; i++) {
      this.bytes[i] = bytes[from + i];
    }
    this.bytes.fill(0, n, n + SPARE);
    this.at = 0;
    this.end = n * 8 - padding;
  }

  /** The exact value of the last number that was 2^53 or more. */
  wide(): bigint {
    return join(this.hi, this.lo);
  }

  /**
   * The next 30 bits, without advancing; bits behind the end are arbitrary. More bits would make
   * the number an object on engines that do not compile the code into one piece.
   */
  private peek(): number {
    const i = this.at >> 3;
    const s = this.at & 7;
    const b = this.bytes;
    const v = (b[i] | (b[i + 1] << 8) | (b[i + 2] << 16) | (b[i + 3] << 24)) >>> s;
    return (s < 3 ? v : v | (b[i + 4] << (32 - s))) & 0x3fff_ffff;
  }

  private skip(n: number): void {
    this.at += n;
    if (this.at > this.end) {
      refuse("unexpected end");
    }
  }

  bit(): boolean {
    const at = this.at;
    this.skip(1);
    return ((this.bytes[at >> 3] >> (at & 7)) & 1) === 1;
  }

  /** v:n, at most 32 bits. */
  bits(n: number): number {
    if (n > 30) {
      const low = this.bits(16);
      return (low | (this.bits(n - 16) << 16)) >>> 0;
    }
    const v = this.peek();
    this.skip(n);
    return v & ((1 << n) - 1);
  }

  /** v:n, at most 64 bits. */
  private take(n: number): number {
    this.lo = this.bits(Math.min(n, 32));
    this.hi = n > 32 ? this.bits(n - 32) : 0;
    return this.hi * TWO32 + this.lo;
  }

  /** A one above n bits that follow. */
  private withTop(n: number): number {
    if (n < 30) {
      return (1 << n) | this.bits(n);
    }
    this.take(n);
    if (n < 32) {
      this.lo = (this.lo | (1 << n)) >>> 0;
    } else {
      this.hi = (this.hi | (1 << (n - 32))) >>> 0;
    }
    return this.hi * TWO32 + this.lo;
  }

  private gamma(): number {
    let zeros = 0;
    for (;;) {
      const v = this.peek();
      const more = v === 0 ? 30 : 31 - Math.clz32(v & -v);
      zeros += more;
      if (zeros > 63) {
        outOfRange();
      }
      if (more < 30) {
        this.skip(more + 1);
        break;
      }
      this.skip(30);
    }
    return this.withTop(zeros);
  }

  /** Reads a number of any size (len). */
  len(): number {
    const n = this.gamma() - 1;
    if (n === 0) {
      return 0;
    }
    if (n > 64) {
      outOfRange();
    }
    return this.withTop(n - 1);
  }

  /** Reads a number of about k bits, k at most 40. */
  rice(k: number): number {
    const three = this.peek() & 7;
    if (three !== 7) {
      const q = (three & 1) === 0 ? 0 : (three & 2) === 0 ? 1 : 2;
      this.skip(q + 1);
      if (k < 28) {
        return (q << k) | this.bits(k);
      }
      return q * 2 ** k + this.take(k);
    }
    this.skip(3);
    const above = this.gamma();
    const exact = above >= TWO53 ? this.wide() : BigInt(0);
    const low = this.take(k);
    if (above < TWO53 && (above + 2) * 2 ** k + low < TWO53) {
      return (above + 2) * 2 ** k + low;
    }
    const high = above < TWO53 ? BigInt(above) : exact;
    const v = ((high + 2n) << BigInt(k)) + BigInt(low);
    if (v >> 64n !== 0n) {
      outOfRange();
    }
    this.hi = Number(v >> 32n);
    this.lo = Number(v & 0xffff_ffffn);
    return Number(v);
  }

  /** Copies n bytes from the bits. */
  copy(into: Uint8Array, n: number): void {
    if (n > (this.end - this.at) / 8) {
      refuse("unexpected end");
    }
    for (let i = 0; i < n; i++) {
      into[i] = this.peek();
      this.at += 8;
    }
  }
}
