// One replicated object: its stored versions, and its state for the program.

import type { Class } from "../codec/schema.js";
import { Blob, Form, isNumber, List, type Layout } from "../codec/layout.js";
import { containersOf, flatten, show, showLeaf } from "../codec/show.js";
import { same } from "../wire/bytes.js";
import { refuse } from "../wire/refusal.js";
import type { Version } from "../codec/delta.js";
import type { Replicated } from "./replica.js";

/** Counts the bytes of stored values; a string or list that several versions share counts once. */
export class Memory {
  used = 0;
  private readonly free = new Map<Class, Version[]>();

  constructor(readonly limit: number) {}

  /** The bytes of a version without its strings and lists. */
  static sizeOf(layout: Layout): number {
    return 240 + 8 * layout.nSize + 32 * layout.xSize;
  }

  /** Returns a version of a class with arbitrary values, which counts from now on. */
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

  /**
   * Takes back a version after the release of its strings and lists. Some versions are kept for
   * reuse.
   */
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

  /** The bytes of a version's strings and lists that no stored version has yet. */
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

  /** Counts the values of a version that is stored from now on, by 1, or removed, by -1. */
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

  /** Frees the unused versions. */
  trim(): void {
    for (const [c, pool] of this.free) {
      this.used -= pool.length * Memory.sizeOf(c.layout);
    }
    this.free.clear();
  }
}

const SPARE_VERSIONS = 1024; // of one class

/** The number of ticks for which versions are stored. */
const HORIZON = 128;

/** An object that the server has shown. */
export class ReplicatedObject implements Replicated {
  shown = false;
  data: unknown = undefined;
  /** The leaves that may be read; undefined is all. */
  mask: Uint8Array | undefined = undefined;
  /** In the order of their ticks: the last one is the shown version. */
  readonly versions: Version[] = [];
  /** The kind of the object's entry in changes, empty without one. */
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

  /** Updates the leaves of the state that may have changed. */
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

  /** Stores a version, the newest, and drops the versions that no delta can refer to any more. */
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

  /** Drops all versions but the newest, which stops counting, because the object has despawned. */
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

  /** Refuses nonzero values in leaves that may not be read. */
  checkMask(v: Version, mask: Uint8Array | undefined): void {
    if (mask === undefined) {
      return;
    }
    const layout = this.class.layout;
    for (let i = 0; i < layout.leaves.length; i++) {
      const l = layout.leaves[i];
      if (mask[i] === 0 && !isZero(layout, l.form, l.at, v)) {
        refuse("empty mask");
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
