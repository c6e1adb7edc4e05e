// Numbers in whole bytes (docs/WIRE.md, "Conventions").

import { doubleOf, floatBits, floatFromBits, highHalf, lowHalf } from "./floats.js";
import { join, rounded, TWO32, TWO53, unzigzag, unzigzagWide } from "./numbers.js";
import { outOfRange, refuse } from "./refusal.js";

/**
 * Reads bytes. As in BitReader, a number from 2^53 on is rounded, and wide() returns the exact
 * value. Every method throws a Refusal if the bytes end too early.
 */
export class ByteReader {
  at = 0;
  end = 0;
  bytes: Uint8Array = new Uint8Array(0);
  private hi = 0;
  private lo = 0;

  open(bytes: Uint8Array, from: number, end: number): void {
    this.bytes = bytes;
    this.at = from;
    this.end = end;
  }

  wide(): bigint {
    return join(this.hi, this.lo);
  }

  left(): number {
    return this.end - this.at;
  }

  /** Advances by n bytes, and returns their position. */
  skip(n: number): number {
    const at = this.at;
    if (n > this.end - at) {
      refuse("unexpected end");
    }
    this.at = at + n;
    return at;
  }

  u8(): number {
    return this.bytes[this.skip(1)];
  }

  u32(): number {
    const b = this.bytes;
    const i = this.skip(4);
    return (b[i] | (b[i + 1] << 8) | (b[i + 2] << 16) | (b[i + 3] << 24)) >>> 0;
  }

  f32(): number {
    return floatFromBits(this.u32());
  }

  f64(): number {
    const lo = this.u32();
    return doubleOf(lo, this.u32());
  }

  uvarint(): number {
    const first = this.u8();
    if (first < 0x80) {
      return first;
    }
    let lo = first & 0x7f;
    let hi = 0;
    for (let shift = 7; shift < 70; shift += 7) {
      const b = this.u8();
      if (shift === 63 && b > 1) {
        break;
      }
      const seven = b & 0x7f;
      if (shift < 32) {
        lo |= seven << shift;
      }
      if (shift > 25) {
        hi |= shift < 32 ? seven >>> (32 - shift) : seven << (shift - 32);
      }
      if (b < 0x80) {
        this.lo = lo >>> 0;
        this.hi = hi >>> 0;
        return this.hi * TWO32 + this.lo;
      }
    }
    return outOfRange();
  }

  /** Reads a signed number up to 2^53 either way, and refuses others. */
  zigzag(): number {
    const n = this.uvarint();
    if (n < TWO53) {
      return unzigzag(n);
    }
    const wide = rounded(unzigzagWide(this.wide()));
    return Math.abs(wide) <= TWO53 ? wide : outOfRange();
  }

  /** A copy of n bytes. */
  copy(n: number): Uint8Array {
    const at = this.skip(n);
    return this.bytes.slice(at, at + n);
  }
}

/** Writes bytes, into memory that is used again after reset. */
export class ByteWriter {
  bytes: Uint8Array;
  length = 0;

  constructor(capacity = 256) {
    this.bytes = new Uint8Array(capacity);
  }

  reset(): this {
    this.length = 0;
    return this;
  }

  /** A copy of the written bytes. */
  done(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }

  /** Reserves n bytes, and returns their position. */
  grow(n: number): number {
    const at = this.length;
    this.length = at + n;
    if (this.length > this.bytes.length) {
      const more = new Uint8Array(2 * this.length);
      more.set(this.bytes.subarray(0, at));
      this.bytes = more;
    }
    return at;
  }

  u8(n: number): void {
    const at = this.grow(1);
    this.bytes[at] = n;
  }

  u32(n: number): void {
    const at = this.grow(4);
    this.bytes[at] = n;
    this.bytes[at + 1] = n >>> 8;
    this.bytes[at + 2] = n >>> 16;
    this.bytes[at + 3] = n >>> 24;
  }

  f32(n: number): void {
    this.u32(floatBits(n));
  }

  f64(n: number): void {
    this.u32(lowHalf(n));
    this.u32(highHalf(n));
  }

  /** A whole number from 0 to 2^53. */
  uvarint(n: number): void {
    while (n >= 0x80) {
      this.u8((n % 0x80) | 0x80);
      n = Math.floor(n / 0x80);
    }
    this.u8(n);
  }

  uvarintWide(n: bigint): void {
    while (n >= 0x80n) {
      this.u8(Number(n & 0x7fn) | 0x80);
      n >>= 7n;
    }
    this.u8(Number(n));
  }

  raw(bytes: Uint8Array): void {
    const at = this.grow(bytes.length);
    this.bytes.set(bytes, at);
  }
}

/** Reports whether bytes are equal. */
export function same(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
