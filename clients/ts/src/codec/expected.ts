// Predicts the places of numbers that have a trend (docs/WIRE.md, "Deltas").

import { floatPlace, Place } from "../wire/floats.js";
import { bitLength, bitLengthWide } from "../wire/numbers.js";

const TREND = 2 ** 40; // differences beyond this have no trend

/** Reports whether a number that has changed by d has a trend. */
export function isTrend(d: number): boolean {
  return d >= -TREND && d < TREND;
}

/**
 * Predicts numbers. whole and float write their results into it: one instance serves all, so that
 * no number allocates an object.
 */
export class Expected {
  /** Ticks from the older version to the baseline, and from there to the new one. */
  span = 0;
  ahead = 0;

  /** The expected place of a whole number or a float32 on its line. */
  at = 0;
  /** The expected place of a float64. */
  readonly wide = new Place();
  /** Whether there is a trend, and whether its speed changes. */
  moving = false;
  bent = false;
  /** Bits of the shift, and of its second difference. */
  v = 0;
  u = 0;

  private readonly start = new Place();
  private readonly straight = new Place();

  /** Begins with the baseline's place and no trend. */
  private rest(at: number): void {
    this.at = at;
    this.moving = false;
    this.bent = false;
    this.v = 0;
    this.u = 0;
  }

  /** d · A ÷ S rounded, halves away from zero. All of it is below 2^53. */
  private shift(d: number, ahead: number, span: number): number {
    const twice = 2 * Math.abs(d) * ahead + span;
    let n = Math.floor(twice / (2 * span));
    if (n * 2 * span > twice) {
      n--;
    }
    return d < 0 ? -n : n;
  }

  /** Expects a whole number that had these places, at most 2^52 from 0. */
  whole(base: number, older?: number, oldest?: number): void {
    const { span, ahead } = this;
    this.rest(base);
    if (older === undefined) {
      return;
    }
    const d = base - older;
    const s = this.shift(d, ahead, span);
    this.at = base + s;
    this.moving = true;
    this.v = bitLength(Math.abs(s));
    const e = oldest === undefined ? Infinity : older - oldest;
    this.bent = isTrend(e);
    if (!this.bent) {
      return;
    }
    const drift = d + e;
    if (span % 2 === 1 && d < 0 !== e < 0 && 8 * Math.abs(drift) <= Math.abs(d)) {
      const odd = ahead % 2 === 1;
      const swing = odd ? this.shift(-drift, ahead + span, 2 * span) : this.shift(drift, ahead, 2 * span);
      this.at = (odd ? older : base) + swing;
      this.v = this.u = bitLength(Math.abs(swing));
    } else if (d !== e) {
      this.u = bitLength(Math.abs(d - e)) + bitLength(Math.floor((ahead * (ahead + span)) / (2 * span * span)));
    }
  }

  /**
   * Expects a whole number of any 64 bits, modulo 2^64. Returns the expected place; the other
   * results are as of whole.
   */
  wholeWide(base: bigint, older?: bigint, oldest?: bigint): bigint {
    this.rest(0);
    if (older === undefined) {
      return base;
    }
    const wrap = (n: bigint) => BigInt.asIntN(64, n);
    const span = BigInt(this.span);
    const ahead = BigInt(this.ahead);
    const d = wrap(base - older);
    const s = shiftWide(d, ahead, span);
    this.moving = true;
    this.v = bitLengthWide(s);
    const e = oldest === undefined ? 0n : wrap(older - oldest);
    this.bent = oldest !== undefined && isTrend(Number(e));
    if (!this.bent) {
      return wrap(base + s);
    }
    const drift = d + e;
    if (this.span % 2 === 1 && d < 0n !== e < 0n && 8n * abs(drift) <= abs(d)) {
      const odd = this.ahead % 2 === 1;
      const swing = odd ? shiftWide(-drift, ahead + span, 2n * span) : shiftWide(drift, ahead, 2n * span);
      this.v = this.u = bitLengthWide(swing);
      return wrap((odd ? older : base) + swing);
    }
    if (d !== e) {
      this.u = bitLengthWide(d - e) + bitLength(Math.floor((this.ahead * (this.ahead + this.span)) / (2 * this.span * this.span)));
    }
    return wrap(base + s);
  }

  /** Expects a float32 or float64 that had these values. */
  float(single: boolean, base: number, older?: number, oldest?: number): void {
    const along = older === undefined ? -0 : ((base - older) * this.ahead) / this.span; // -0 changes nothing
    this.rest(0);
    this.moving = older !== undefined;
    this.set(this.start, base, base, single);
    this.set(this.wide, base + along, base, single);
    this.v = this.wide.bitsFrom(this.start);
    if (older !== undefined && oldest !== undefined) {
      this.bent = true;
      this.bend(base, older, oldest, along, single);
    }
    this.at = this.wide.lo | 0;
  }

  private bend(base: number, older: number, oldest: number, along: number, single: boolean): void {
    const { span, ahead } = this;
    const d = base - older;
    const e = older - oldest;
    const drift = d + e;
    if (span % 2 === 1 && d < 0 !== e < 0 && Math.abs(drift) * 8 <= Math.abs(d)) {
      const odd = ahead % 2 === 1;
      const from = odd ? older : base;
      const swing = odd ? (-drift * (ahead + span)) / (2 * span) : (drift * ahead) / (2 * span);
      this.set(this.wide, from + swing, base, single);
      this.set(this.straight, from, base, single);
      this.v = this.u = this.wide.bitsFrom(this.straight);
      return;
    }
    this.u = this.v;
    const bend = d - e;
    if (Math.abs(bend) < 2 * Math.abs(d)) {
      this.straight.hi = this.wide.hi;
      this.straight.lo = this.wide.lo;
      this.set(this.wide, base + along + (bend * (ahead * (ahead + span))) / (2 * span * span), base, single);
      this.v = this.wide.bitsFrom(this.start);
      this.u = this.wide.bitsFrom(this.straight);
    }
  }

  /** Sets a place to that of a float; to the baseline's if the float is not finite. */
  private set(place: Place, v: number, base: number, single: boolean): void {
    if (single) {
      const f = Math.fround(v);
      const at = floatPlace(Number.isFinite(f) ? f : base);
      place.lo = at >>> 0;
      place.hi = at >> 31;
    } else {
      place.set(Number.isFinite(v) ? v : base);
    }
  }
}

/**
 * A run of neighbouring leaves of one kind and step: the lengths of their distances predict the
 * next one.
 */
export class Run {
  /** Bits of the last two distances, -1 for none. */
  private last = -1;
  private before = -1;

  begin(): void {
    this.last = this.before = -1;
  }

  /** Records the number of bits of a distance. */
  note(bits: number): void {
    this.before = this.last;
    this.last = bits;
  }

  /** About the number of bits of the next distance, -1 if it cannot be predicted. */
  bitsOf(e: Expected): number {
    const p = Math.max(this.last, this.before);
    let k: number;
    if (e.v === 0 && e.u === 0) {
      k = p < 0 && !e.moving ? -1 : Math.max(0, p - 1);
    } else if (e.bent) {
      k = p < 0 ? (7 * e.v + 6 * e.u + 14) >> 4 : (5 * e.v + 4 * e.u + 7 * p + 7) >> 4;
    } else {
      const f = bitLength(Math.floor(e.ahead / e.span));
      k = Math.max(f, p < 0 ? (e.v >> 1) + 2 : (3 * e.v + 4 * p + 6) >> 3);
    }
    return Math.min(k, 40);
  }
}

function abs(n: bigint): bigint {
  return n < 0n ? -n : n;
}

function shiftWide(d: bigint, ahead: bigint, span: bigint): bigint {
  const n = (2n * abs(d) * ahead + span) / (2n * span);
  return d < 0n ? -n : n;
}
