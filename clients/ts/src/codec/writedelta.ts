// Writes deltas, for inputs; delta.ts reads them.

import { ByteWriter, same } from "../wire/bytes.js";
import { lenSize, riceSize, type BitWriter } from "../wire/bitwriter.js";
import { bitLengthWide, TWO32, zigzagWide, type Unsigned } from "../wire/numbers.js";
import { clampWide, isMoving, type Version } from "./delta.js";
import { Expected, Run } from "./expected.js";
import { floatBits, floatPlace, Place, wideBits } from "../wire/floats.js";
import { Form, isNumber, type Layout, type Leaf } from "./layout.js";
import { turn, wordOf } from "./quat.js";
import { writeCell } from "./value.js";

/** Writes deltas that have no oldest version, one after the other. */
export class DeltaWriter {
  private readonly expected = new Expected();
  private readonly run = new Run();
  private readonly bytes = new ByteWriter();
  private readonly was = new ByteWriter();
  private readonly turned = new Float64Array(9);

  constructor(private readonly w: BitWriter) {}

  /**
   * Writes the delta from a baseline to a version; older is the version before the baseline, or
   * undefined.
   */
  write(layout: Layout, to: Version, base: Version, older: Version | undefined, span: number, ahead: number): void {
    this.expected.span = span;
    this.expected.ahead = ahead;
    const { leaves } = layout;
    const moving = leaves.map((l) => older !== undefined && isMoving(l, base, older, undefined));
    const changed = leaves.map((l) => this.differs(l, to, base));
    this.writeMask(moving, changed, older !== undefined);
    this.run.begin();
    for (let i = 0; i < leaves.length; i++) {
      if (leaves[i].begins) {
        this.run.begin();
      }
      if (moving[i] || changed[i]) {
        this.writeLeaf(leaves[i], to, base, moving[i] ? older : undefined);
      }
    }
  }

  private differs(l: Leaf, to: Version, base: Version): boolean {
    const [a, b] = [this.bytes, this.was];
    a.reset();
    b.reset();
    writeCell(a, l, to.n, 0, to.x, 0);
    writeCell(b, l, base.n, 0, base.x, 0);
    return !same(a.done(), b.done());
  }

  private writeMask(moving: boolean[], changed: boolean[], quiet: boolean): void {
    const mask = [false, ...changed.filter((_, i) => !moving[i])]; // the owner never changes
    if (quiet) {
      this.w.bit(mask.includes(true));
      if (!mask.includes(true)) {
        return;
      }
    }
    if (mask.length <= 8) {
      for (const b of mask) this.w.bit(b);
      return;
    }
    for (let i = 0; i < mask.length; i += 8) {
      const group = mask.slice(i, i + 8);
      this.w.bit(group.includes(true));
      if (group.includes(true)) {
        for (const b of group) this.w.bit(b);
      }
    }
  }

  private writeLeaf(l: Leaf, to: Version, base: Version, older: Version | undefined): void {
    switch (l.form) {
      case Form.Bool:
        break;
      case Form.Int:
      case Form.Wide:
        this.writeInt(l, to, base, older);
        break;
      case Form.Float32:
      case Form.Float64:
        this.writeFloat(l, to.n[l.at], base.n[l.at], older?.n[l.at]);
        break;
      case Form.Quat:
        this.writeQuat(l, to, base, older);
        break;
      case Form.Ref:
        this.writeRef(BigInt(to.x[l.at] as Unsigned));
        break;
      default: {
        const b = this.bytes;
        b.reset();
        if (l.form === Form.List) b.u8(1);
        writeCell(b, l, to.n, 0, to.x, 0);
        this.w.len(b.length);
        this.w.raw(b.done());
      }
    }
  }

  private distance(d: bigint): void {
    const k = this.run.bitsOf(this.expected);
    if (k < 0) {
      this.w.len(zigzagWide(d));
    } else {
      this.w.rice(zigzagWide(d), k);
    }
    this.run.note(bitLengthWide(d));
  }

  private writeInt(l: Leaf, to: Version, base: Version, older: Version | undefined): void {
    const at = (v: Version) => (isNumber(l.form) ? BigInt(v.n[l.at]) : (v.x[l.at] as bigint));
    const expected = clampWide(l, this.expected.wholeWide(at(base), older && at(older)));
    this.distance(BigInt.asIntN(64, at(to) - expected));
  }

  private writeFloat(l: Leaf, to: number, base: number, older: number | undefined): void {
    const single = l.form === Form.Float32;
    const e = this.expected;
    e.float(single, base, older);
    const place = new Place();
    place.set(to);
    const wide = (p: Place) => (BigInt(p.hi) << 32n) | BigInt(p.lo);
    const d = single ? BigInt(floatPlace(to) - e.at) : BigInt.asIntN(64, wide(place) - wide(e.wide));
    const size = single ? 32 : 64;
    const k = this.run.bitsOf(e);
    const z = zigzagWide(d);
    if ((k < 0 ? lenSize(z) : riceSize(z, k)) <= size) {
      this.w.bit(false);
      this.distance(d);
      return;
    }
    this.w.bit(true);
    this.w.wide(BigInt.asUintN(size, single ? BigInt(floatBits(to)) : wideBits(to)), size);
    this.run.note(bitLengthWide(d));
  }

  private writeQuat(l: Leaf, to: Version, base: Version, older: Version | undefined): void {
    const { w, expected: e, turned } = this;
    const word = wordOf(l, to.n, l.at);
    const size = 3 * l.bits + 2;
    if (base.n[l.at] < 0) {
      w.wide(word, size);
      return;
    }
    const same = to.n[l.at] === base.n[l.at];
    if (to.n[l.at] < 0) {
      w.bit(true);
      w.bits(base.n[l.at], 2);
      w.wide(word, size);
      return;
    }
    w.bit(!same);
    if (!same) {
      w.bits(to.n[l.at], 2);
    }
    turn(l, base.n, l.at, to.n[l.at], turned, 0);
    if (older !== undefined) turn(l, older.n, l.at, to.n[l.at], turned, 3);
    this.run.begin();
    for (let k = 0; k < 3; k++) {
      e.whole(turned[k], older && turned[3 + k]);
      const at = older ? Math.min(Math.max(e.at, -l.m), l.m) : e.at;
      this.distance(BigInt(to.n[l.at + 1 + k] - at));
    }
  }

  private writeRef(id: bigint): void {
    this.w.bit(id !== 0n);
    if (id !== 0n) {
      this.w.rice(id >> 32n, 8);
      this.w.len(id % BigInt(TWO32));
    }
  }
}
