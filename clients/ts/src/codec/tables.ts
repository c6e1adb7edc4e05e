// The tables of a schema in their encoded form, SchemaTables, and the checks of their types.

import { ByteReader } from "../wire/bytes.js";
import { textOf, SIZED, VARINT, Walker } from "../wire/protobuf.js";
import { refuse } from "../wire/refusal.js";

/** The kinds of types. */
export const enum Kind {
  Bool = 1,
  Int8,
  Int16,
  Int32,
  Int64,
  Uint8,
  Uint16,
  Uint32,
  Uint64,
  Float32,
  Float64,
  Ref,
  Instant,
  String,
  Bytes,
  ByteArray,
  Array,
  Slice,
  Struct,
  Proto,
  Range32,
  Range64,
  Quat,
  Map,
}

/** A type, as a table describes it. */
export interface Type {
  kind: Kind;
  max: number;
  num: number;
  den: number;
  low: number;
  high: number;
  element: Type | undefined;
  fields: Field[];
  proto: string;
}

export interface Field {
  name: string;
  type: Type;
}

export interface ClassTable {
  name: string;
  fields: Field[];
}

export interface MethodTable {
  name: string;
  kind: number;
  stages: number[];
  reliable: boolean;
  message: Type | undefined;
  reply: Type | undefined;
}

export interface Tables {
  classes: ClassTable[];
  methods: MethodTable[];
  input: Type | undefined;
}

/** The most levels of nested types, and the most leaves of a class, a message or an element. */
const MAX_LEVELS = 24;
export const MAX_LEAVES = 256;
const MAX_DECLARATIONS = 8192;

let declarations = 0;

/**
 * Refuses tables without a detailed reason, because the server checks its own schema and reports
 * the reason.
 */
export function senseless(): never {
  refuse("malformed tables");
}

/** Reads the bytes of a SchemaTables and checks every type. Throws a Refusal. */
export function readTables(bytes: Uint8Array): Tables {
  declarations = 0;
  const tables: Tables = { classes: [], methods: [], input: undefined };
  walk(bytes, [0, SIZED, SIZED, SIZED], (w) => {
    if (w.num === 1) tables.classes.push(readClass(w.body));
    else if (w.num === 2) tables.methods.push(readMethod(w.body));
    else tables.input = readType(w.body, 1);
  });
  unique(tables.classes);
  unique(tables.methods);
  if (tables.input) {
    checkMessage(tables.input);
  }
  return tables;
}

function walk(bytes: Uint8Array, known: readonly number[], field: (w: Walker) => void): void {
  const w = new Walker(bytes, known);
  while (w.next()) {
    if (++declarations > 8 * MAX_DECLARATIONS) {
      senseless();
    }
    field(w);
  }
}

function unique(all: readonly { name: string }[]): void {
  const seen = new Set<string>();
  for (const { name } of all) {
    if (seen.has(name)) {
      senseless();
    }
    seen.add(name);
  }
}

function checkName(bytes: Uint8Array): string {
  if (bytes.length === 0 || bytes.length > 64) {
    senseless();
  }
  return textOf(bytes);
}

const NO_NAME: Uint8Array = new Uint8Array(0);

function readClass(bytes: Uint8Array): ClassTable {
  let name: Uint8Array = NO_NAME;
  const fields: Field[] = [];
  walk(bytes, [0, SIZED, SIZED], (w) => {
    if (w.num === 1) name = w.body;
    else fields.push(readField(w.body, 2));
  });
  checkFields(fields);
  return { name: checkName(name), fields };
}

function readMethod(bytes: Uint8Array): MethodTable {
  let name: Uint8Array = NO_NAME;
  const m: MethodTable = { name: "", kind: 0, stages: [], reliable: false, message: undefined, reply: undefined };
  walk(bytes, [0, SIZED, VARINT, 0, 0, SIZED | VARINT, VARINT, SIZED, SIZED], (w) => {
    switch (w.num) {
      case 1:
        name = w.body;
        break;
      case 2:
        m.kind = w.value;
        break;
      case 5:
        stages(w, bytes, m.stages);
        break;
      case 6:
        m.reliable = w.value !== 0;
        break;
      case 7:
        m.message = readType(w.body, 1);
        break;
      default:
        m.reply = readType(w.body, 1);
    }
  });
  m.name = checkName(name);
  need((m.kind === 1 || m.kind === 2) && m.message !== undefined && (m.reply === undefined) === (m.kind === 1));
  checkMessage(m.message!);
  if (m.reply) {
    checkMessage(m.reply);
  }
  return m;
}

/** Appends the stages of a field, which is packed or holds one stage. */
function stages(w: Walker, bytes: Uint8Array, into: number[]): void {
  if ((bytes[w.start] & 7) === 0) {
    into.push(w.value);
    return;
  }
  const r = new ByteReader();
  r.open(w.body, 0, w.body.length);
  while (r.left() > 0) {
    into.push(r.uvarint());
  }
}

function readField(bytes: Uint8Array, level: number): Field {
  let name: Uint8Array = NO_NAME;
  let type: Type | undefined;
  walk(bytes, [0, SIZED, 0, SIZED], (w) => {
    if (w.num === 1) name = w.body;
    else type = readType(w.body, level);
  });
  const f = checkName(name);
  if (!/^[\p{L}_][\p{L}\p{Nd}_]*$/u.test(f)) {
    senseless();
  }
  return { name: f, type: type ?? senseless() };
}

function readType(bytes: Uint8Array, level: number): Type {
  if (level > MAX_LEVELS) {
    senseless();
  }
  const t: Type = { kind: 0 as Kind, max: 0, num: 0, den: 0, low: 0, high: 0, element: undefined, fields: [], proto: "" };
  walk(bytes, [0, VARINT, VARINT, VARINT, VARINT, SIZED, SIZED, SIZED, VARINT, VARINT], (w) => {
    switch (w.num) {
      case 1:
        t.kind = w.value;
        break;
      case 2:
        t.max = w.value % 0x1_0000_0000;
        break;
      case 3:
        t.num = w.value;
        break;
      case 4:
        t.den = w.value;
        break;
      case 5:
        t.element = readType(w.body, level + 1);
        break;
      case 6:
        t.fields.push(readField(w.body, level + 1));
        break;
      case 7:
        t.proto = w.body.length > 256 ? senseless() : textOf(w.body);
        break;
      case 8:
        t.low = signed(bytes, w.start);
        break;
      default:
        t.high = signed(bytes, w.start);
    }
  });
  return t;
}

/** Returns the exact sint64 of the field at start. */
function signed(bytes: Uint8Array, start: number): number {
  const r = new ByteReader();
  r.open(bytes, start, bytes.length);
  r.uvarint();
  return r.zigzag();
}

/**
 * Refuses a message that is neither a struct nor a protobuf message, or that has an invalid type.
 */
function checkMessage(t: Type): void {
  if (t.kind === Kind.Proto) need(t.max === 0 && hasItsParts(t));
  else {
    need(t.kind === Kind.Struct);
    checkType(t);
  }
}

function checkFields(fields: readonly Field[]): void {
  unique(fields);
  for (const f of fields) {
    checkType(f.type);
  }
}

function need(ok: boolean): void {
  if (!ok) {
    senseless();
  }
}

/** Refuses a type that lacks a part which its kind needs, or has a part that it must not have. */
function checkType(t: Type): void {
  const k = t.kind;
  const [least, most] = maxOf(k);
  need(k >= Kind.Bool && k <= Kind.Map && Number.isInteger(k) && t.max >= least && t.max <= most && hasItsParts(t));
  if (k === Kind.Struct) {
    checkFields(t.fields);
  } else if (t.element) {
    checkType(t.element);
    need(k === Kind.Array || hasBytes(t.element));
  }
  need(k !== Kind.Map || isEntry(t.element!));
}

function maxOf(k: Kind): [number, number] {
  switch (k) {
    case Kind.String:
    case Kind.Bytes:
    case Kind.Slice:
    case Kind.Map:
    case Kind.Proto:
      return [1, 65536];
    case Kind.ByteArray:
    case Kind.Array:
      return [0, 65536];
    case Kind.Quat:
      return [3, 20];
    default:
      return [0, 0];
  }
}

/** Reports whether a type has, beside max, exactly the parts that its kind needs. */
function hasItsParts(t: Type): boolean {
  const k = t.kind;
  const ranged = k === Kind.Range32 || k === Kind.Range64;
  const bound = k === Kind.Range64 ? 2 ** 53 : 2 ** 31 - 1;
  return (
    (t.element !== undefined) === (k === Kind.Array || k === Kind.Slice || k === Kind.Map) &&
    (k === Kind.Struct || t.fields.length === 0) &&
    (t.proto !== "") === (k === Kind.Proto) &&
    (t.num === 0 && t.den === 0 ? !ranged : (ranged || k === Kind.Float32 || k === Kind.Float64) && isStep(t.num, t.den)) &&
    (ranged ? t.low < t.high && t.low >= -bound && t.high <= bound : t.low === 0 && t.high === 0)
  );
}

/** Reports whether a step is within bounds and in lowest terms. */
function isStep(num: number, den: number): boolean {
  return num >= 1 && num < 2 ** 20 && den >= 1 && den < 2 ** 40 && gcd(num, den) === 1;
}

/** Reports whether a type is an entry of a map or set: a key, and for a map a value. */
function isEntry(e: Type): boolean {
  const f = e.fields;
  if (e.kind !== Kind.Struct || f.length < 1 || f.length > 2 || f[0].name !== "Key" || (f.length > 1 && f[1].name !== "Value")) return false;
  const key = f[0].type.kind;
  return (key >= Kind.Int8 && key <= Kind.Uint64) || key === Kind.Ref || key === Kind.String;
}

/** Reports whether a value of the type takes any bytes. */
function hasBytes(t: Type): boolean {
  switch (t.kind) {
    case Kind.ByteArray:
      return t.max > 0;
    case Kind.Array:
      return t.max > 0 && hasBytes(t.element!);
    case Kind.Struct:
      return t.fields.some((f) => hasBytes(f.type));
    default:
      return true;
  }
}

function gcd(a: number, b: number): number {
  while (b !== 0) {
    [a, b] = [b, a % b];
  }
  return a;
}
