// One replicated object: the versions that are stored of it, and what a program sees.

import type { Class } from "../codec/schema.js";
import { Blob, Form, isNumber, List, type Layout } from "../codec/layout.js";
import { containersOf, flatten, show, showLeaf } from "../codec/show.js";
import { same } from "../wire/bytes.js";
import { refuse } from "../wire/refusal.js";
import type { Version } from "../codec/delta.js";
import type { Replicated } from "./replica.js";

/** Counts the bytes of what is stored, each string and list once however many versions have it. */
export class Memory {
  used = 0;
  private readonly free = new Map<Class, Version[]>();

  constructor(readonly limit: number) {}

  /** What a version takes by itself. */
  static sizeOf(layout: Layout): number {
    return 240 + 8 * layout.nSize + 32 * layout.xSize;
  }

  /** A version of a class with any values, which counts from now on. */
  take(c: Class): Version {
    const pool = this.free.get(c);
    const v = pool?.pop();
    if (v !== undefined) {
      return v;
    }
    const size = Memory.sizeOf(c.layout);
    if (this.used + size > this.limit) {
      refuse("memory is full");
    }
    this.used += size;
    return { tick: 0, owner: 0, n: new Float64Array(c.layout.nSize), x: new Array(c.layout.xSize).fill(null) };
  }

  /** Takes back a version whose values hold nothing. Some are kept for the next ones. */
  give(c: Class, v: Version): void {
    let pool = this.free.get(c);
    if (pool === undefined) {
      this.free.set(c, (pool = []));
    }
    if (pool.length < SPARE_VERSIONS) {
      pool.push(v);
      v.x.fill(null);
    } else {
      this.used -= Memory.sizeOf(c.layout);
    }
  }

  /** How many bytes the values of a version take that none which is stored has. */
  newIn(x: readonly unknown[]): number {
    let size = 0;
    for (let i = 0; i < x.length; i++) {
      const v = x[i];
      if ((v instanceof Blob || v instanceof List) && v.holders === 0) {
        size += v.size + (v instanceof List ? this.newIn(v.x) : 0);
      }
    }
    return size;
  }

  /** Counts the values of a version that is stored from now on, by 1, or that no longer is, by -1. */
  count(x: readonly unknown[], by: 1 | -1): void {
    for (let i = 0; i < x.length; i++) {
      const v = x[i];
      if (v instanceof Blob || v instanceof List) {
        v.holders += by;
        if (v.holders === Math.max(by, 0)) {
          this.used += by * v.size;
          if (v instanceof List) this.count(v.x, by);
        }
      }
    }
  }

  /** Forgets the versions that nobody uses. */
  trim(): void {
    for (const [c, pool] of this.free) {
      this.used -= pool.length * Memory.sizeOf(c.layout);
    }
    this.free.clear();
  }
}

const SPARE_VERSIONS = 1024; // of one class

/** For how many ticks versions are stored. */
const HORIZON = 128;

/** An object that the server has shown. */
export class ReplicatedObject implements Replicated {
  shown = false;
  data: unknown = undefined;
  /** Which leaves may be read; undefined is all. */
  mask: Uint8Array | undefined = undefined;
  /** In the order of their ticks: the last one is what is shown. */
  readonly versions: Version[] = [];
  /** Whether changes has it, and as what. */
  change: "" | "spawned" | "changed" | "despawned" = "";

  private value: Record<string, unknown> | undefined;
  private containers: Record<string | number, unknown>[] = [];
  private valueTick = -1;
  private shownX: unknown[] = [];

  readonly class: Class;

  constructor(
    readonly id: number,
    c: Class,
    readonly lifetime: number,
    private readonly memory: Memory,
  ) {
    this.class = c;
  }

  get newest(): Version {
    return this.versions[this.versions.length - 1];
  }

  get tick(): number {
    return this.newest.tick;
  }

  get owner(): number {
    return Number(this.newest.owner);
  }

  get state(): Record<string, unknown> {
    const v = this.newest;
    if (this.value === undefined) {
      this.value = this.copy();
      this.containers = containersOf(this.class.layout.root, this.value);
      this.shownX = v.x.slice();
    } else if (this.valueTick !== v.tick) {
      this.refresh(v);
    }
    this.valueTick = v.tick;
    return this.value;
  }

  /** Writes what may have changed into the state. */
  private refresh(v: Version): void {
    const leaves = this.class.layout.leaves;
    for (let i = 0; i < leaves.length; i++) {
      const l = leaves[i];
      if (!isNumber(l.form)) {
        if (this.shownX[l.at] === v.x[l.at]) continue;
        this.shownX[l.at] = v.x[l.at];
      }
      this.containers[l.container][l.key] = showLeaf(l, v.n, 0, v.x, 0);
    }
  }

  copy(): Record<string, unknown> {
    const v = this.newest;
    return show(this.class.layout.root, v.n, 0, v.x, 0) as Record<string, unknown>;
  }

  flat(into: Float64Array): void {
    flatten(this.class.flatLeaves, this.newest.n, into);
  }

  /** The newest version up to a tick. */
  upTo(tick: number): Version | undefined {
    for (let i = this.versions.length - 1; i >= 0; i--) {
      if (this.versions[i].tick <= tick) {
        return this.versions[i];
      }
    }
    return undefined;
  }

  /** Stores a version, the newest, and drops what no delta can lead from any more. */
  store(v: Version): void {
    this.memory.count(v.x, 1);
    if (this.versions.length > 0 && this.newest.tick === v.tick) {
      this.drop(this.versions.pop()!);
      this.valueTick = -1;
    }
    this.versions.push(v);
    if (v.tick > HORIZON) {
      this.dropBefore(v.tick - HORIZON);
    }
  }

  /** Drops the versions that were no longer the newest at a tick. */
  dropBefore(tick: number): void {
    let n = 0;
    while (n + 1 < this.versions.length && this.versions[n + 1].tick <= tick) {
      this.drop(this.versions[n++]);
    }
    if (n > 0) {
      this.versions.copyWithin(0, n);
      this.versions.length -= n;
    }
  }

  /** Leaves nothing but the newest version, which counts no longer: the object is gone. */
  end(): void {
    this.shown = false;
    this.dropBefore(Infinity);
    const v = this.newest;
    this.memory.count(v.x, -1);
    this.memory.used -= Memory.sizeOf(this.class.layout);
  }

  private drop(v: Version): void {
    this.memory.count(v.x, -1);
    this.memory.give(this.class, v);
  }

  /** Refuses values of leaves that may not be read: they are zero. */
  checkMask(v: Version, mask: Uint8Array | undefined): void {
    if (mask === undefined) {
      return;
    }
    const layout = this.class.layout;
    for (let i = 0; i < layout.leaves.length; i++) {
      const l = layout.leaves[i];
      if (mask[i] === 0 && !isZero(layout, l.form, l.at, v)) {
        refuse("a mask of nothing");
      }
    }
  }
}

function isZero(layout: Layout, form: Form, at: number, v: Version): boolean {
  if (isNumber(form)) {
    return Object.is(v.n[at], layout.zeroN[at]);
  }
  const [value, zero] = [v.x[at], layout.zeroX[at]];
  if (value instanceof Blob && zero instanceof Blob) {
    return same(value.bytes, zero.bytes);
  }
  return value instanceof List ? value.count === 0 : value === zero;
}
