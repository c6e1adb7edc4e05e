// The bit patterns of floats, and their places on the line of docs/WIRE.md, "Deltas".

const single = new Float32Array(1);
const singleBits = new Int32Array(single.buffer);
const double = new Float64Array(1);
const doubleBits = new BigInt64Array(double.buffer);
const halves = new Int32Array(double.buffer);

/** The index of the higher half. */
const HI = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 1 : 0;

/** The bits of a float32 as a signed number. */
export function floatBits(v: number): number {
  single[0] = v;
  return singleBits[0];
}

export function floatFromBits(bits: number): number {
  singleBits[0] = bits;
  return single[0];
}

/** The bits of a float64 as a signed number. */
export function wideBits(v: number): bigint {
  double[0] = v;
  return doubleBits[0];
}

export function wideFromBits(bits: bigint): number {
  doubleBits[0] = BigInt.asIntN(64, bits);
  return double[0];
}

/** The float64 of these two halves. */
export function doubleOf(lo: number, hi: number): number {
  halves[1 - HI] = lo;
  halves[HI] = hi;
  return double[0];
}

export function lowHalf(v: number): number {
  double[0] = v;
  return halves[1 - HI];
}

export function highHalf(v: number): number {
  double[0] = v;
  return halves[HI];
}

/** The place of a float32 on its line. */
export function floatPlace(v: number): number {
  const b = floatBits(v);
  return b < 0 ? b ^ 0x7fff_ffff : b;
}

/** The float32 at a place of 32 bits. */
export function floatAt(place: number): number {
  return floatFromBits(place < 0 ? place ^ 0x7fff_ffff : place);
}

/** A place on the line of float64: a signed number of 64 bits, in two halves. */
export class Place {
  hi = 0;
  lo = 0;

  /** Sets the place to that of a float64. */
  set(v: number): void {
    const lo = lowHalf(v);
    const hi = highHalf(v);
    this.hi = hi < 0 ? hi ^ 0x7fff_ffff : hi;
    this.lo = (hi < 0 ? ~lo : lo) >>> 0;
  }

  /** The float64 at this place. */
  get(): number {
    return this.hi < 0 ? doubleOf(~this.lo, this.hi ^ 0x7fff_ffff) : doubleOf(this.lo, this.hi);
  }

  /** Adds a signed number of 64 bits. */
  add(hi: number, lo: number): void {
    const sum = this.lo + (lo >>> 0);
    this.lo = sum >>> 0;
    this.hi = (this.hi + hi + (sum >= 0x1_0000_0000 ? 1 : 0)) | 0;
  }

  /** The number of bits of the distance from another place to this one, modulo 2^64. */
  bitsFrom(from: Place): number {
    return bitsOf((this.hi - from.hi - (this.lo < from.lo ? 1 : 0)) | 0, (this.lo - from.lo) >>> 0);
  }
}

/** The number of bits of the absolute value of a signed number of 64 bits. */
export function bitsOf(hi: number, lo: number): number {
  if (hi < 0) {
    lo = -lo >>> 0;
    hi = (lo === 0 ? -hi : ~hi) >>> 0;
  }
  return hi !== 0 ? 64 - Math.clz32(hi) : 32 - Math.clz32(lo);
}
