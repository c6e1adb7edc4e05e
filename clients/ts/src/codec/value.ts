// Reads and writes the cells of values in their whole form (docs/WIRE.md, "Values").

import { ByteReader, type ByteWriter } from "../wire/bytes.js";
import { TWO53, rounded, unsigned, unzigzagWide, zigzag, zigzagWide, type Unsigned } from "../wire/numbers.js";
import { outOfRange, refuse } from "../wire/refusal.js";
import { Blob, Form, List, NO_BYTES, type Layout, type Leaf } from "./layout.js";
import { beginList, checkKeys, endList, readElements } from "./list.js";
import { readQuat, writeQuat } from "./quat.js";

/** Reads all leaves of a layout into the cells that begin at nb and xb. */
export function readCells(r: ByteReader, layout: Layout, n: Float64Array, nb: number, x: unknown[], xb: number): void {
  const leaves = layout.leaves;
  for (let i = 0; i < leaves.length; i++) {
    readCell(r, leaves[i], n, nb, x, xb);
  }
}

/** Reads one leaf. */
export function readCell(r: ByteReader, l: Leaf, n: Float64Array, nb: number, x: unknown[], xb: number): void {
  switch (l.form) {
    case Form.Bool: {
      const v = r.u8();
      n[nb + l.at] = v <= 1 ? v : outOfRange();
      break;
    }
    case Form.Int:
      n[nb + l.at] = readInt(r, l);
      break;
    case Form.Wide: {
      const v = exact(r);
      x[xb + l.at] = l.unsigned ? v : unzigzagWide(v);
      break;
    }
    case Form.Float32:
      n[nb + l.at] = number(r.f32());
      break;
    case Form.Float64:
      n[nb + l.at] = number(r.f64());
      break;
    case Form.Quat:
      readQuat(r, l, n, nb + l.at);
      break;
    default:
      x[xb + l.at] = readOther(r, l);
  }
}

function readOther(r: ByteReader, l: Leaf): unknown {
  switch (l.form) {
    case Form.Ref: {
      const v = r.uvarint();
      return v < TWO53 ? v : unsigned(r.wide());
    }
    case Form.Fixed:
      return new Blob(r.copy(l.max));
    case Form.Proto: {
      const size = r.uvarint();
      return size === 0 ? null : checkedProto(l, blob(r, limited(l, size - 1)));
    }
    case Form.List:
      return readList(r, l);
    default:
      return blob(r, limited(l, r.uvarint()));
  }
}

function blob(r: ByteReader, size: number): Blob {
  return size === 0 ? NO_BYTES : new Blob(r.copy(size));
}

/** Refuses bytes that the game's codec of the type, if there is one, cannot decode. */
function checkedProto(l: Leaf, b: Blob): Blob {
  if (l.codec === undefined) {
    return b;
  }
  const own = new Blob(b.bytes); // another type may have the same bytes, or none
  try {
    own.shown = l.codec.decode(b.bytes);
  } catch {
    refuse("not a protobuf message");
  }
  return own;
}

/** Reads a list in its whole form. */
export function readList(r: ByteReader, l: Leaf): List {
  const b = beginList(l.element!);
  try {
    readElements(r, l, b, r.uvarint());
    return checkKeys(l, endList(b));
  } finally {
    b.free();
  }
}

/** Returns the number of bytes or elements, or refuses one over the limit. */
export function limited(l: Leaf, size: number): number {
  return size <= l.max ? size : refuse("too long");
}

/** Returns a float, or refuses NaN. */
export function number(v: number): number {
  return v === v ? v : outOfRange();
}

/** Refuses a number that an Int cannot hold. */
export function within(l: Leaf, v: number): number {
  return v >= l.low && v <= l.high ? v : outOfRange();
}

function readInt(r: ByteReader, l: Leaf): number {
  if (l.ranged) {
    const v = r.uvarint();
    const place = v < TWO53 ? l.low + v : rounded(BigInt(l.low) + r.wide());
    return within(l, place);
  }
  return within(l, l.unsigned ? r.uvarint() : r.zigzag());
}

/** A uvarint as a bigint. */
export function exact(r: ByteReader): bigint {
  const v = r.uvarint();
  return v < TWO53 ? BigInt(v) : r.wide();
}

/** Writes all leaves of a layout, or only the leaves of a mask. */
export function writeCells(w: ByteWriter, layout: Layout, n: Float64Array, nb: number, x: readonly unknown[], xb: number, mask?: Uint8Array): void {
  const leaves = layout.leaves;
  for (let i = 0; i < leaves.length; i++) {
    if (mask === undefined || mask[i] === 1) {
      writeCell(w, leaves[i], n, nb, x, xb);
    }
  }
}

/** Writes one leaf. */
export function writeCell(w: ByteWriter, l: Leaf, n: Float64Array, nb: number, x: readonly unknown[], xb: number): void {
  switch (l.form) {
    case Form.Bool:
      w.u8(n[nb + l.at]);
      break;
    case Form.Int:
      writeInt(w, l, n[nb + l.at]);
      break;
    case Form.Wide: {
      const v = x[xb + l.at] as bigint;
      w.uvarintWide(l.unsigned ? v : zigzagWide(v));
      break;
    }
    case Form.Float32:
      w.f32(n[nb + l.at]);
      break;
    case Form.Float64:
      w.f64(n[nb + l.at]);
      break;
    case Form.Quat:
      writeQuat(w, l, n, nb + l.at);
      break;
    case Form.Ref:
      writeUnsigned(w, x[xb + l.at] as Unsigned);
      break;
    case Form.List:
      writeList(w, l.element!, x[xb + l.at] as List);
      break;
    default:
      writeBlob(w, l, x[xb + l.at] as Blob | null);
  }
}

function writeInt(w: ByteWriter, l: Leaf, v: number): void {
  if (l.ranged) {
    writeUnsigned(w, v - l.low < TWO53 ? v - l.low : BigInt(v) - BigInt(l.low));
  } else if (l.unsigned) {
    w.uvarint(v);
  } else if (Math.abs(v) < TWO53 / 2) {
    w.uvarint(zigzag(v));
  } else {
    w.uvarintWide(zigzagWide(BigInt(v)));
  }
}

/** Writes a uvarint of any 64 bits. */
export function writeUnsigned(w: ByteWriter, v: Unsigned): void {
  if (typeof v === "number") {
    w.uvarint(v);
  } else {
    w.uvarintWide(v);
  }
}

function writeBlob(w: ByteWriter, l: Leaf, b: Blob | null): void {
  if (b === null) {
    w.u8(0);
    return;
  }
  if (l.form !== Form.Fixed) {
    w.uvarint(b.bytes.length + (l.form === Form.Proto ? 1 : 0));
  }
  w.raw(b.bytes);
}

function writeList(w: ByteWriter, element: Layout, list: List): void {
  w.uvarint(list.count);
  for (let i = 0; i < list.count; i++) {
    writeCells(w, element, list.n, i * element.nSize, list.x, i * element.xSize);
  }
}
