// Writes state packets as a server would, for tests without an example in docs/WIRE.md.

import type { Class } from "../src/codec/schema.js";
import type { Version } from "../src/codec/delta.js";
import { cellsOf, encodeMessage } from "../src/codec/message.js";
import { DeltaWriter } from "../src/codec/writedelta.js";
import { BitWriter } from "../src/wire/bitwriter.js";
import { ByteWriter } from "../src/wire/bytes.js";

/** One packet without an origin. Its records must be written in rising order of slots. */
export class Packet {
  private readonly w = new BitWriter();
  private last = -1;

  constructor(
    readonly tick: number,
    readonly id: number,
    private readonly index = 0,
    private readonly count = 1,
  ) {
    this.w.len(0);
  }

  private begin(slot: number): void {
    const gap = slot - this.last - 1;
    this.last = slot;
    this.w.bit(gap > 0);
    if (gap > 0) this.w.rice(gap - 1, 3);
  }

  /** A full record of an object of class 0, which became visible at a tick, or does now. */
  full(slot: number, c: Class, state: object, since = this.tick, generation = 1): this {
    this.begin(slot);
    this.w.bits(0b011, 3);
    this.w.len(this.tick - since);
    this.w.len(0);
    this.w.rice(0, 2);
    this.w.len(generation - 1);
    this.w.bit(false);
    const to: Version = { tick: 0, owner: 0, ...cellsOf(c.layout, encodeMessage(c.fields, state)) };
    new DeltaWriter(this.w).write(c.layout, to, c.zero, undefined, 0, 0);
    return this;
  }

  despawn(slot: number): this {
    this.begin(slot);
    this.w.bits(0b111, 3);
    return this;
  }

  bytes(): Uint8Array {
    const w = new ByteWriter();
    w.u8(3);
    w.u8(((8 - (this.w.length % 8)) % 8) << 5);
    w.u8(this.index);
    w.u8(this.count);
    w.u32(this.tick);
    w.uvarint(this.id);
    w.raw(this.w.done());
    return w.done();
  }
}
