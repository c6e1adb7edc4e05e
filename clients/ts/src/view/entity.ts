// An object as the page sees it: the replica's, or one that only this client has yet, and what it
// was at the moments that may still be drawn.

import type { ReplicatedObject } from "../api.js";
import type { Replicated } from "../state/replica.js";
import type { Leaves } from "./leaves.js";
import { HORIZON, type Moment } from "./playout.js";

/** A class, as far as its objects need it. */
export interface EntityClass {
  readonly name: string;
  readonly leaves: Leaves;
}

export class Entity implements ReplicatedObject {
  readonly history: History;
  /** The tick at which it went; 0: it has not. */
  gone = 0;
  /** It was drawn as somebody else's. */
  drawnAs: "other" | "own" | "" = "";
  /** What is drawn of it, once it is. */
  private drawn: Record<string, unknown> | undefined;

  constructor(
    readonly of: EntityClass,
    public nv: Replicated | undefined,
    /** The state of one that only this client has. */
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
    return this.gone === 0 && (this.nv ? this.nv.shown : true);
  }

  get className(): string {
    return this.of.name;
  }

  get state(): any {
    return this.nv ? this.nv.state : this.local;
  }

  /** Notes the newest version, for drawing. */
  remember(): void {
    if (this.nv) this.history.push(this.nv.tick, (into) => this.nv!.flat(into));
  }

  /** Writes what is to be drawn, with these numbers, and returns it. */
  draw(flat: Float64Array, from: Record<string, unknown>): Record<string, unknown> {
    const { leaves } = this.of;
    this.drawn ??= leaves.of.create();
    leaves.of.unflatten(flat, this.drawn);
    leaves.copyOthers(this.drawn, from);
    return this.drawn;
  }

  /** Writes what the object was at a moment; false: it was not there yet, or not any more. */
  at(m: Moment, out: Float64Array): boolean {
    const nv = this.nv;
    if (!nv || before(m, nv.lifetime) || (this.gone > 0 && !before(m, this.gone))) return false;
    return this.history.at(m, nv.lifetime > m.from, out);
  }
}

/** Whether the moment is earlier than a tick. */
export function before(m: Moment, tick: number): boolean {
  if (tick <= m.from) return false;
  return tick > m.to || m.alpha * (m.to - m.from) < tick - m.from;
}

/** The versions of an object's numbers, oldest first, in a ring. */
class History {
  private ticks: number[] = [];
  private flats: Float64Array[] = [];
  private first = 0;
  private count = 0;

  constructor(private leaves: Leaves) {}

  private slot(i: number): number {
    return (this.first + i) % this.ticks.length;
  }

  /** Notes a version; one of the same tick replaces the newest. */
  push(tick: number, write: (into: Float64Array) => void): void {
    const newest = this.count > 0 ? this.slot(this.count - 1) : -1;
    if (newest >= 0 && tick <= this.ticks[newest]) return write(this.flats[newest]);
    if (this.count === this.ticks.length) this.grow();
    const at = this.slot(this.count++);
    this.ticks[at] = tick;
    write(this.flats[at]);
  }

  private grow(): void {
    if (this.count >= HORIZON) {
      this.first = this.slot(1);
      this.count--;
      return;
    }
    const n = Math.max(4, 2 * this.count);
    const ticks: number[] = [];
    const flats: Float64Array[] = [];
    for (let i = 0; i < n; i++) {
      ticks.push(i < this.count ? this.ticks[this.slot(i)] : 0);
      flats.push(i < this.count ? this.flats[this.slot(i)] : new Float64Array(this.leaves.size));
    }
    this.ticks = ticks;
    this.flats = flats;
    this.first = 0;
  }

  /** Lets go of what is older than the newest version of a tick. */
  prune(tick: number): void {
    while (this.count > 1 && this.ticks[this.slot(1)] <= tick) {
      this.first = this.slot(1);
      this.count--;
    }
  }

  /** Writes what lies at a moment; new: it has appeared since, as it is. */
  at(m: Moment, isNew: boolean, out: Float64Array): boolean {
    if (this.count === 0) return false;
    let from = 0;
    while (from + 1 < this.count && this.ticks[this.slot(from + 1)] <= m.from) from++;
    let to = from;
    while (to + 1 < this.count && this.ticks[this.slot(to + 1)] <= m.to) to++;
    if (isNew) from = to;
    this.leaves.between(out, this.flats[this.slot(from)], this.flats[this.slot(to)], m.alpha);
    return true;
  }
}
