// Encodes a program's values in their whole form (docs/WIRE.md, "Values").

import { ByteWriter } from "../wire/bytes.js";
import { zigzagWide } from "../wire/numbers.js";
import { Form, Leaf, type Branch, type Node } from "./layout.js";
import { compareBytes } from "./list.js";
import { packQuat, roundToEven } from "./quat.js";
import { Kind } from "./tables.js";
import { writeCell, writeUnsigned } from "./value.js";

const encoder = new TextEncoder();
const quat = new Float64Array(4);
const one = new Float64Array(1);
const NOTHING: readonly unknown[] = [];

function fail(path: string, what: string): never {
  throw new RangeError(`${path || "the message"} ${what}`);
}

/**
 * Whether whole numbers beyond their type wrap, as they do on the server, instead of being refused.
 */
export const mode = { wraps: false };

/** Writes a value; undefined is the zero value. Throws a RangeError with the path of the field. */
export function writeValue(w: ByteWriter, node: Node, value: unknown, path: string): void {
  if (node instanceof Leaf) {
    writeLeaf(w, node, value, path);
    return;
  }
  if (value !== undefined && (typeof value !== "object" || value === null)) {
    fail(path, "is not an object");
  }
  const parts = (value ?? {}) as Record<string | number, unknown>;
  for (let i = 0; i < node.keys.length; i++) {
    const key = node.keys[i];
    writeValue(w, node.nodes[i], parts[key], path === "" ? `${key}` : `${path}.${key}`);
  }
}

function writeLeaf(w: ByteWriter, l: Leaf, value: unknown, path: string): void {
  switch (l.form) {
    case Form.Bool:
      w.u8(value ? 1 : 0);
      break;
    case Form.Int:
      one[0] = l.den === 0 ? integer(l, value ?? 0, path) : steps(l, value, path);
      writeCell(w, l, one, -l.at, NOTHING, 0);
      break;
    case Form.Wide: {
      const v = wide(l, value ?? 0n, path);
      w.uvarintWide(l.unsigned ? v : zigzagWide(v));
      break;
    }
    case Form.Float32:
    case Form.Float64: {
      const v = float(value ?? 0, path);
      if (l.form === Form.Float32) w.f32(v);
      else w.f64(v);
      break;
    }
    case Form.Ref: {
      const v = value ?? 0;
      writeUnsigned(w, typeof v === "bigint" ? v : whole(v, 0, 2 ** 53, path));
      break;
    }
    case Form.Quat:
      packQuat(l, (value ?? [0, 0, 0, 0]) as ArrayLike<number>, quat, 0);
      writeCell(w, l, quat, -l.at, NOTHING, 0);
      break;
    case Form.List:
      writeList(w, l, value, path);
      break;
    default:
      writeBytes(w, l, value, path);
  }
}

/** Returns a whole number, or throws a RangeError for one outside the bounds. */
function whole(v: unknown, low: number, high: number, path: string): number {
  const n = typeof v === "bigint" ? Number(v) : v;
  return typeof n === "number" && Number.isInteger(n) && n >= low && n <= high ? n : fail(path, `cannot be ${String(v)}`);
}

function integer(l: Leaf, v: unknown, path: string): number {
  if (mode.wraps && Number.isSafeInteger(v)) {
    const span = l.high - l.low + 1;
    v = l.low + (((((v as number) - l.low) % span) + span) % span);
  }
  return whole(v, l.low, l.high, path);
}

function wide(l: Leaf, v: unknown, path: string): bigint {
  if (typeof v !== "bigint" && !(typeof v === "number" && Number.isSafeInteger(v))) {
    fail(path, `cannot be ${String(v)}`);
  }
  const n = BigInt(v);
  const fits = l.unsigned ? BigInt.asUintN(64, n) : BigInt.asIntN(64, n);
  return mode.wraps || fits === n ? fits : fail(path, `cannot be ${n}`);
}

/** Returns the float that is written: 0 for NaN. */
function float(v: unknown, path: string): number {
  if (typeof v !== "number") {
    fail(path, "is not a number");
  }
  return v === v ? v : 0;
}

/** The number of steps of a quantised value, half to even and clamped. */
function steps(l: Leaf, value: unknown, path: string): number {
  if (value === undefined) {
    return l.zero;
  }
  const v = float(value, path);
  const n = roundToEven(((l.single ? Math.fround(v) : v) * l.den) / l.num);
  return Math.min(Math.max(n, l.low), l.high);
}

function writeBytes(w: ByteWriter, l: Leaf, value: unknown, path: string): void {
  if (l.form === Form.Proto) {
    if (value === undefined || value === null) {
      w.u8(0);
      return;
    }
    value = l.codec === undefined ? value : l.codec.encode(value);
  }
  const bytes = l.form === Form.Text ? encoder.encode(String(value ?? "")) : (value ?? new Uint8Array(l.form === Form.Fixed ? l.max : 0));
  if (!(bytes instanceof Uint8Array)) {
    fail(path, "is not a Uint8Array");
  }
  if (l.form === Form.Fixed) {
    if (bytes.length !== l.max) fail(path, `has ${bytes.length} bytes, not ${l.max}`);
  } else {
    if (bytes.length > l.max) fail(path, `has ${bytes.length} bytes, more than ${l.max}`);
    w.uvarint(bytes.length + (l.form === Form.Proto ? 1 : 0));
  }
  w.raw(bytes);
}

function writeList(w: ByteWriter, l: Leaf, value: unknown, path: string): void {
  const all = value === undefined || value === null ? [] : l.map ? entries(l, value, path) : value;
  if (!Array.isArray(all) && !ArrayBuffer.isView(all)) {
    fail(path, "is not an array");
  }
  const list = all as ArrayLike<unknown>;
  if (list.length > l.max) {
    fail(path, `has ${list.length} elements, more than ${l.max}`);
  }
  w.uvarint(list.length);
  for (let i = 0; i < list.length; i++) {
    writeValue(w, l.element!.root, list[i], `${path}.${i}`);
  }
}

/** The entries of a Map or Set, in the order of their keys, as structs. */
function entries(l: Leaf, value: unknown, path: string): unknown[] {
  const key = (l.element!.root as Branch).nodes[0] as Leaf;
  if (!(value instanceof Map) && !(value instanceof Set)) {
    fail(path, "is not a Map or Set");
  }
  const all = Array.from(value.entries(), ([Key, Value]) => ({ Key, Value }));
  if (key.type.kind === Kind.String) {
    const bytes = new Map(all.map((e) => [e, encoder.encode(String(e.Key))]));
    return all.sort((a, b) => compareBytes(bytes.get(a)!, bytes.get(b)!));
  }
  return all.sort((a, b) => (a.Key < b.Key ? -1 : 1));
}
