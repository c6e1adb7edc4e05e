// An object as the page uses it: the replica's, or one that only this client has yet, with its
// versions at the moments that may still be drawn.

import type { ReplicatedObject } from "../api.js";
import type { Predicted } from "../predict/predicted.js";
import type { Replicated } from "../state/replica.js";
import type { Leaves } from "./leaves.js";
import { HORIZON, type Moment } from "./playout.js";

/** The parts of a class that its objects use. */
export interface EntityClass {
  readonly name: string;
  readonly leaves: Leaves;
}

export class Entity implements ReplicatedObject {
  readonly history: History;
  /** The tick of its despawn; 0 before. */
  despawnTick = 0;
  /** Whether it was drawn last as the client's own or as another client's. */
  drawnAs: "other" | "own" | "" = "";
  /** Its prediction, while the client owns it, and for the correction after that. */
  own: Predicted | undefined;
  /** The state that was drawn last. */
  drawn: Record<string, unknown> | undefined;

  constructor(
    readonly of: EntityClass,
    public nv: Replicated | undefined,
    /** The state of an object that only this client has. */
    public local: Record<string, unknown> | undefined,
    private localOwner: number,
  ) {
    this.history = new History(of.leaves);
  }

  get id(): number {
    return this.nv ? this.nv.id : 0;
  }

  get owner(): number {
    return this.nv ? this.nv.owner : this.localOwner;
  }

  get alive(): boolean {
    return this.despawnTick === 0 && (this.nv ? this.nv.shown : true);
  }

  get className(): string {
    return this.of.name;
  }

  get state(): any {
    return this.nv ? this.nv.state : this.local;
  }

  /** Stores the newest version, for drawing. */
  storeVersion(): void {
    if (this.nv) this.history.push(this.nv.tick, this.nv.mask, (into) => this.nv!.flat(into));
  }

  /** Writes the state to draw, with these numbers, and returns it. */
  draw(flat: Float64Array, from: Record<string, unknown>): Record<string, unknown> {
    const { leaves } = this.of;
    this.drawn ??= leaves.of.create();
    leaves.of.unflatten(flat, this.drawn);
    leaves.copyOthers(this.drawn, from);
    return this.drawn;
  }

  /** Writes the object's numbers at a moment; false: it had not spawned, or had despawned. */
  at(m: Moment, out: Float64Array): boolean {
    const nv = this.nv;
    if (!nv || before(m, nv.lifetime) || (this.despawnTick > 0 && !before(m, this.despawnTick))) return false;
    return this.history.at(m, nv.lifetime > m.from, out);
  }
}

/** Reports whether the moment is earlier than a tick. */
export function before(m: Moment, tick: number): boolean {
  if (tick <= m.from) return false;
  return tick > m.to || m.alpha * (m.to - m.from) < tick - m.from;
}

/** The versions of an object's numbers, oldest first, and the memory of dropped ones for reuse. */
class History {
  private versions: { tick: number; flat: Float64Array }[] = [];
  private spare: { tick: number; flat: Float64Array }[] = [];

  private mask: Uint8Array | undefined;

  constructor(private leaves: Leaves) {}

  /** Stores a version; a version of the same tick replaces the newest. */
  push(tick: number, mask: Uint8Array | undefined, write: (into: Float64Array) => void): void {
    const { versions, spare } = this;
    let v = versions.at(-1);
    if (!v || tick > v.tick) {
      if (versions.length === HORIZON) spare.push(versions.shift()!);
      v = spare.pop() ?? { tick, flat: new Float64Array(this.leaves.size) };
      v.tick = tick;
      versions.push(v);
    }
    write(v.flat);
    // A field that could not be read before had no value: it is drawn with its present value.
    if (this.mask && this.mask !== mask) for (const older of versions) this.leaves.reveal(older.flat, v.flat, this.mask, mask);
    this.mask = mask;
  }

  /** Drops the versions that are older than the newest version of a tick. */
  prune(tick: number): void {
    const { versions, spare } = this;
    while (versions.length > 1 && versions[1].tick <= tick) spare.push(versions.shift()!);
  }

  /**
   * Writes the numbers at a moment; isNew: the object has spawned since, and its present numbers
   * are written.
   */
  at(m: Moment, isNew: boolean, out: Float64Array): boolean {
    const { versions } = this;
    if (versions.length === 0) return false;
    const from = newestOf(versions, m.from, 0);
    const to = newestOf(versions, m.to, from);
    this.leaves.between(out, versions[isNew ? to : from].flat, versions[to].flat, m.alpha);
    return true;
  }
}

/** The index of the newest version of a tick, from the i-th on. */
function newestOf(versions: readonly { tick: number }[], tick: number, i: number): number {
  while (i + 1 < versions.length && versions[i + 1].tick <= tick) i++;
  return i;
}
