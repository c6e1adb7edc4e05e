// Interpolates the numbers of a class between two versions, on their flat layout (Replicated.flat).

import type { ObjectClass } from "../codec/schema.js";
import type { ClassSchema, Lerp } from "../schema.js";

const enum How {
  Step,
  Linear,
  Angle,
  Degrees,
  Rotation,
  /** The second to fourth number of a rotation. */
  Rest,
}

const LERPS: Record<Lerp, How> = { none: How.Step, linear: How.Linear, angle: How.Angle, degrees: How.Degrees };
const CIRCLE = [0, 0, 2 * Math.PI, 360];
/** The limit of extrapolation beyond the newer value, in distances of the two values. */
const MAX_AHEAD = 64;
const NEARLY_ONE = 1 - 1e-9;

export class Leaves {
  private how: Uint8Array;
  private whole: Uint8Array;
  private teleports: number[] = [];
  /** The paths in a state of the leaves outside of the flat layout, such as strings and lists. */
  readonly others: readonly (readonly (string | number)[])[];
  readonly size: number;

  constructor(
    readonly of: ObjectClass,
    known: ClassSchema | undefined,
  ) {
    this.size = of.flatSize;
    this.how = new Uint8Array(of.flatSize);
    this.whole = new Uint8Array(of.flatSize);
    const flat = new Set<string>();
    for (const leaf of of.flat) {
      const path = leaf.path.join(".");
      flat.add(path);
      this.whole[leaf.at] = Number(leaf.kind === "integer");
      if (known?.teleport?.includes(path)) this.teleports.push(leaf.at);
      if (leaf.kind === "quat") {
        this.how[leaf.at] = How.Rotation;
        this.how.fill(How.Rest, leaf.at + 1, leaf.at + 4);
        if (known?.teleport?.includes(path)) this.teleports.push(leaf.at + 1, leaf.at + 2, leaf.at + 3);
      } else {
        const way = known?.lerp?.[path];
        this.how[leaf.at] = way ? LERPS[way] : leaf.kind === "float" ? How.Linear : How.Step;
      }
    }
    this.others = othersOf(of.create(), [], flat);
  }

  /** Copies the leaves outside of the flat layout from one state into another. */
  copyOthers(to: any, from: any): void {
    for (const path of this.others) {
      const last = path.length - 1;
      let a = to;
      let b = from;
      for (let i = 0; i < last; i++) {
        a = a[path[i]];
        b = b[path[i]];
      }
      a[path[last]] = b[path[last]];
    }
  }

  /** Writes the numbers of a plain state in the flat layout. */
  flatten(state: any, out: Float64Array): void {
    for (const leaf of this.of.flat) {
      let v = state;
      for (const key of leaf.path) v = v?.[key];
      if (leaf.kind === "quat") for (let k = 0; k < 4; k++) out[leaf.at + k] = v?.[k] ?? 0;
      else out[leaf.at] = Number(v ?? 0);
    }
  }

  /** Copies the leaves that a mask has and the mask before it had not. */
  reveal(to: Float64Array, from: Float64Array, before: Uint8Array, mask: Uint8Array | undefined): void {
    for (const { at, index, kind } of this.of.flat) {
      if (before[index] === 0 && (!mask || mask[index] !== 0)) to.set(from.subarray(at, at + (kind === "quat" ? 4 : 1)), at);
    }
  }

  /** Reports whether a leaf with the tag teleport differs. */
  teleported(a: Float64Array, b: Float64Array): boolean {
    for (const i of this.teleports) if (a[i] !== b[i]) return true;
    return false;
  }

  /**
   * Interpolates between two versions, t of the way from one to the other; beyond 1 numbers
   * continue their movement. Leaves without interpolation have the older value below 1.
   */
  between(out: Float64Array, from: Float64Array, to: Float64Array, t: number): void {
    if (t <= 0) to = from;
    else if (t === 1) from = to;
    else if (this.teleported(from, to)) {
      if (t < 1) to = from;
      else from = to;
    }
    t = Math.min(t, MAX_AHEAD);
    for (let i = 0; i < this.size; i++) {
      const a = from[i];
      const b = to[i];
      const how = this.how[i];
      if (how === How.Rotation) {
        slerp(out, from, to, i, t);
        i += 3;
      } else if (a === b || how === How.Step) out[i] = t < 1 ? a : b;
      else {
        const x = way(a, b, t, CIRCLE[how]);
        out[i] = !Number.isFinite(x) ? (t < 1 ? a : b) : this.whole[i] ? Math.round(x) : x;
      }
    }
  }

  /** Writes the difference of a from b: for angles and rotations the short way. */
  apart(off: Float64Array, a: Float64Array, b: Float64Array): void {
    for (let i = 0; i < this.size; i++) {
      const how = this.how[i];
      if (how === How.Rotation) {
        let dot = 0;
        for (let k = i; k < i + 4; k++) dot += a[k] * b[k];
        for (let k = i; k < i + 4; k++) off[k] = (dot < 0 ? -a[k] : a[k]) - b[k];
        i += 3;
      } else off[i] = how === How.Step ? 0 : apart(a[i], b[i], CIRCLE[how]);
    }
  }

  /** Moves numbers by a part of an offset. */
  shift(v: Float64Array, off: Float64Array, part: number): void {
    for (let i = 0; i < this.size; i++) {
      const how = this.how[i];
      if (how === How.Rotation) {
        let norm = 0;
        for (let k = i; k < i + 4; k++) norm += (v[k] + off[k] * part) ** 2;
        if (norm > 0) for (let k = i; k < i + 4; k++) v[k] = (v[k] + off[k] * part) / Math.sqrt(norm);
        i += 3;
      } else if (how !== How.Step && off[i] !== 0) {
        const x = wrap(v[i] + off[i] * part, v[i], v[i], CIRCLE[how]);
        v[i] = this.whole[i] ? Math.round(x) : x;
      }
    }
  }
}

function apart(x: number, y: number, circle: number): number {
  let d = x - y;
  if (circle !== 0) d -= circle * Math.round(d / circle);
  return Number.isFinite(d) ? d : 0;
}

/**
 * Interpolates a number at t from x to y, measured from the nearer of the two, so that values next
 * to an end are exact. Angles take the short way round.
 */
function way(x: number, y: number, t: number, circle: number): number {
  let d = y - x;
  if (circle !== 0) d -= circle * Math.round(d / circle);
  const at = t > 0.5 ? d * (t - 1) + y : d * t + x;
  return wrap(at, x, y, circle);
}

/** Wraps an angle into the turn of two others, if they are in one turn. */
function wrap(at: number, x: number, y: number, circle: number): number {
  if (circle === 0) return at;
  const least = Math.min(x, y) < 0 ? -circle / 2 : 0;
  if (Math.min(x, y) < least || Math.max(x, y) > least + circle) return at;
  return at < least ? at + circle : at >= least + circle ? at - circle : at;
}

/**
 * Interpolates two rotations, the short way round; a rotation that was never set counts as none.
 */
function slerp(out: Float64Array, a: Float64Array, b: Float64Array, i: number, t: number): void {
  let dot = 0;
  let set = 0;
  for (let k = i; k < i + 4; k++) {
    dot += a[k] * b[k];
    set += a[k] * a[k] > 0 ? 1 : 0;
    set += b[k] * b[k] > 0 ? 8 : 0;
  }
  let from = 1 - t;
  let to = t;
  if (set < 9 || set % 8 === 0) {
    from = t < 1 ? 1 : 0; // There is not a rotation between them.
    to = 1 - from;
  } else if (Math.abs(dot) < NEARLY_ONE) {
    const angle = Math.acos(Math.abs(dot));
    const sin = Math.sin(angle);
    from = Math.sin(from * angle) / sin;
    to = Math.sin(to * angle) / sin;
  }
  if (dot < 0) to = -to;
  let norm = 0;
  for (let k = i; k < i + 4; k++) norm += (out[k] = a[k] * from + b[k] * to) ** 2;
  norm = Math.sqrt(norm) || 1;
  for (let k = i; k < i + 4; k++) out[k] /= norm;
}

function othersOf(v: unknown, path: (string | number)[], flat: Set<string>): (string | number)[][] {
  if (flat.has(path.join("."))) return [];
  if (Array.isArray(v) && v.length > 0) return v.flatMap((e, i) => othersOf(e, [...path, i], flat));
  if (v !== null && typeof v === "object" && Object.getPrototypeOf(v) === Object.prototype) {
    return Object.entries(v).flatMap(([k, e]) => othersOf(e, [...path, k], flat));
  }
  return [path];
}
