// Converts cells to a program's values: plain objects, arrays, Maps and Sets, and numbers as on the
// server.

import { unitOf } from "./quat.js";
import { Blob, Form, isNumber, Leaf, List, type Branch, type Layout, type Node } from "./layout.js";
import type { Unsigned } from "../wire/numbers.js";
import { Kind } from "./tables.js";

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

/**
 * Decodes UTF-8. The replacements of invalid bytes never take more bytes than the original, so that
 * the text fits its field.
 */
function textOf(bytes: Uint8Array): string {
  const s = utf8.decode(bytes);
  return s.includes("\ufffd") && encoder.encode(s).length > bytes.length ? s.replaceAll("\ufffd", "?") : s;
}

/** The value of a number of steps. */
export function stepped(l: Leaf, steps: number): number {
  const v = (steps * l.num) / l.den;
  return l.single ? Math.fround(v) : v;
}

/** The value of a leaf. Values other than numbers are new objects that belong to the caller. */
export function showLeaf(l: Leaf, n: Float64Array, nb: number, x: readonly unknown[], xb: number): unknown {
  switch (l.form) {
    case Form.Bool:
      return n[nb + l.at] !== 0;
    case Form.Int:
      return l.den === 0 ? n[nb + l.at] : stepped(l, n[nb + l.at]);
    case Form.Float32:
    case Form.Float64:
      return n[nb + l.at];
    case Form.Quat: {
      const q = [0, 0, 0, 0];
      unitOf(l, n, nb + l.at, q, 0);
      return q;
    }
    case Form.Wide:
      return x[xb + l.at];
    case Form.Ref:
      return Number(x[xb + l.at] as Unsigned);
    case Form.List:
      return showList(l, x[xb + l.at] as List);
    default:
      return showBlob(l, x[xb + l.at] as Blob | null);
  }
}

function showBlob(l: Leaf, b: Blob | null): unknown {
  if (b === null) {
    return null;
  }
  switch (l.form) {
    case Form.Text:
      return (b.shown ??= textOf(b.bytes));
    case Form.Proto:
      return l.codec === undefined ? b.bytes.slice() : (b.shown ??= l.codec.decode(b.bytes));
    default:
      return b.bytes.slice();
  }
}

function showList(l: Leaf, list: List): unknown {
  const e = l.element!;
  const at = (i: number, node: Node) => show(node, list.n, i * e.nSize, list.x, i * e.xSize);
  if (!l.map) {
    return Array.from({ length: list.count }, (_, i) => at(i, e.root));
  }
  const [key, value] = (e.root as Branch).nodes;
  if (value === undefined) {
    return new Set(Array.from({ length: list.count }, (_, i) => at(i, key)));
  }
  return new Map(Array.from({ length: list.count }, (_, i) => [at(i, key), at(i, value)]));
}

/** Makes the value of a node. */
export function show(node: Node, n: Float64Array, nb: number, x: readonly unknown[], xb: number): unknown {
  if (node instanceof Leaf) {
    return showLeaf(node, n, nb, x, xb);
  }
  const parts: Record<string | number, unknown> | unknown[] = node.array ? [] : {};
  for (let i = 0; i < node.keys.length; i++) {
    (parts as Record<string | number, unknown>)[node.keys[i]] = show(node.nodes[i], n, nb, x, xb);
  }
  return parts;
}

/** Lists the structs and arrays of a value, in the order in which leaves refer to them. */
export function containersOf(node: Node, value: unknown, into: Record<string | number, unknown>[] = []): Record<string | number, unknown>[] {
  if (!(node instanceof Leaf)) {
    const v = value as Record<string | number, unknown>;
    into.push(v);
    for (let i = 0; i < node.keys.length; i++) {
      containersOf(node.nodes[i], v[node.keys[i]], into);
    }
  }
  return into;
}

/** The leaves of a layout that are numbers, for interpolation: see FlatLeaf. */
export function flatLeaves(layout: Layout): Leaf[] {
  return layout.leaves.filter((l) => isNumber(l.form));
}

/** Writes the numbers in the flat layout; the places are those of the cells. */
export function flatten(leaves: readonly Leaf[], n: Float64Array, into: Float64Array): void {
  for (let i = 0; i < leaves.length; i++) {
    const l = leaves[i];
    if (l.form === Form.Quat) {
      unitOf(l, n, l.at, into, l.at);
    } else {
      into[l.at] = l.den === 0 ? n[l.at] : stepped(l, n[l.at]);
    }
  }
}

/** Writes numbers in the flat layout into the containers of a value. */
export function unflatten(leaves: readonly Leaf[], flat: Float64Array, containers: readonly Record<string | number, unknown>[]): void {
  for (let i = 0; i < leaves.length; i++) {
    const l = leaves[i];
    const c = containers[l.container];
    if (l.form === Form.Quat) {
      const q = c[l.key] as number[];
      for (let k = 0; k < 4; k++) q[k] = flat[l.at + k];
    } else {
      c[l.key] = l.form === Form.Bool ? flat[l.at] !== 0 : flat[l.at];
    }
  }
}

/** The kind of number of a flat leaf. */
export function flatKind(l: Leaf): "integer" | "float" | "quat" | "bool" {
  switch (l.form) {
    case Form.Bool:
      return "bool";
    case Form.Quat:
      return "quat";
    case Form.Int:
      return l.type.kind < Kind.Float32 ? "integer" : "float";
    default:
      return "float";
  }
}
