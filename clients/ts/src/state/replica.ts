// What the server has shown to this client: state packets go in, objects come out. It is written
// from docs/WIRE.md, from "State packets" to "Digest", and is the second reader of that page.

import type { ObjectClass, Schema } from "../codec/schema.js";
import type { Acknowledgement } from "./acks.js";

/** What a server can make a replica take. */
export interface ReplicaLimits {
  /** Bytes that states and their older versions take, as they are counted: 256 MiB. */
  memory: number;
}

/**
 * What became of a packet or a record. The replica has one of them, which the next call changes.
 *
 * - applied: it is what is shown now, and is acknowledged.
 * - repeated: it was applied before, and is acknowledged again.
 * - stale: something of a later tick was applied before. It changes nothing, unacknowledged.
 * - refused: it breaks a rule, or memory is full. It changes nothing, unacknowledged. A client
 *   asks for the full state after three such packets, and closes after such a record.
 */
export interface ApplyResult {
  kind: "applied" | "repeated" | "stale" | "refused";
  /** Of what is refused: which rule it breaks. */
  why: string;
  /** The number of the packet or record. */
  id: number;
  tick: number;
  /** Which packet of the snapshot it is, and of how many. */
  index: number;
  count: number;
  /** The base tick: what the server knew to be acknowledged when it made the snapshot, 0 for nothing. */
  base: number;
  /** Whether all packets of the snapshot are applied now. */
  whole: boolean;
  /** What was left out of the snapshot is as it was so many ticks ago, or newer. */
  behind: number;
  /** Of the first state, how many objects are missing, and of how many. Both are 0 after it. */
  left: number;
  total: number;
  /**
   * Of a whole snapshot with a digest: whether it is that of what is shown. Unequal is a fault, and
   * the client asks for the full state; "none" if there was none or if it says nothing.
   */
  digest: "none" | "equal" | "unequal";
}

/** An object that the server shows to this client. It stays the same one as long as it is shown. */
export interface Replicated {
  /** The number by which references name it. */
  readonly id: number;
  readonly class: ObjectClass;
  /** The tick at which it became visible. */
  readonly lifetime: number;
  /** The tick as of which state is. */
  readonly tick: number;
  /** The client that owns it, 0 for none. */
  readonly owner: number;
  /** False once it is gone. What it was last can still be read. */
  readonly shown: boolean;
  /**
   * Its newest state, a plain object (see MessageType): always the same one, which is brought up to
   * date when it is asked for. It is the replica's: whoever changes it, or keeps it, makes a copy.
   */
  readonly state: Record<string, unknown>;
  /** A copy of the state that is the caller's own. */
  copy(): Record<string, unknown>;
  /** Writes the numbers of the newest state in the flat layout of its class. */
  flat(into: Float64Array): void;
  /** A place for what the client wants to know of it, such as a view. */
  data: unknown;
}

/** What has happened to an object since changes was last asked. */
export interface Change {
  kind: "spawned" | "changed" | "despawned";
  object: Replicated;
}

/** The copies of replicated objects. */
export declare class Replica {
  /** Makes a replica that shows nothing, at the server's tick by `welcome`. */
  constructor(schema: Schema, tick: number, limits?: Partial<ReplicaLimits>);

  /** Applies a state packet. Never throws on bytes. */
  apply(packet: Uint8Array): ApplyResult;

  /** Applies a record that has come in a frame. Never throws on bytes. */
  applyLarge(record: Uint8Array): ApplyResult;

  /** The newest tick of which something is applied. */
  readonly tick: number;

  /** The last large record that was applied: what state_applied says. */
  readonly recordsApplied: number;

  /** What is shown of a class, in no particular order. */
  objects(classIndex: number): Iterable<Replicated>;

  /** What is shown by its number. */
  get(id: number): Replicated | undefined;

  /**
   * What has happened since it was last asked, each object at most once, in the order in which it
   * happened: what changed after it spawned has spawned, and what came and went is left out. Both
   * the array and its elements are used again by the next call.
   */
  changes(): readonly Change[];

  /** What the next datagram acknowledges, undefined before the first packet. Memory is reused. */
  acknowledgement(): Acknowledgement | undefined;

  /** The digest of what is shown: docs/WIRE.md, "Digest". */
  digest(): bigint;

  /** Bytes that count against the limit. */
  readonly memory: number;

  /**
   * Begins a new connection. Packets and records are numbered anew; what is shown stays, and deltas
   * go on from it if the server says `resumed` to a hello with `kept`.
   */
  reconnect(tick: number): void;

  /** Forgets everything: what is shown despawns. */
  reset(tick: number): void;
}
