// Reads deltas (docs/WIRE.md, "Deltas"), which turn stored versions into a new one.

import { ByteReader } from "../wire/bytes.js";
import type { BitReader } from "../wire/bits.js";
import { bitLength, TWO32, TWO53, unsigned, unzigzag, unzigzagWide, type Unsigned } from "../wire/numbers.js";
import { outOfRange, refuse } from "../wire/refusal.js";
import { bitsOf, doubleOf, floatAt, floatFromBits, floatPlace, Place } from "../wire/floats.js";
import { Form, type Layout, type Leaf, type List } from "./layout.js";
import { readScript } from "./list.js";
import { checkQuat, readWord, turn } from "./quat.js";
import { number, readCell, within } from "./value.js";
import { Expected, isTrend, Run } from "./expected.js";

/** The values of an object as of one tick. */
export interface Version {
  tick: number;
  owner: Unsigned;
  readonly n: Float64Array;
  readonly x: unknown[];
}

const SAFE = 2 ** 51; // sums of such numbers, their shifts and their distances are exact

/** Reads deltas from one packet after another. */
export class DeltaReader {
  /** Marks the leaves that are moving or in the mask; the first entry is the owner's. */
  private readonly moving = new Uint8Array(257);
  private readonly changed = new Uint8Array(257);
  private readonly expected = new Expected();
  private readonly run = new Run();
  private bytes = new Uint8Array(2048);
  private readonly whole = new ByteReader();
  private readonly turned = new Float64Array(9);
  private readonly place = new Place();

  constructor(private readonly r: BitReader) {}

  /**
   * Reads a delta into a version, which holds the baseline's values at first. older and oldest are
   * undefined without such a version.
   */
  read(layout: Layout, to: Version, base: Version, older: Version | undefined, oldest: Version | undefined, span: number, ahead: number): void {
    this.expected.span = span;
    this.expected.ahead = ahead;
    this.findMoving(layout, base, older, oldest);
    this.readMask(layout, older !== undefined);
    this.run.begin();
    if (this.changed[0] === 1) {
      this.readOwner(to);
    }
    const leaves = layout.leaves;
    for (let i = 0; i < leaves.length; i++) {
      const l = leaves[i];
      if (l.begins) {
        this.run.begin();
      }
      if (this.changed[i + 1] === 1) {
        const moves = this.moving[i + 1] === 1;
        this.readLeaf(l, to, base, moves ? older : undefined, moves ? oldest : undefined);
      }
    }
  }

  private findMoving(layout: Layout, base: Version, older: Version | undefined, oldest: Version | undefined): void {
    const leaves = layout.leaves;
    this.moving[0] = 0;
    for (let i = 0; i < leaves.length; i++) {
      this.moving[i + 1] = older !== undefined && isMoving(leaves[i], base, older, oldest) ? 1 : 0;
    }
  }

  /** Reads the mask, and sets the flag in changed for each leaf that is moving or in the mask. */
  private readMask(layout: Layout, quiet: boolean): void {
    const all = layout.leaves.length + 1;
    let rest = 0;
    for (let i = 0; i < all; i++) {
      this.changed[i] = this.moving[i];
      rest += 1 - this.moving[i];
    }
    if (quiet && !this.r.bit()) {
      return;
    }
    const grouped = rest > 8;
    let some = false;
    let bits = 0;
    for (let i = 0, left = 0; i < all; i++) {
      if (this.moving[i] === 1) {
        continue;
      }
      if (left === 0) {
        left = grouped ? Math.min(8, rest) : rest;
        rest -= left;
        bits = this.readGroup(grouped, left);
        some ||= bits !== 0;
      }
      this.changed[i] = bits & 1;
      bits >>= 1;
      left--;
    }
    if (quiet && !some) {
      refuse("empty mask");
    }
  }

  private readGroup(grouped: boolean, size: number): number {
    if (grouped && !this.r.bit()) {
      return 0;
    }
    const bits = this.r.bits(size);
    return grouped && bits === 0 ? refuse("empty mask") : bits;
  }

  private readOwner(to: Version): void {
    const d = this.r.len();
    if (d < SAFE && typeof to.owner === "number" && to.owner < SAFE && to.owner + unzigzag(d) >= 0) {
      to.owner += unzigzag(d);
    } else {
      to.owner = unsigned(BigInt(to.owner) + unzigzagWide(d < TWO53 ? BigInt(d) : this.r.wide()));
    }
  }

  private readLeaf(l: Leaf, to: Version, base: Version, older: Version | undefined, oldest: Version | undefined): void {
    switch (l.form) {
      case Form.Bool:
        to.n[l.at] = 1 - base.n[l.at];
        break;
      case Form.Int:
        this.readInt(l, to, base, older, oldest);
        break;
      case Form.Wide:
        to.x[l.at] = this.readWide(l.unsigned, base.x[l.at] as bigint, older?.x[l.at] as bigint, oldest?.x[l.at] as bigint);
        break;
      case Form.Float32:
        this.readSingle(l, to, base, older, oldest);
        break;
      case Form.Float64:
        this.readDouble(l, to, base, older, oldest);
        break;
      case Form.Quat:
        this.readQuat(l, to, base, older, oldest);
        break;
      case Form.Ref:
        to.x[l.at] = this.readRef();
        break;
      default:
        this.readBytes(l, to, base);
    }
  }

  /** The distance as a zigzag; if it is 2^53 or more, the reader holds the exact value. */
  private distance(): number {
    const k = this.run.bitsOf(this.expected);
    return k < 0 ? this.r.len() : this.r.rice(k);
  }

  private readInt(l: Leaf, to: Version, base: Version, older: Version | undefined, oldest: Version | undefined): void {
    const from = base.n[l.at];
    if (Math.abs(from) > SAFE) {
      to.n[l.at] = this.readFar(l, from, older?.n[l.at], oldest?.n[l.at]);
      return;
    }
    const e = this.expected;
    e.whole(from, older?.n[l.at], oldest?.n[l.at]);
    const at = l.ranged ? Math.min(Math.max(e.at, l.low), l.high) : e.at;
    const u = this.distance();
    if (u < SAFE) {
      const d = unzigzag(u);
      this.run.note(bitLength(Math.abs(d)));
      to.n[l.at] = within(l, at + d);
      return;
    }
    to.n[l.at] = this.readAround(l, BigInt(at), u);
  }

  /** Reads an Int with places so large that a number cannot hold their sums exactly. */
  private readFar(l: Leaf, base: number, older: number | undefined, oldest: number | undefined): number {
    const wide = (v: number | undefined) => (v === undefined ? v : BigInt(v));
    const at = this.expected.wholeWide(BigInt(base), wide(older), wide(oldest));
    return this.readAround(l, clampWide(l, at), this.distance());
  }

  /** Reads the Int at a distance of any size from a place. */
  private readAround(l: Leaf, at: bigint, u: number): number {
    const v = BigInt.asIntN(64, at + this.wideDistance(u));
    return v >= BigInt(l.low) && v <= BigInt(l.high) ? Number(v) : outOfRange();
  }

  private wideDistance(u: number): bigint {
    const d = unzigzagWide(u < TWO53 ? BigInt(u) : this.r.wide());
    this.run.note(bitsOf(Number(d >> 32n), Number(d & 0xffff_ffffn)));
    return d;
  }

  private readWide(isUnsigned: boolean, base: bigint, older: bigint | undefined, oldest: bigint | undefined): bigint {
    const v = this.expected.wholeWide(base, older, oldest) + this.wideDistance(this.distance());
    return isUnsigned ? BigInt.asUintN(64, v) : BigInt.asIntN(64, v);
  }

  private readSingle(l: Leaf, to: Version, base: Version, older: Version | undefined, oldest: Version | undefined): void {
    const e = this.expected;
    e.float(true, base.n[l.at], older?.n[l.at], oldest?.n[l.at]);
    const at = e.at;
    if (this.r.bit()) {
      const v = number(floatFromBits(this.r.bits(32) | 0));
      this.run.note(bitLength(Math.abs(floatPlace(v) - at)));
      to.n[l.at] = v;
      return;
    }
    const u = this.distance();
    const place = u < SAFE ? at + unzigzag(u) : Infinity;
    if (place !== (place | 0)) {
      outOfRange();
    }
    this.run.note(bitLength(Math.abs(place - at)));
    to.n[l.at] = number(floatAt(place));
  }

  private readDouble(l: Leaf, to: Version, base: Version, older: Version | undefined, oldest: Version | undefined): void {
    const e = this.expected;
    e.float(false, base.n[l.at], older?.n[l.at], oldest?.n[l.at]);
    const place = this.place;
    if (this.r.bit()) {
      const lo = this.r.bits(32);
      place.set(doubleOf(lo, this.r.bits(32)));
      this.run.note(place.bitsFrom(e.wide));
    } else {
      const u = this.distance();
      const lo = u < TWO53 ? u >>> 0 : this.r.lo;
      const hi = u < TWO53 ? (u / TWO32) >>> 0 : this.r.hi;
      const flip = -(lo & 1);
      const dLo = (((lo >>> 1) | (hi << 31)) ^ flip) >>> 0;
      const dHi = (hi >>> 1) ^ flip;
      this.run.note(bitsOf(dHi, dLo));
      place.hi = e.wide.hi;
      place.lo = e.wide.lo;
      place.add(dHi, dLo);
    }
    to.n[l.at] = number(place.get());
  }

  private readQuat(l: Leaf, to: Version, base: Version, older: Version | undefined, oldest: Version | undefined): void {
    const { r, expected: e, turned } = this;
    const largest = base.n[l.at];
    if (largest < 0) {
      readWord(r, l, to.n, l.at);
      return;
    }
    let now = largest;
    if (r.bit()) {
      now = r.bits(2);
      if (now === largest) {
        readWord(r, l, to.n, l.at);
        return;
      }
    }
    const bent = older !== undefined && oldest !== undefined && oldest.n[l.at] >= 0;
    turn(l, base.n, l.at, now, turned, 0);
    if (older !== undefined) turn(l, older.n, l.at, now, turned, 3);
    if (bent) turn(l, oldest.n, l.at, now, turned, 6);
    this.run.begin();
    to.n[l.at] = now;
    for (let k = 0; k < 3; k++) {
      e.whole(turned[k], older && turned[3 + k], bent ? turned[6 + k] : undefined);
      const at = older ? Math.min(Math.max(e.at, -l.m), l.m) : e.at;
      const d = unzigzag(Math.min(this.distance(), SAFE));
      this.run.note(bitLength(Math.abs(d)));
      to.n[l.at + 1 + k] = at + d;
    }
    checkQuat(l, to.n, l.at);
  }

  private readRef(): Unsigned {
    if (!this.r.bit()) {
      return 0;
    }
    const slot = this.r.rice(8);
    const generation = this.r.len();
    if (slot >= TWO32 || generation >= TWO32 || (slot === 0 && generation === 0)) {
      outOfRange();
    }
    const id = slot * TWO32 + generation;
    return id < TWO53 ? id : unsigned((BigInt(slot) << 32n) | BigInt(generation));
  }

  private readBytes(l: Leaf, to: Version, base: Version): void {
    const size = this.r.len();
    if (size > this.bytes.length) {
      if (size > (this.r.end - this.r.at) / 8) refuse("unexpected end");
      this.bytes = new Uint8Array(2 * size);
    }
    this.r.copy(this.bytes, size);
    this.whole.open(this.bytes, 0, size);
    if (l.form === Form.List) {
      to.x[l.at] = readScript(this.whole, l, base.x[l.at] as List);
    } else {
      readCell(this.whole, l, to.n, 0, to.x, 0);
    }
    if (this.whole.left() > 0) {
      refuse("trailing bytes");
    }
  }
}

/** The expected place of an Int, clamped to its range if it has one. */
export function clampWide(l: Leaf, at: bigint): bigint {
  const [low, high] = [BigInt(l.low), BigInt(l.high)];
  return !l.ranged ? at : at < low ? low : at > high ? high : at;
}

/** Reports whether a leaf is moving. */
export function isMoving(l: Leaf, base: Version, older: Version, oldest: Version | undefined): boolean {
  switch (l.form) {
    case Form.Int: {
      const d = base.n[l.at] - older.n[l.at];
      if (d !== 0) return isTrend(d);
      return l.den !== 0 && oldest !== undefined && older.n[l.at] !== oldest.n[l.at];
    }
    case Form.Wide: {
      const [a, b] = [base.x[l.at] as bigint, older.x[l.at] as bigint];
      return a !== b && isTrend(Number(BigInt.asIntN(64, a - b)));
    }
    case Form.Float32:
    case Form.Float64:
      return !Object.is(base.n[l.at], older.n[l.at]);
    case Form.Quat:
      return base.n[l.at] >= 0 && older.n[l.at] >= 0 && differ(base.n, older.n, l.at);
    default:
      return false;
  }
}

function differ(a: Float64Array, b: Float64Array, at: number): boolean {
  return a[at] !== b[at] || a[at + 1] !== b[at + 1] || a[at + 2] !== b[at + 2] || a[at + 3] !== b[at + 3];
}
