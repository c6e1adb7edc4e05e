// Quaternions as the smallest three (docs/WIRE.md, "Quaternions"). In cells they are four numbers:
// the index of the largest component, -1 for no rotation, and the steps of the others.

import type { ByteReader, ByteWriter } from "../wire/bytes.js";
import { outOfRange, refuse } from "../wire/refusal.js";
import type { Leaf } from "./layout.js";

/** The square of the largest component, computed from the steps of the others. */
function rest(m: number, a: number, b: number, c: number): number {
  return 2 * m * m - a * a - b * b - c * c;
}

/**
 * Refuses steps that no writer sends. The steps are in n from at + 1 on, after the index of the
 * largest.
 */
export function checkQuat(l: Leaf, n: Float64Array, at: number): void {
  const r = rest(l.m, n[at + 1], n[at + 2], n[at + 3]);
  for (let i = 0; i < 3; i++) {
    const s = Math.abs(n[at + 1 + i]);
    if (s > l.m || s * s > r || (i < n[at] && s * s + s >= r)) {
      refuse("not a rotation");
    }
  }
}

/** Stores the four fields of a word; its steps are still M + 1 too high. */
function store(l: Leaf, n: Float64Array, at: number, largest: number, a: number, b: number, c: number): void {
  if (largest === 0 && a === 0 && b === 0 && c === 0) {
    clearQuat(n, at);
    return;
  }
  const middle = l.m + 1;
  n[at] = largest;
  n[at + 1] = a - middle;
  n[at + 2] = b - middle;
  n[at + 3] = c - middle;
  checkQuat(l, n, at);
}

/** Stores no rotation. */
export function clearQuat(n: Float64Array, at: number): void {
  n[at] = -1;
  n[at + 1] = n[at + 2] = n[at + 3] = 0;
}

/** The number of bytes of a word. */
function sizeOf(l: Leaf): number {
  return (3 * l.bits + 2 + 7) >> 3;
}

/** Reads a word in whole bytes. */
export function readQuat(r: ByteReader, l: Leaf, n: Float64Array, at: number): void {
  const size = sizeOf(l);
  const from = r.skip(size);
  let word = 0n;
  for (let i = size - 1; i >= 0; i--) {
    word = (word << 8n) | BigInt(r.bytes[from + i]);
  }
  setWord(l, n, at, word);
}

/** Stores a word. */
export function setWord(l: Leaf, n: Float64Array, at: number, word: bigint): void {
  const bits = BigInt(l.bits);
  const part = (i: bigint) => Number((word >> (bits * i)) & ((1n << bits) - 1n));
  const largest = word >> (3n * bits);
  if (largest > 3n) {
    outOfRange();
  }
  store(l, n, at, Number(largest), part(2n), part(1n), part(0n));
}

/** A reader of v:n among bits. */
interface Bits {
  bits(n: number): number;
}

/** Reads a word among bits. */
export function readWord(r: Bits, l: Leaf, n: Float64Array, at: number): void {
  const c = r.bits(l.bits);
  const b = r.bits(l.bits);
  const a = r.bits(l.bits);
  store(l, n, at, r.bits(2), a, b, c);
}

/** Writes the word in whole bytes, the lowest first. */
export function writeQuat(w: ByteWriter, l: Leaf, n: Float64Array, at: number): void {
  let word = wordOf(l, n, at);
  for (let left = sizeOf(l); left > 0; left--, word >>= 8n) {
    w.u8(Number(word & 0xffn));
  }
}

/** The word as a number. */
export function wordOf(l: Leaf, n: Float64Array, at: number): bigint {
  if (n[at] < 0) {
    return 0n;
  }
  let word = BigInt(n[at]);
  for (let i = 1; i < 4; i++) {
    word = (word << BigInt(l.bits)) | BigInt(n[at + i] + l.m + 1);
  }
  return word;
}

/** Applies an edit's difference to the stored quaternion. */
export function editQuat(l: Leaf, n: Float64Array, at: number, difference: bigint): void {
  if ((difference & 1n) === 1n) {
    setWord(l, n, at, difference >> 1n);
    return;
  }
  if (n[at] < 0) {
    refuse("not a rotation");
  }
  for (let k = 0; k < 3; k++) {
    let d = 0;
    for (let i = 0; i < 21; i++) {
      d |= Number((difference >> BigInt(1 + 3 * i + k)) & 1n) << i;
    }
    n[at + 1 + k] += (d >>> 1) ^ -(d & 1);
  }
  checkQuat(l, n, at);
}

/** Four floats of a rotation, rounded as on the server. */
export function unitOf(l: Leaf, n: Float64Array, at: number, into: { [i: number]: number }, from: number): void {
  const largest = n[at];
  if (largest < 0) {
    into[from] = into[from + 1] = into[from + 2] = into[from + 3] = 0;
    return;
  }
  const unit = Math.sqrt(2 * l.m * l.m);
  for (let i = 0, j = 1; i < 4; i++) {
    into[from + i] = Math.fround((i === largest ? Math.sqrt(rest(l.m, n[at + 1], n[at + 2], n[at + 3])) : n[at + j++]) / unit);
  }
}

/** Stores the steps of four floats, as a writer does. */
export function packQuat(l: Leaf, q: ArrayLike<number>, n: Float64Array, at: number): void {
  let norm = 0;
  let largest = 0;
  for (let i = 0; i < 4; i++) {
    const c = Math.fround(q[i]);
    norm += c * c;
    if (Math.abs(c) > Math.abs(Math.fround(q[largest]))) {
      largest = i;
    }
  }
  clearQuat(n, at);
  if (!(norm > 0) || norm === Infinity) {
    return;
  }
  const scale = (Math.SQRT2 / Math.sqrt(norm)) * (q[largest] < 0 ? -1 : 1);
  n[at] = largest;
  for (let i = 0, j = 1; i < 4; i++) {
    if (i !== largest) {
      n[at + j++] = roundToEven(Math.fround(q[i]) * scale * l.m);
    }
  }
  for (let i = unsettled(l, n, at); i > 0; i = unsettled(l, n, at)) {
    n[at + i] -= Math.sign(n[at + i]); // rounding made it as large as the largest
  }
}

/** The number, from 1, of the step that breaks the rule about the largest, or 0. */
function unsettled(l: Leaf, n: Float64Array, at: number): number {
  const r = rest(l.m, n[at + 1], n[at + 2], n[at + 3]);
  for (let i = 0; i < 3; i++) {
    const s = Math.abs(n[at + 1 + i]);
    if (s * s > r || (i < n[at] && s * s + s >= r)) {
      return i + 1;
    }
  }
  return 0;
}

/** Rounds halves to the even number. */
export function roundToEven(v: number): number {
  const r = Math.round(v);
  return (r - v === 0.5 && r % 2 !== 0 ? r - 1 : r) + 0;
}

const turnedFour = new Float64Array(4);

/**
 * Writes the three steps of a rotation with another component, or the same one, left out. The
 * results are in into[from] and the two places after it.
 */
export function turn(l: Leaf, n: Float64Array, at: number, leftOut: number, into: Float64Array, from: number): void {
  const largest = n[at];
  if (largest === leftOut) {
    for (let i = 0; i < 3; i++) {
      into[from + i] = n[at + 1 + i];
    }
    return;
  }
  const four = turnedFour;
  const r = rest(l.m, n[at + 1], n[at + 2], n[at + 3]);
  for (let i = 0, j = 1; i < 4; i++) {
    four[i] = i === largest ? Math.floor(Math.sqrt(Math.max(r, 0))) : n[at + j++];
  }
  const sign = four[leftOut] < 0 ? -1 : 1;
  for (let i = 0, j = from; i < 4; i++) {
    if (i !== leftOut) {
      into[j++] = sign * four[i] + 0;
    }
  }
}
