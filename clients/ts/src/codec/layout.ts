// The compiled form of a type: the leaves of the flattened struct, and the places of their values.
// Numbers are in a Float64Array, which holds many without an object for each; all other values are
// in an array beside it. Both together are the cells of a value.

import { TWO53 } from "../wire/numbers.js";
import type { ProtoCodec, ProtoCodecs } from "./schema.js";
import { Kind, MAX_LEAVES, senseless, type Field, type Type } from "./tables.js";

/** How the values of a leaf are stored and read. */
export const enum Form {
  /** 0 or 1. */
  Bool,
  /** A whole number within low and high: an integer up to 32 bits, or a number of steps. */
  Int,
  /** An integer of 64 bits or an instant, as a bigint. */
  Wide,
  Float32,
  Float64,
  /**
   * Four numbers: the index of the largest component, -1 for no rotation, and the steps of the
   * others.
   */
  Quat,
  /** An id, as a number, or as a bigint where a number would not be exact. */
  Ref,
  /** A Blob of UTF-8. */
  Text,
  /** A Blob. */
  Bytes,
  /** A Blob of a fixed length. */
  Fixed,
  /** A Blob, or null for no message. */
  Proto,
  /** A List. */
  List,
}

/** Whether values of the form are numbers in the Float64Array. */
export function isNumber(form: Form): boolean {
  return form === Form.Bool || form === Form.Int || (form >= Form.Float32 && form <= Form.Quat);
}

/** One leaf of a flattened struct. */
export class Leaf {
  form: Form;
  /** The index of its cell, in the Float64Array or in the array beside it. */
  at = 0;
  /** The bounds of an Int, and the nearest place to 0 within them. */
  low = 0;
  high = 0;
  zero = 0;
  /** Whether the bounds are those of a range: values are counted from the lowest and clamped. */
  ranged = false;
  /** Whether it is an integer without a sign. */
  unsigned = false;
  /** The step of a quantised leaf: value = steps * num / den. 0 for no steps. */
  num = 0;
  den = 0;
  /** Whether a float has 32 bits, in steps or without. */
  single = false;
  /** Bits of a quaternion's component, and the M of docs/WIRE.md. */
  bits = 0;
  m = 0;
  /** The most bytes or elements. */
  max = 0;
  /** Of a list: the layout of its elements, and whether they have ascending keys. */
  element: Layout | undefined;
  map = false;
  /** The game's codec of a protobuf message, if it has one. */
  codec: ProtoCodec | undefined;
  /** Whether the leaf before has another kind or step, so that a run of distances begins. */
  begins = true;

  constructor(
    readonly type: Type,
    readonly path: readonly (string | number)[],
    /** The container in a state, in the order of Layout.containers, and the key in it. */
    readonly container: number,
    readonly key: string | number,
    protos: ProtoCodecs,
  ) {
    const k = type.kind;
    this.form = formOf(type);
    this.max = type.max;
    this.num = type.num;
    this.den = type.den;
    this.single = k === Kind.Float32 || k === Kind.Range32;
    this.unsigned = k >= Kind.Uint8 && k <= Kind.Uint64;
    this.ranged = k === Kind.Range32 || k === Kind.Range64;
    if (this.form === Form.Int) {
      [this.low, this.high] = boundsOf(type);
      this.zero = Math.min(Math.max(0, this.low), this.high);
    } else if (this.form === Form.Quat) {
      this.bits = type.max;
      this.m = 2 ** (type.max - 1) - 1;
    } else if (this.form === Form.List) {
      this.map = k === Kind.Map;
      this.element = layoutOf(type.element!, protos);
    } else if (this.form === Form.Proto) {
      this.codec = protos(type.proto);
    }
  }
}

function formOf(t: Type): Form {
  switch (t.kind) {
    case Kind.Bool:
      return Form.Bool;
    case Kind.Int64:
    case Kind.Uint64:
    case Kind.Instant:
      return Form.Wide;
    case Kind.Float32:
      return t.den === 0 ? Form.Float32 : Form.Int;
    case Kind.Float64:
      return t.den === 0 ? Form.Float64 : Form.Int;
    case Kind.Quat:
      return Form.Quat;
    case Kind.Ref:
      return Form.Ref;
    case Kind.String:
      return Form.Text;
    case Kind.Bytes:
      return Form.Bytes;
    case Kind.ByteArray:
      return Form.Fixed;
    case Kind.Proto:
      return Form.Proto;
    case Kind.Slice:
    case Kind.Map:
      return Form.List;
    default:
      return Form.Int;
  }
}

function boundsOf(t: Type): [number, number] {
  switch (t.kind) {
    case Kind.Int8:
      return [-(2 ** 7), 2 ** 7 - 1];
    case Kind.Int16:
      return [-(2 ** 15), 2 ** 15 - 1];
    case Kind.Int32:
      return [-(2 ** 31), 2 ** 31 - 1];
    case Kind.Uint8:
      return [0, 2 ** 8 - 1];
    case Kind.Uint16:
      return [0, 2 ** 16 - 1];
    case Kind.Uint32:
      return [0, 2 ** 32 - 1];
    case Kind.Float32:
      return [1 - 2 ** 31, 2 ** 31 - 1];
    case Kind.Float64:
      return [-TWO53, TWO53];
    default:
      return [t.low, t.high];
  }
}

/** How a program's value is built from leaves: a leaf, or fields or elements by their keys. */
export type Node = Leaf | Branch;

export interface Branch {
  readonly keys: readonly (string | number)[];
  readonly nodes: readonly Node[];
  readonly array: boolean;
}

const EMPTY = new Uint8Array(0);

/** The bytes of a value: of a string, a byte string or a protobuf message. They never change. */
export class Blob {
  /** The number of values of a replica that refer to it. */
  holders = 0;
  readonly size: number;
  /** The program's form of the value, cached by the first read. */
  shown: unknown = undefined;

  constructor(
    readonly bytes: Uint8Array,
    /** Whether it is part of a type, and does not count as memory of a replica. */
    shared = false,
  ) {
    this.size = shared ? 0 : 120 + bytes.length;
  }
}

/** The elements of a slice, map or set, with their cells one after another. */
export class List {
  holders = 0;
  readonly size: number;

  constructor(
    readonly count: number,
    readonly n: Float64Array,
    readonly x: readonly unknown[],
  ) {
    this.size = count === 0 ? 0 : 200 + 8 * n.length + 32 * x.length;
  }
}

export const NO_BYTES = new Blob(EMPTY, true);
export const NO_ELEMENTS = new List(0, new Float64Array(0), []);

/** The most nested structs and arrays of a layout: it bounds arrays of empty elements. */
const MAX_CONTAINERS = 4096;

const compiled = new WeakMap<Type, Layout>();

/**
 * The compiled form of a type. Each type is compiled once, because arrays repeat their element
 * type.
 */
export function layoutOf(t: Type, protos: ProtoCodecs): Layout {
  let layout = compiled.get(t);
  if (layout === undefined) {
    layout = new Layout(t, protos);
    compiled.set(t, layout);
  }
  return layout;
}

/** The compiled form of a type. */
export class Layout {
  readonly leaves: Leaf[] = [];
  /** The numbers of cells of a value, in the Float64Array and beside it. */
  nSize = 0;
  xSize = 0;
  readonly zeroN: Float64Array;
  readonly zeroX: readonly unknown[];
  readonly root: Node;
  private containers = 0;

  constructor(
    type: Type,
    private readonly protos: ProtoCodecs,
  ) {
    this.root = this.compile(type, [], -1, "");
    for (let i = 1; i < this.leaves.length; i++) {
      const [a, b] = [this.leaves[i - 1].type, this.leaves[i].type];
      this.leaves[i].begins = a.kind !== b.kind || a.num !== b.num || a.den !== b.den;
    }
    this.zeroN = new Float64Array(this.nSize);
    const zeroX: unknown[] = new Array(this.xSize).fill(null);
    for (const l of this.leaves) {
      if (isNumber(l.form)) {
        this.zeroN[l.at] = l.form === Form.Quat ? -1 : l.zero;
      } else {
        zeroX[l.at] = zeroOf(l);
      }
    }
    this.zeroX = zeroX;
  }

  private compile(t: Type, path: readonly (string | number)[], container: number, key: string | number): Node {
    if (this.containers > MAX_CONTAINERS) {
      senseless();
    }
    if (t.kind === Kind.Struct) {
      const here = this.containers++;
      const nodes = t.fields.map((f) => this.compile(f.type, [...path, f.name], here, f.name));
      return { keys: t.fields.map((f) => f.name), nodes, array: false };
    }
    if (t.kind === Kind.Array) {
      return this.compileArray(t, path);
    }
    const leaf = new Leaf(t, path, container, key, this.protos);
    if (this.leaves.length === MAX_LEAVES) {
      senseless();
    }
    this.leaves.push(leaf);
    if (isNumber(leaf.form)) {
      leaf.at = this.nSize;
      this.nSize += leaf.form === Form.Quat ? 4 : 1;
    } else {
      leaf.at = this.xSize++;
    }
    return leaf;
  }

  private compileArray(t: Type, path: readonly (string | number)[]): Node {
    const here = this.containers++;
    const keys: number[] = [];
    const nodes: Node[] = [];
    for (let i = 0; i < t.max; i++) {
      nodes.push(this.compile(t.element!, [...path, i], here, i));
      keys.push(i);
    }
    return { keys, nodes, array: true };
  }
}

function zeroOf(l: Leaf): unknown {
  switch (l.form) {
    case Form.Wide:
      return 0n;
    case Form.Ref:
      return 0;
    case Form.Fixed:
      return new Blob(new Uint8Array(l.max), true);
    case Form.Proto:
      return null;
    case Form.List:
      return NO_ELEMENTS;
    default:
      return NO_BYTES;
  }
}

/** The type as text, as docs/WIRE.md writes it. */
export function textOf(t: Type): string {
  switch (t.kind) {
    case Kind.Array:
      return `[${t.max}]${textOf(t.element!)}`;
    case Kind.ByteArray:
      return `[${t.max}]byte`;
    case Kind.Slice:
      return `[]${textOf(t.element!)} max=${t.max}`;
    case Kind.Map: {
      const [key, value] = t.element!.fields;
      return value
        ? `map[${textOf(key.type)}]${textOf(value.type)} max=${t.max}`
        : `set[${textOf(key.type)}] max=${t.max}`;
    }
    case Kind.Struct:
      return `{${t.fields.map((f) => `${f.name} ${textOf(f.type)}`).join("; ")}}`;
    case Kind.Proto:
      return `proto ${t.proto}${t.max > 0 ? ` max=${t.max}` : ""}`;
    case Kind.String:
      return `string max=${t.max}`;
    case Kind.Bytes:
      return `bytes max=${t.max}`;
    case Kind.Quat:
      return `quat bits=${t.max}`;
    default:
      return numberText(t);
  }
}

const NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 ref instant".split(" ");

function numberText(t: Type): string {
  const ranged = t.kind === Kind.Range32 || t.kind === Kind.Range64;
  const name = ranged ? `float${t.kind === Kind.Range32 ? 32 : 64}` : NAMES[t.kind - 1];
  const step = t.den > 0 ? ` quant=${t.num}/${t.den}` : "";
  return name + step + (ranged ? ` steps=${t.low}:${t.high}` : "");
}

/** The type of a message as text: each field ends with a semicolon. */
export function messageText(t: Type): string {
  return t.kind === Kind.Struct ? `{${t.fields.map((f) => `${f.name} ${textOf(f.type)};`).join("")}}` : textOf(t);
}

/** A struct of these fields. */
export function structOf(fields: Field[]): Type {
  return { kind: Kind.Struct, max: 0, num: 0, den: 0, low: 0, high: 0, element: undefined, fields, proto: "" };
}
