// Encodes and decodes a game's protobuf messages by the tables that `server schema --ts` writes:
// only the parts of protobuf that messages need, so that a page loads no runtime for it.

import type { ProtobufCodec } from "./schema.js";

/** A field of a protobuf message. */
export interface ProtobufField {
  readonly no: number;
  readonly name: string;
  /** As protobuf names it: "string", "sint32", "message", "enum" and so on. */
  readonly kind: string;
  readonly repeated: boolean;
  /** The field may be unset. */
  readonly optional: boolean;
  /** The full name of the message, of a field that is one. */
  readonly of: string;
}

/** The fields of messages, by their full names. */
type Tables = Readonly<Record<string, readonly ProtobufField[]>>;

/** The depth limit of the server. */
const MAX_DEPTH = 32;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Codecs of messages, by their full names. */
export function protobufCodecs(tables: Tables): Record<string, ProtobufCodec> {
  const codec = (name: string): ProtobufCodec => ({
    decode: (bytes) => decode(tables, name, bytes, 0),
    encode: (message) => Uint8Array.from(encode(tables, name, message, 0)),
  });
  return Object.fromEntries(Object.keys(tables).map((name) => [name, codec(name)]));
}

const WIRE: Record<string, number> = {
  fixed64: 1, sfixed64: 1, double: 1, fixed32: 5, sfixed32: 5, float: 5, string: 2, bytes: 2, message: 2,
};

function wireOf(f: ProtobufField): number {
  return WIRE[f.kind] ?? 0;
}

function zero(f: ProtobufField): unknown {
  if (f.repeated) return [];
  if (f.optional) return undefined;
  if (f.kind === "string") return "";
  if (f.kind === "bool") return false;
  if (f.kind === "bytes") return new Uint8Array(0);
  return /64$/.test(f.kind) ? 0n : 0;
}

/** Bytes to read; a read beyond their end throws. */
class Input {
  at = 0;
  private view: DataView;
  constructor(private b: Uint8Array) {
    this.view = new DataView(b.buffer, b.byteOffset, b.byteLength);
  }
  get more(): boolean {
    return this.at < this.b.length;
  }
  varint(): bigint {
    let v = 0n;
    for (let i = 0n; i < 10n; i++) {
      const c = this.view.getUint8(this.at++);
      v |= BigInt(c & 127) << (7n * i);
      if (c < 128) return BigInt.asUintN(64, v);
    }
    throw new RangeError("varint is too long");
  }
  bytes(n = Number(this.varint())): Uint8Array {
    if (n > this.b.length - this.at) throw new RangeError("field is truncated");
    this.at += n;
    return this.b.subarray(this.at - n, this.at);
  }
  skip(wire: number): void {
    if (wire === 0) this.varint();
    else if (wire === 1) this.bytes(8);
    else if (wire === 2) this.bytes();
    else if (wire === 5) this.bytes(4);
    else throw new RangeError("unknown wire type");
  }
  scalar(kind: string): unknown {
    const eight = () => ((this.at += 8), this.at - 8);
    const four = () => ((this.at += 4), this.at - 4);
    switch (kind) {
      case "double": return this.view.getFloat64(eight(), true);
      case "float": return this.view.getFloat32(four(), true);
      case "fixed64": return this.view.getBigUint64(eight(), true);
      case "sfixed64": return this.view.getBigInt64(eight(), true);
      case "fixed32": return this.view.getUint32(four(), true);
      case "sfixed32": return this.view.getInt32(four(), true);
      case "string": return utf8.decode(this.bytes());
      case "bytes": return this.bytes().slice();
    }
    const v = this.varint();
    switch (kind) {
      case "bool": return v !== 0n;
      case "int64": return BigInt.asIntN(64, v);
      case "uint64": return v;
      case "sint64": return (v >> 1n) ^ -(v & 1n);
      case "sint32": return Number((v >> 1n) ^ -(v & 1n)) | 0;
      case "uint32": return Number(v & 0xffffffffn);
    }
    return Number(BigInt.asIntN(32, v)); // int32 and enums
  }
}

function decode(tables: Tables, name: string, bytes: Uint8Array, depth: number): Record<string, unknown> {
  const fields = tables[name];
  if (!fields || depth > MAX_DEPTH) throw new RangeError("message is nested too deeply");
  const m: Record<string, any> = {};
  for (const f of fields) m[f.name] = zero(f);
  for (const r = new Input(bytes); r.more; ) {
    const tag = Number(r.varint());
    const wire = tag & 7;
    const f = fields.find((f) => f.no === Math.floor(tag / 8));
    const packed = f?.repeated && wire === 2 && wireOf(f) !== 2;
    if (!f || (wire !== wireOf(f) && !packed)) {
      r.skip(wire);
    } else if (packed) {
      for (const list = new Input(r.bytes()); list.more; ) m[f.name].push(list.scalar(f.kind));
    } else {
      const v = f.kind === "message" ? decode(tables, f.of, r.bytes(), depth + 1) : r.scalar(f.kind);
      if (f.repeated) m[f.name].push(v);
      else m[f.name] = f.kind === "message" && m[f.name] ? { ...m[f.name], ...(v as object) } : v;
    }
  }
  return m;
}

function varint(out: number[], v: bigint): void {
  v = BigInt.asUintN(64, v);
  for (; v > 127n; v >>= 7n) out.push(Number(v & 127n) | 128);
  out.push(Number(v));
}

function fixed(out: number[], size: number, put: (v: DataView) => void): void {
  const b = new Uint8Array(size);
  put(new DataView(b.buffer));
  out.push(...b);
}

function sized(out: number[], b: Iterable<number>): void {
  const all = [...b];
  varint(out, BigInt(all.length));
  for (const c of all) out.push(c);
}

function put(out: number[], tables: Tables, f: ProtobufField, v: any, depth: number): void {
  switch (f.kind) {
    case "double": return fixed(out, 8, (d) => d.setFloat64(0, v, true));
    case "float": return fixed(out, 4, (d) => d.setFloat32(0, v, true));
    case "fixed64":
    case "sfixed64": return fixed(out, 8, (d) => d.setBigInt64(0, BigInt.asIntN(64, BigInt(v)), true));
    case "fixed32":
    case "sfixed32": return fixed(out, 4, (d) => d.setInt32(0, v, true));
    case "string": return sized(out, encoder.encode(v));
    case "bytes": return sized(out, v);
    case "message": return sized(out, encode(tables, f.of, v, depth + 1));
  }
  const n = BigInt(v);
  if (f.kind.startsWith("sint")) return varint(out, (n << 1n) ^ (n >> 63n));
  varint(out, n);
}

function encode(tables: Tables, name: string, m: any, depth: number): number[] {
  if (depth > MAX_DEPTH) throw new RangeError("message is nested too deeply");
  const out: number[] = [];
  for (const f of [...tables[name]!].sort((a, b) => a.no - b.no)) {
    const v = m?.[f.name];
    if (v === undefined || v === null) continue;
    const empty = !v || (f.kind === "bytes" && v.length === 0);
    if (!f.repeated && !f.optional && empty) continue;
    for (const one of f.repeated ? v : [v]) {
      varint(out, BigInt(f.no * 8 + wireOf(f)));
      put(out, tables, f, one, depth);
    }
  }
  return out;
}
