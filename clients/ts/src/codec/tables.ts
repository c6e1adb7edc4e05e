// The tables of a schema as they travel: SchemaTables, and what a reader checks of its types.

import { ByteReader } from "../wire/bytes.js";
import { textOf, SIZED, VARINT, Walker } from "../wire/protobuf.js";
import { Refusal, refuse } from "../wire/refusal.js";

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

/** What a table says of a type. */
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

/** How deep types may be nested, and how many leaves a class, a message or an element may have. */
const MAX_LEVELS = 24;
export const MAX_LEAVES = 256;
const MAX_DECLARATIONS = 8192;

let declarations = 0;

/** Reads the bytes of a SchemaTables, of which every type is sound. Throws a Refusal. */
export function readTables(bytes: Uint8Array): Tables {
  declarations = 0;
  const tables: Tables = { classes: [], methods: [], input: undefined };
  walk(bytes, [0, SIZED, SIZED, SIZED], (w) => {
    if (w.num === 1) tables.classes.push(readClass(w.bytes));
    else if (w.num === 2) tables.methods.push(readMethod(w.bytes));
    else tables.input = readType(w.bytes, 1);
  });
  unique(tables.classes, "class");
  unique(tables.methods, "method");
  if (tables.input) {
    checkMessage("input", tables.input);
  }
  return tables;
}

function walk(bytes: Uint8Array, known: readonly number[], field: (w: Walker) => void): void {
  const w = new Walker(bytes, known);
  while (w.next()) {
    if (++declarations > 8 * MAX_DECLARATIONS) {
      refuse("more declarations than any game has");
    }
    field(w);
  }
  if (w.failed) {
    refuse("bytes that are no tables");
  }
}

function text(bytes: Uint8Array): string {
  return textOf(bytes) ?? refuse("a text that is no UTF-8");
}

function unique(all: readonly { name: string }[], what: string): void {
  const seen = new Set<string>();
  for (const { name } of all) {
    if (seen.has(name)) {
      refuse(`two of the ${what} ${name}`);
    }
    seen.add(name);
  }
}

function checkName(bytes: Uint8Array): string {
  if (bytes.length === 0 || bytes.length > 64) {
    refuse(`a name of ${bytes.length} bytes`);
  }
  return text(bytes);
}

const NO_NAME: Uint8Array = new Uint8Array(0);

function readClass(bytes: Uint8Array): ClassTable {
  let name: Uint8Array = NO_NAME;
  const fields: Field[] = [];
  walk(bytes, [0, SIZED, SIZED], (w) => {
    if (w.num === 1) name = w.bytes;
    else fields.push(readField(w.bytes, 2));
  });
  const c = { name: checkName(name), fields };
  checkFields(c.name, fields);
  return c;
}

function readMethod(bytes: Uint8Array): MethodTable {
  let name: Uint8Array = NO_NAME;
  const m: MethodTable = { name: "", kind: 0, stages: [], reliable: false, message: undefined, reply: undefined };
  walk(bytes, [0, SIZED, VARINT, 0, 0, SIZED | VARINT, VARINT, SIZED, SIZED], (w) => {
    switch (w.num) {
      case 1:
        name = w.bytes;
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
        m.message = readType(w.bytes, 1);
        break;
      default:
        m.reply = readType(w.bytes, 1);
    }
  });
  m.name = checkName(name);
  if (m.kind !== 1 && m.kind !== 2) {
    refuse(`${m.name} is no kind of method`);
  }
  if (m.message === undefined || (m.reply === undefined) !== (m.kind === 1)) {
    refuse(`${m.name} has not the messages of its kind`);
  }
  checkMessage(m.name, m.message);
  if (m.reply) {
    checkMessage(m.name, m.reply);
  }
  return m;
}

/** Appends the stages of a field, which are packed or one. */
function stages(w: Walker, bytes: Uint8Array, into: number[]): void {
  if ((bytes[w.start] & 7) === 0) {
    into.push(w.value);
    return;
  }
  const r = new ByteReader();
  r.open(w.bytes, 0, w.bytes.length);
  while (r.left() > 0) {
    into.push(r.uvarint());
  }
}

function readField(bytes: Uint8Array, level: number): Field {
  let name: Uint8Array = NO_NAME;
  let type: Type | undefined;
  walk(bytes, [0, SIZED, 0, SIZED], (w) => {
    if (w.num === 1) name = w.bytes;
    else type = readType(w.bytes, level);
  });
  const f = checkName(name);
  if (!/^[\p{L}_][\p{L}\p{Nd}_]*$/u.test(f)) {
    refuse(`a field that is called ${f}`);
  }
  return { name: f, type: type ?? refuse(`${f} has no type`) };
}

function readType(bytes: Uint8Array, level: number): Type {
  if (level > MAX_LEVELS) {
    refuse("types nested too deep");
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
        t.element = readType(w.bytes, level + 1);
        break;
      case 6:
        t.fields.push(readField(w.bytes, level + 1));
        break;
      case 7:
        t.proto = w.bytes.length > 256 ? refuse("a long name of a message") : text(w.bytes);
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

/** The sint64 of the field that begins here, exactly. */
function signed(bytes: Uint8Array, start: number): number {
  const r = new ByteReader();
  r.open(bytes, start, bytes.length);
  r.uvarint();
  return r.zigzag();
}

/** Refuses a message that is neither a struct nor a protobuf message, or whose types are unsound. */
function checkMessage(path: string, t: Type): void {
  if (t.kind === Kind.Proto) {
    need(t.max === 0 && t.proto !== "", path, "has another max");
    checkOthers(path, t);
    return;
  }
  need(t.kind === Kind.Struct, path, "is no message");
  checkType(path, t);
}

function checkFields(path: string, fields: readonly Field[]): void {
  unique(fields, `fields of ${path}`);
  for (const f of fields) {
    checkType(`${path}.${f.name}`, f.type);
  }
}

function need(ok: boolean, path: string, what: string): void {
  if (!ok) {
    throw new Refusal(`${path} ${what}`);
  }
}

/** Refuses a type without what its kind needs, or with what it has not. */
function checkType(path: string, t: Type): void {
  const k = t.kind;
  need(k >= Kind.Bool && k <= Kind.Map && Number.isInteger(k), path, "is no kind");
  const [least, most] = maxOf(k);
  need(t.max >= least && t.max <= most, path, "has another max");
  checkOthers(path, t);
  if (k === Kind.Struct) {
    checkFields(path, t.fields);
  } else if (t.element) {
    checkType(`${path}[]`, t.element);
    if (k !== Kind.Array) {
      need(hasBytes(t.element), path, "has elements of no bytes");
    }
  }
  if (k === Kind.Map) {
    checkMap(path, t.element!);
  }
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

/** Checks what all kinds share but max. */
function checkOthers(path: string, t: Type): void {
  const k = t.kind;
  need((t.element !== undefined) === (k === Kind.Array || k === Kind.Slice || k === Kind.Map), path, "and elements");
  need(k === Kind.Struct || t.fields.length === 0, path, "and fields");
  need((t.proto !== "") === (k === Kind.Proto), path, "and the name of a message");
  const ranged = k === Kind.Range32 || k === Kind.Range64;
  if (t.num !== 0 || t.den !== 0) {
    need(ranged || k === Kind.Float32 || k === Kind.Float64, path, "and a step");
    need(t.num >= 1 && t.num < 2 ** 20 && t.den >= 1 && t.den < 2 ** 40, path, "has another step");
    need(gcd(t.num, t.den) === 1, path, "has a step that is not in lowest terms");
  } else {
    need(!ranged, path, "has no step");
  }
  const bound = k === Kind.Range64 ? 2 ** 53 : 2 ** 31 - 1;
  if (ranged) {
    need(t.low < t.high && t.low >= -bound && t.high <= bound, path, "has another range");
  } else {
    need(t.low === 0 && t.high === 0, path, "and a range");
  }
}

function checkMap(path: string, e: Type): void {
  const f = e.fields;
  need(e.kind === Kind.Struct && (f.length === 1 || f.length === 2), path, "has no entries");
  need(f[0].name === "Key" && (f.length === 1 || f[1].name === "Value"), path, "has other entries");
  const key = f[0].type.kind;
  need((key >= Kind.Int8 && key <= Kind.Uint64) || key === Kind.Ref || key === Kind.String, path, "has another key");
}

/** Whether a value of the type takes any bytes. */
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
