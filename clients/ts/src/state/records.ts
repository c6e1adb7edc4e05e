// Reads the records of a packet (docs/WIRE.md, "Records") and stores the resulting changes of
// objects, until all records are known to be valid.

import type { Class } from "../codec/schema.js";
import { BitReader } from "../wire/bits.js";
import { outOfRange, refuse } from "../wire/refusal.js";
import { DeltaReader, type Version } from "../codec/delta.js";
import { before, MAX_SLOTS } from "./header.js";
import { ReplicatedObject, type Memory } from "./object.js";

/** The result of one record for the object in its slot. */
export interface Pending {
  slot: number;
  /** Undefined for a despawn. */
  object: ReplicatedObject | undefined;
  /** The version to store, undefined once it is stored. */
  version: Version | undefined;
  /** Whether the record was a full one, and so contains the object's mask. */
  fresh: boolean;
  mask: Uint8Array | undefined;
  /** Versions that were no longer the newest at this tick are dropped; 0 drops none. */
  dropBefore: number;
}

const MAX_SPAN = 63;

export class Records {
  /** The records that were read, of which the first count are in use. */
  readonly pending: Pending[] = [];
  count = 0;

  private readonly r = new BitReader();
  private readonly deltas = new DeltaReader(this.r);
  /** The context of the packet's records: the ticks to which they are relative. */
  private tick = 0;
  private at = 0;
  private span = 0;
  private bent = false;

  constructor(
    private readonly classes: readonly Class[],
    private readonly slots: readonly (ReplicatedObject | undefined)[],
    private readonly memory: Memory,
  ) {}

  /** Releases the versions that were read and not applied, and starts again. */
  forget(): void {
    for (let i = 0; i < this.count; i++) {
      const p = this.pending[i];
      if (p.version !== undefined) {
        this.memory.give(p.object!.class, p.version);
      }
      p.version = p.object = p.mask = undefined;
    }
    this.count = 0;
  }

  /** Reads all records of a packet. Returns the base tick, 0 for none. Throws a Refusal. */
  read(bytes: Uint8Array, from: number, padding: number, tick: number): number {
    this.r.open(bytes, from, padding);
    this.readContext(tick);
    let slot = -1;
    while (this.r.at < this.r.end) {
      slot = this.readRecord(slot);
    }
    this.checkMemory();
    return this.at === 0 ? 0 : tick - this.at;
  }

  /** Reads the one record of a frame. */
  readLarge(bytes: Uint8Array, from: number, padding: number, tick: number): void {
    this.r.open(bytes, from, padding);
    this.readContext(tick);
    this.readRecord(-1);
    if (this.at !== 0 || !this.pending[0].fresh || this.r.at < this.r.end) {
      refuse("records out of order");
    }
    this.checkMemory();
  }

  /** Refuses values that exceed the memory limit. */
  private checkMemory(): void {
    let size = this.memory.used;
    for (let i = 0; i < this.count; i++) {
      const v = this.pending[i].version;
      if (v !== undefined) size += this.memory.newIn(v.x);
    }
    if (size > this.memory.limit) {
      refuse("memory is full");
    }
  }

  private readContext(tick: number): void {
    this.tick = tick;
    this.span = 0;
    this.bent = false;
    this.at = this.r.len();
    if (this.at === 0) {
      return;
    }
    this.span = this.r.len();
    if (this.span > MAX_SPAN || (this.span > 0 && this.at > MAX_SPAN)) {
      refuse("unknown baseline");
    }
    const from = before(before(tick, this.at), this.span);
    if (this.span > 0 && this.r.bit()) {
      this.bent = true;
      before(from, this.span);
    }
  }

  /** Reads a record and returns its slot. */
  private readRecord(last: number): number {
    const { r } = this;
    const gap = r.bit() ? r.rice(3) + 1 : 0;
    const slot = last + 1 + gap;
    if (slot >= MAX_SLOTS) {
      outOfRange();
    }
    const p = this.begin(slot);
    const old = this.slots[slot];
    if (!r.bit()) {
      this.readDelta(p, old, this.tick);
    } else if (r.bit()) {
      if (!r.bit()) this.readFull(p, old);
    } else if (!r.bit()) {
      this.readDelta(p, old, before(this.tick, r.len()));
    } else {
      this.readExact(p, old);
    }
    p.object?.checkMask(p.version!, p.mask);
    return slot;
  }

  private begin(slot: number): Pending {
    if (this.count === this.pending.length) {
      this.pending.push({ slot, object: undefined, version: undefined, fresh: false, mask: undefined, dropBefore: 0 });
    }
    const p = this.pending[this.count++];
    p.slot = slot;
    p.object = p.version = p.mask = undefined;
    p.fresh = false;
    p.dropBefore = 0;
    return p;
  }

  /** Reads a delta into a new version of the object, which holds the baseline's values at first. */
  private readVersion(p: Pending, o: ReplicatedObject, tick: number, base: Version, older?: Version, oldest?: Version, ahead = 0): void {
    const v = this.memory.take(o.class);
    p.object = o;
    p.version = v;
    v.tick = tick;
    v.owner = base.owner;
    for (let i = 0; i < base.n.length; i++) {
      v.n[i] = base.n[i]; // set makes garbage
    }
    for (let i = 0; i < base.x.length; i++) {
      v.x[i] = base.x[i];
    }
    this.deltas.read(o.class.layout, v, base, older, oldest, this.span, ahead);
  }

  /**
   * Refuses a delta of an object that is not shown, or of an earlier version than the shown one.
   */
  private checked(old: ReplicatedObject | undefined, version: number): ReplicatedObject {
    if (old === undefined) {
      return refuse("unknown baseline");
    }
    return version < old.newest.tick ? refuse("object is older than the shown one") : old;
  }

  private readDelta(p: Pending, old: ReplicatedObject | undefined, version: number): void {
    if (this.at === 0) {
      refuse("unknown baseline");
    }
    const o = this.checked(old, version);
    const since = this.tick - this.at;
    const base = o.upTo(since) ?? refuse("unknown baseline");
    if (version <= since) {
      refuse("object is older than the shown one");
    }
    const older = this.span > 0 ? o.upTo(since - this.span) : undefined;
    const oldest = this.bent && older !== undefined ? o.upTo(since - 2 * this.span) : undefined;
    p.mask = o.mask;
    this.readVersion(p, o, version, base, older, oldest, version - since);
    p.dropBefore = since - 2 * this.span;
  }

  private readExact(p: Pending, old: ReplicatedObject | undefined): void {
    const version = before(this.tick, this.r.len());
    const from = before(before(version, this.r.len()), 1);
    const o = this.checked(old, version);
    const base = o.upTo(from);
    if (base === undefined || base.tick !== from) {
      return refuse("unknown baseline");
    }
    p.mask = o.mask;
    this.readVersion(p, o, version, base);
  }

  private readFull(p: Pending, old: ReplicatedObject | undefined): void {
    const { r } = this;
    const lifetime = before(this.tick, r.len());
    const version = before(this.tick, r.len());
    const c = this.classes[r.rice(2)] ?? refuse("unknown class");
    const generation = r.len() + 1;
    if (generation >= 2 ** 32) {
      outOfRange();
    }
    const id = p.slot * 2 ** 32 + generation;
    let o = old;
    if (o === undefined || lifetime > o.lifetime) {
      o = new ReplicatedObject(id, c, lifetime, this.memory);
    } else if (lifetime < o.lifetime || o.id !== id || o.class !== c) {
      refuse("object is older than the shown one");
    } else {
      this.checked(o, version);
    }
    p.fresh = true;
    p.mask = r.bit() ? this.readMask(c.layout.leaves.length) : undefined;
    this.readVersion(p, o, version, c.zero);
  }

  private readMask(leaves: number): Uint8Array {
    const mask = new Uint8Array(leaves);
    for (let i = 0; i < leaves; i++) {
      mask[i] = this.r.bit() ? 1 : 0;
    }
    return mask;
  }
}
