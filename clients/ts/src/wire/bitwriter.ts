// Writes numbers among bits (docs/WIRE.md, "Numbers of bits"). Inputs are small and few: all
// numbers that may have 64 bits are bigints here.

import { bitLengthWide } from "./numbers.js";

/** The number of bits of a number as a len. */
export function lenSize(v: bigint): number {
  const n = bitLengthWide(v);
  return gammaSize(BigInt(n + 1)) + Math.max(0, n - 1);
}

function gammaSize(v: bigint): number {
  return 2 * bitLengthWide(v) - 1;
}

/** The number of bits of a number as a rice of k. */
export function riceSize(v: bigint, k: number): number {
  const q = v >> BigInt(k);
  return q < 3n ? Number(q) + 1 + k : 3 + gammaSize(q - 2n) + k;
}

export class BitWriter {
  private bytes = new Uint8Array(256);
  /** The number of written bits. */
  length = 0;

  reset(): void {
    this.bytes.fill(0);
    this.length = 0;
  }

  /** A copy of the written bytes; zeros fill the last byte. */
  done(): Uint8Array {
    return this.bytes.slice(0, (this.length + 7) >> 3);
  }

  bit(b: boolean): void {
    this.bits(b ? 1 : 0, 1);
  }

  /** v:n, at most 32 bits. */
  bits(v: number, n: number): void {
    this.wide(BigInt(v >>> 0), n);
  }

  /** v:n of any number of bits. */
  wide(v: bigint, n: number): void {
    if (this.length + n > 8 * this.bytes.length) {
      const more = new Uint8Array(2 * this.bytes.length + (n >> 3));
      more.set(this.bytes);
      this.bytes = more;
    }
    for (let i = 0; i < n; i++, this.length++) {
      if ((v >> BigInt(i)) & 1n) {
        this.bytes[this.length >> 3] |= 1 << (this.length & 7);
      }
    }
  }

  private gamma(v: bigint): void {
    const n = bitLengthWide(v);
    this.wide(0n, n - 1);
    this.bits(1, 1);
    this.wide(v, n - 1);
  }

  len(v: number | bigint): void {
    const w = BigInt(v);
    const n = bitLengthWide(w);
    this.gamma(BigInt(n + 1));
    this.wide(w, Math.max(0, n - 1));
  }

  rice(v: number | bigint, k: number): void {
    const w = BigInt(v);
    const q = w >> BigInt(k);
    if (q < 3n) {
      const ones = Number(q);
      this.bits((1 << ones) - 1, ones + 1);
    } else {
      this.bits(7, 3);
      this.gamma(q - 2n);
    }
    this.wide(w, k);
  }

  raw(bytes: Uint8Array): void {
    for (const b of bytes) this.bits(b, 8);
  }
}
