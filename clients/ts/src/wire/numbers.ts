// Arithmetic on numbers of up to 64 bits. Most are below 2^53, and plain numbers hold those.

export const TWO32 = 0x1_0000_0000;

/** The first whole number above which numbers are no longer exact. */
export const TWO53 = 2 ** 53;

/** The number of bits of a whole number from 0 to 2^64. */
export function bitLength(n: number): number {
  return n < TWO32 ? 32 - Math.clz32(n) : 64 - Math.clz32(n / TWO32);
}

/** The signed number of a zigzag below 2^53. */
export function unzigzag(n: number): number {
  if (n < TWO32) {
    return (n >>> 1) ^ -(n & 1);
  }
  const half = Math.floor(n / 2);
  return half * 2 === n ? half : -half - 1;
}

/** The zigzag of a signed number, if it is below 2^53. */
export function zigzag(n: number): number {
  return n < 0 ? -2 * n - 1 : 2 * n;
}

/** unzigzag for any number of 64 bits. */
export function unzigzagWide(n: bigint): bigint {
  return (n >> 1n) ^ -(n & 1n);
}

/** zigzag for any signed number of 64 bits. */
export function zigzagWide(n: bigint): bigint {
  return BigInt.asUintN(64, (n << 1n) ^ (n >> 63n));
}

/** The number of bits of the absolute value of a bigint. */
export function bitLengthWide(n: bigint): number {
  const m = n < 0n ? -n : n;
  const hi = Number(m >> 32n);
  return hi > 0 ? 32 + bitLength(hi) : bitLength(Number(m & 0xffff_ffffn));
}

/** An unsigned number: a bigint only if it exceeds the exact range of numbers. */
export type Unsigned = number | bigint;

/** The number modulo 2^64. */
export function unsigned(n: bigint): Unsigned {
  const m = BigInt.asUintN(64, n);
  return m < 0x20_0000_0000_0000n ? Number(m) : m;
}

/** Two 32-bit halves, the higher first, as a bigint. */
export function join(hi: number, lo: number): bigint {
  return (BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0);
}

/** The number, or infinity beyond 2^53: rounding makes no number smaller. */
export function rounded(n: bigint): number {
  return n > 0x20_0000_0000_0000n ? Infinity : n < -0x20_0000_0000_0000n ? -Infinity : Number(n);
}
