// The objects that the server shows to this client: it takes state packets and returns objects. It
// is written from docs/WIRE.md, from "State packets" to "Digest", and is the second reader of that
// page.

import { budget } from "../codec/list.js";
import type { Class, ObjectClass, Schema } from "../codec/schema.js";
import { ByteReader } from "../wire/bytes.js";
import { join } from "../wire/numbers.js";
import { Refusal, refuse } from "../wire/refusal.js";
import { Acks, type Acknowledgement } from "./acks.js";
import { Changes } from "./changes.js";
import { Digest } from "./digest.js";
import { CODER, Header, readNumber, widen } from "./header.js";
import { Memory, type ReplicatedObject } from "./object.js";
import { Records } from "./records.js";

/** The bounds on the memory that a server can make a replica use. */
export interface ReplicaLimits {
  /**
   * The bytes of states and their older versions, as the replica counts them: 256 MiB by default.
   */
  memory: number;
}

/**
 * The result of a packet or a record. The replica has one of them, which the next call changes.
 *
 * - applied: its contents are shown now, and it is acknowledged.
 * - repeated: it was applied before, and is acknowledged again.
 * - stale: a packet of a later tick was applied before. It changes no state and is not
 *   acknowledged.
 * - refused: it breaks a rule, or memory is full. It changes no state and is not acknowledged. A
 *   client asks for the full state after three such packets, and closes after such a record.
 */
export interface ApplyResult {
  kind: "applied" | "repeated" | "stale" | "refused";
  /** The broken rule, of a refused packet or record. */
  why: string;
  /** The number of the packet or record. */
  id: number;
  tick: number;
  /** The index of the packet in its snapshot, and the snapshot's number of packets. */
  index: number;
  count: number;
  /**
   * The base tick: the newest acknowledged tick that the server knew when it made the snapshot, 0
   * for none.
   */
  base: number;
  /** Whether all packets of the snapshot are applied now. */
  whole: boolean;
  /**
   * Objects that were left out of the snapshot have their values of this many ticks ago, or newer
   * ones.
   */
  behind: number;
  /** The number of missing objects of the first state, and its total. Both are 0 after it. */
  left: number;
  total: number;
  /**
   * Whether the digest of a whole snapshot equals that of the shown state. Unequal is a fault, and
   * the client asks for the full state; "none" for a snapshot without a digest, or with an
   * inconclusive one.
   */
  digest: "none" | "equal" | "unequal";
}

/**
 * An object that the server shows to this client. The same Replicated serves as long as the object
 * is shown.
 */
export interface Replicated {
  /** The number by which references name it. */
  readonly id: number;
  readonly class: ObjectClass;
  /** The tick at which it became visible. */
  readonly lifetime: number;
  /** The tick of state. */
  readonly tick: number;
  /** The client that owns it, 0 for none. */
  readonly owner: number;
  /** The leaves that may be read; undefined is all. */
  readonly mask: Uint8Array | undefined;
  /** False once it has despawned. Its last state can still be read. */
  readonly shown: boolean;
  /**
   * Its newest state, a plain object (see MessageType): always the same one, which each read
   * updates. It belongs to the replica: callers that change it or keep it make a copy.
   */
  readonly state: Record<string, unknown>;
  /** A copy of the state that is the caller's own. */
  copy(): Record<string, unknown>;
  /** Writes the numbers of the newest state in the flat layout of its class. */
  flat(into: Float64Array): void;
  /** Free for the client's own data of the object, such as a view. */
  data: unknown;
}

/** A change of an object since the last call of changes. */
export interface Change {
  kind: "spawned" | "changed" | "despawned";
  object: Replicated;
}

const MAX_BYTES = 32768; // no packet or record is larger

/** The copies of replicated objects. */
export class Replica {
  /** The last large record that was applied: the value of state_applied. */
  recordsApplied = 0;

  private newest: number;
  private applied = false;
  /**
   * Marks the applied packets of the newest tick's snapshot; the fields below combine their
   * headers.
   */
  private readonly arrived = new Uint8Array(64);
  private arrivals = 0;
  private now = new Header();
  private next = new Header();

  private readonly slots: (ReplicatedObject | undefined)[] = [];
  private readonly byClass: Set<ReplicatedObject>[];
  private readonly r = new ByteReader();
  private readonly records: Records;
  private readonly bytes: Memory;
  private readonly acks = new Acks();
  private readonly events = new Changes();
  private readonly digests = new Digest();
  private readonly result: ApplyResult;

  /** Makes an empty replica, at the server's tick by `welcome`. */
  constructor(schema: Schema, tick: number, limits: Partial<ReplicaLimits> = {}) {
    this.newest = tick;
    this.byClass = schema.classes.map(() => new Set());
    this.bytes = new Memory(limits.memory ?? 256 << 20);
    this.records = new Records(schema.classes as readonly Class[], this.slots, this.bytes);
    this.result = {
      kind: "refused",
      why: "",
      id: 0,
      tick: 0,
      index: 0,
      count: 0,
      base: 0,
      whole: false,
      behind: 0,
      left: 0,
      total: 0,
      digest: "none",
    };
  }

  /** The newest tick of an applied packet or record. */
  get tick(): number {
    return this.newest;
  }

  /** Bytes that count against the limit. */
  get memory(): number {
    return this.bytes.used;
  }

  /** Applies a state packet. Never throws on bytes. */
  apply(packet: Uint8Array): ApplyResult {
    const result = this.begin();
    try {
      this.applyPacket(packet);
    } catch (e) {
      this.refused(e);
    }
    return result;
  }

  /** Applies a record of a frame. Never throws on bytes. */
  applyLarge(record: Uint8Array): ApplyResult {
    const result = this.begin();
    try {
      this.applyRecord(record);
    } catch (e) {
      this.refused(e);
    }
    return result;
  }

  private begin(): ApplyResult {
    const r = this.result;
    r.kind = "refused";
    r.why = "";
    r.id = r.tick = r.index = r.count = r.base = r.behind = r.left = r.total = 0;
    r.whole = false;
    r.digest = "none";
    budget.left = this.bytes.limit - this.bytes.used;
    return r;
  }

  private refused(e: unknown): void {
    this.records.forget();
    if (!(e instanceof Refusal)) {
      throw e;
    }
    this.result.why = e.why;
  }

  private open(bytes: Uint8Array): ByteReader {
    if (bytes.length > MAX_BYTES) {
      refuse("too long");
    }
    this.r.open(bytes, 0, bytes.length);
    return this.r;
  }

  private applyPacket(packet: Uint8Array): void {
    const { result, next: h } = this;
    const r = this.open(packet);
    h.read(r, this.newest);
    result.id = h.id;
    result.tick = h.tick;
    result.index = h.index;
    result.count = h.count;
    result.behind = h.behind;
    result.left = h.left;
    result.total = h.total;
    if (this.applied && h.tick < this.newest) {
      result.kind = "stale";
      return;
    }
    const same = this.applied && h.tick === this.newest;
    if (same && this.arrivals > 0 && !h.fits(this.now)) {
      refuse("inconsistent packets");
    }
    if (same && this.arrived[h.index] === 1) {
      this.acks.add(h.id);
      result.kind = "repeated";
      return;
    }
    result.base = this.records.read(packet, r.at, h.padding, h.tick);
    this.reach(h.tick);
    this.arrived[h.index] = 1;
    this.arrivals++;
    this.next = this.now;
    this.now = h;
    this.commit();
    this.acks.add(h.id);
    result.kind = "applied";
    result.whole = this.arrivals === h.count;
    if (result.whole && h.hasDigest) {
      result.digest = this.compare(h);
    }
  }

  private compare(h: Header): "none" | "equal" | "unequal" {
    this.digests.of(this.slots);
    if (this.digests.hi === h.digestHi && this.digests.lo === h.digestLo) {
      return "equal";
    }
    return h.isComplete ? "unequal" : "none";
  }

  private applyRecord(record: Uint8Array): void {
    const { result } = this;
    const r = this.open(record);
    if (r.u8() !== CODER) {
      refuse("unknown coder");
    }
    const padding = r.u8();
    if (padding > 7) {
      refuse("too much padding");
    }
    result.tick = widen(r.u32(), this.newest);
    result.id = readNumber(r);
    if (result.id !== this.recordsApplied + 1) {
      refuse("records out of order");
    }
    this.records.readLarge(record, r.at, padding, result.tick);
    this.recordsApplied = result.id;
    this.reach(result.tick);
    this.commit();
    result.kind = "applied";
  }

  /** Records that a packet or record of a tick is applied. */
  private reach(tick: number): void {
    if (!this.applied || tick > this.newest) {
      this.applied = true;
      this.newest = tick;
      this.noneArrived();
    }
  }

  private noneArrived(): void {
    this.arrived.fill(0);
    this.arrivals = 0;
  }

  /** Shows the results of the records that were read. */
  private commit(): void {
    const { records } = this;
    for (let i = 0; i < records.count; i++) {
      const p = records.pending[i];
      const old = this.slots[p.slot];
      if (old !== undefined && old !== p.object) {
        this.remove(p.slot, old);
      }
      const o = p.object;
      if (o === undefined) {
        continue;
      }
      if (p.fresh) o.mask = p.mask;
      o.store(p.version!);
      p.version = undefined;
      o.dropBefore(p.dropBefore);
      if (o.shown) {
        this.events.changed(o);
      } else {
        this.add(p.slot, o);
      }
    }
    records.forget();
  }

  private add(slot: number, o: ReplicatedObject): void {
    while (this.slots.length <= slot) {
      this.slots.push(undefined);
    }
    this.slots[slot] = o;
    this.byClass[o.class.index].add(o);
    o.shown = true;
    this.events.spawned(o);
  }

  private remove(slot: number, o: ReplicatedObject): void {
    this.slots[slot] = undefined;
    this.byClass[o.class.index].delete(o);
    o.end();
    this.events.despawned(o);
  }

  /** The shown objects of a class, in no particular order. */
  objects(classIndex: number): Iterable<Replicated> {
    return this.byClass[classIndex] ?? [];
  }

  /** Returns the shown object of a number. */
  get(id: number): Replicated | undefined {
    const o = this.slots[Math.floor(id / 2 ** 32)];
    return o?.id === id ? o : undefined;
  }

  /**
   * Returns the changes since the last call, at most one for each object, in their order: an object
   * that spawned and then changed is reported as spawned, and an object that spawned and despawned
   * is left out. The next call reuses both the array and its elements.
   */
  changes(): readonly Change[] {
    return this.events.take();
  }

  /**
   * The acknowledgement of the next datagram, undefined before the first packet. Its memory is
   * reused.
   */
  acknowledgement(): Acknowledgement | undefined {
    return this.acks.next();
  }

  /** The digest of the shown objects: docs/WIRE.md, "Digest". */
  digest(): bigint {
    this.digests.of(this.slots);
    return join(this.digests.hi, this.digests.lo);
  }

  /**
   * Begins a new connection. Packets and records are numbered from 1; shown objects remain, and
   * deltas refer to them if the server answers `resumed` to a hello with `kept`.
   */
  reconnect(): void {
    this.acks.clear();
    this.recordsApplied = 0;
  }

  /** Discards all state: the shown objects despawn. */
  reset(tick: number): void {
    for (let slot = 0; slot < this.slots.length; slot++) {
      const o = this.slots[slot];
      if (o !== undefined) this.remove(slot, o);
    }
    this.bytes.trim();
    this.newest = tick;
    this.applied = false;
    this.noneArrived();
    this.reconnect();
  }
}
