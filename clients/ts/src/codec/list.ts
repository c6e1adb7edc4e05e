// Slices, maps and sets (docs/WIRE.md, "Lists"): their elements, and the scripts that edit them.

import type { ByteReader } from "../wire/bytes.js";
import { TWO53, unsigned, unzigzag, unzigzagWide, type Unsigned } from "../wire/numbers.js";
import { outOfRange, refuse } from "../wire/refusal.js";
import { floatBits, floatFromBits, wideFromBits, wideBits } from "../wire/floats.js";
import { Blob, Form, isNumber, List, NO_ELEMENTS, type Layout, type Leaf } from "./layout.js";
import { editQuat } from "./quat.js";
import { exact, limited, number, readCell, readCells, readList, within } from "./value.js";

/** The memory that lists may still take while they are read; the reader of state sets it. */
export const budget = { left: Infinity };

/** Builds the elements of a list. Each depth of nesting has one builder, which is reused. */
class Builder {
  element!: Layout;
  count = 0;
  n = new Float64Array(64);
  readonly x: unknown[] = [];

  /** Makes room for some more elements. */
  grow(more: number): void {
    const size = (this.count + more) * this.element.nSize;
    if (size > this.n.length) {
      const n = new Float64Array(2 * size);
      n.set(this.n);
      this.n = n;
    }
  }

  /** Releases the builder for reuse. */
  free(): void {
    this.x.length = 0;
    depth--;
  }
}

const builders: Builder[] = [];
let depth = 0;

/** Begins an empty list. The caller has to free it in all cases. */
export function beginList(element: Layout): Builder {
  if (depth === builders.length) {
    builders.push(new Builder());
  }
  const b = builders[depth++];
  b.element = element;
  b.count = 0;
  return b;
}

/** The list of all elements. */
export function endList(b: Builder): List {
  if (b.count === 0) {
    return NO_ELEMENTS;
  }
  pay(b, 0);
  return new List(b.count, b.n.slice(0, b.count * b.element.nSize), b.x.slice());
}

/** Refuses a list that exceeds the memory limit. */
function pay(b: Builder, more: number): void {
  const size = (b.count + more) * (8 * b.element.nSize + 32 * b.element.xSize);
  if (size > budget.left) {
    refuse("memory is full");
  }
  if (more === 0) {
    budget.left -= size;
  }
}

/** Reads elements and appends them. */
export function readElements(r: ByteReader, l: Leaf, b: Builder, count: number): void {
  limited(l, b.count + count);
  if (count > r.left()) {
    refuse("unexpected end"); // each takes a byte at least
  }
  const e = b.element;
  b.grow(count);
  for (let i = 0; i < count; i++) {
    for (let k = 0; k < e.xSize; k++) {
      b.x.push(null);
    }
    readCells(r, e, b.n, b.count * e.nSize, b.x, b.count * e.xSize);
    b.count++;
  }
}

/** Appends elements of the baseline. */
function keep(l: Leaf, b: Builder, base: List, from: number, count: number): void {
  limited(l, b.count + count);
  pay(b, count);
  const e = b.element;
  b.grow(count);
  b.n.set(base.n.subarray(from * e.nSize, (from + count) * e.nSize), b.count * e.nSize);
  for (let i = from * e.xSize; i < (from + count) * e.xSize; i++) {
    b.x.push(base.x[i]);
  }
  b.count += count;
}

/** Reads a script that turns the elements of a baseline into the new ones. */
export function readScript(r: ByteReader, l: Leaf, base: List): List {
  const b = beginList(l.element!);
  try {
    return readSteps(r, l, base, b);
  } finally {
    b.free();
  }
}

function readSteps(r: ByteReader, l: Leaf, base: List, b: Builder): List {
  let old = 0; // elements of the baseline that are copied or skipped
  for (let first = true; ; first = false) {
    const head = r.uvarint();
    if (head === 0) {
      if (old === 0 && b.count === 0) {
        return base;
      }
      keep(l, b, base, old, base.count - old);
      return checkKeys(l, endList(b));
    }
    if (head === 1 && first) {
      return readList(r, l);
    }
    const op = head % 4;
    const count = (head - op) / 4;
    if (count === 0 || head >= TWO53) {
      refuse("malformed list");
    }
    if (op === 3) {
      readElements(r, l, b, count);
      continue;
    }
    if (count > base.count - old) {
      refuse("malformed list");
    }
    if (op !== 1) {
      keep(l, b, base, old, count);
      if (op === 2) edit(r, b, count);
    }
    old += count;
  }
}

/** Reads the differences of the last elements, which hold the baseline's values. */
function edit(r: ByteReader, b: Builder, count: number): void {
  const e = b.element;
  const leaves = e.leaves.length;
  for (let i = b.count - count; i < b.count; i++) {
    const size = leaves > 1 ? (leaves + 7) >> 3 : 0;
    const mask = r.skip(size);
    for (let k = 0; k < Math.max(8 * size, 1); k++) {
      if (size > 0 && ((r.bytes[mask + (k >> 3)] >> (k & 7)) & 1) === 0) {
        continue;
      }
      if (k >= leaves) {
        refuse("malformed list");
      }
      editCell(r, e.leaves[k], b.n, i * e.nSize, b.x, i * e.xSize);
    }
  }
}

/** Reads the difference of one leaf of an element. */
export function editCell(r: ByteReader, l: Leaf, n: Float64Array, nb: number, x: unknown[], xb: number): void {
  const at = nb + l.at;
  switch (l.form) {
    case Form.Bool:
      n[at] = 1 - n[at];
      break;
    case Form.Int:
      n[at] = editInt(r, l, n[at]);
      break;
    case Form.Float32: {
      const d = r.zigzag();
      if (d !== (d | 0)) {
        outOfRange();
      }
      n[at] = number(floatFromBits((floatBits(n[at]) + d) | 0));
      break;
    }
    case Form.Float64:
      n[at] = number(wideFromBits(wideBits(n[at]) + unzigzagWide(exact(r))));
      break;
    case Form.Wide: {
      const v = (x[xb + l.at] as bigint) + unzigzagWide(exact(r));
      x[xb + l.at] = l.unsigned ? BigInt.asUintN(64, v) : BigInt.asIntN(64, v);
      break;
    }
    case Form.Ref:
      x[xb + l.at] = unsigned(BigInt(x[xb + l.at] as Unsigned) + unzigzagWide(exact(r)));
      break;
    case Form.Quat:
      editQuat(l, n, at, exact(r));
      break;
    case Form.List:
      x[xb + l.at] = readScript(r, l, x[xb + l.at] as List);
      break;
    default:
      readCell(r, l, n, nb, x, xb);
  }
}

/** Applies a difference to an Int: modulo 2^64, and then within its bounds. */
function editInt(r: ByteReader, l: Leaf, old: number): number {
  const d = r.uvarint();
  if (d < TWO53 / 4 && Math.abs(old) < TWO53 / 4) {
    return within(l, old + unzigzag(d));
  }
  const wide = BigInt(old) + unzigzagWide(d < TWO53 ? BigInt(d) : r.wide());
  const v = l.unsigned ? BigInt.asUintN(64, wide) : BigInt.asIntN(64, wide);
  return v >= BigInt(l.low) && v <= BigInt(l.high) ? Number(v) : outOfRange();
}

/** Refuses keys of a map or set that do not ascend. */
export function checkKeys(l: Leaf, list: List): List {
  if (l.map) {
    const e = l.element!;
    for (let i = 1; i < list.count; i++) {
      if (!rises(e, list, i)) {
        refuse("malformed list");
      }
    }
  }
  return list;
}

/** Reports whether the key of element i is above the key before it. */
function rises(e: Layout, list: List, i: number): boolean {
  const key = e.leaves[0];
  if (isNumber(key.form)) {
    return list.n[i * e.nSize + key.at] > list.n[(i - 1) * e.nSize + key.at];
  }
  const [a, b] = [list.x[(i - 1) * e.xSize + key.at], list.x[i * e.xSize + key.at]];
  if (key.form === Form.Text) {
    return compareBytes((a as Blob).bytes, (b as Blob).bytes) < 0;
  }
  return (a as Unsigned) < (b as Unsigned);
}

/** Compares bytes in the order of texts. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const n = Math.min(a.length, b.length);
  for (let i = 0; i < n; i++) {
    if (a[i] !== b[i]) {
      return a[i] - b[i];
    }
  }
  return a.length - b.length;
}
