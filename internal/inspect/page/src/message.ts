// Messages between JSON, as people write it, and the values of the client: bytes are base64, 64-bit integers
// are numbers or strings, references are "17.3", and enums are their names.
import type { Forms, ProtoForm, TypeForm } from "./types.js";

type Json = unknown;
type Fields = Record<string, unknown>;

/** Integers by kind: least and most. */
const ranges: Record<string, [number, number]> = {
  int8: [-(2 ** 7), 2 ** 7 - 1], int16: [-(2 ** 15), 2 ** 15 - 1], int32: [-(2 ** 31), 2 ** 31 - 1], uint8: [0, 2 ** 8 - 1], uint16: [0, 2 ** 16 - 1], uint32: [0, 2 ** 32 - 1],
  sint32: [-(2 ** 31), 2 ** 31 - 1], sfixed32: [-(2 ** 31), 2 ** 31 - 1], fixed32: [0, 2 ** 32 - 1],
};
const wide: Record<string, boolean> = { int64: true, sint64: true, sfixed64: true, instant: true, uint64: false, fixed64: false };

/** Converter converts messages of a schema. It throws an Error with the path of a wrong field. */
export class Converter {
  constructor(private readonly forms: Forms) {}

  /** fields returns the fields of a message, with the type of each. */
  fields(t: TypeForm): { name: string; type: TypeForm; proto?: ProtoForm }[] {
    if (t.kind !== "proto") return t.fields ?? [];
    return (this.forms.messages[t.of!] ?? []).map((p) => ({ name: p.name, proto: p, type: p.repeated ? { kind: "slice", text: "", elem: one(p) } : one(p) }));
  }

  /** zero returns the JSON of the zero value. A part that may be missing is null. */
  zero(t: TypeForm, whole = t.kind === "struct"): Json {
    if (whole) return Object.fromEntries(this.fields(t).map((f) => [f.name, f.proto?.optional ? null : this.zero(f.type)]));
    switch (t.kind) {
      case "bool": return false;
      case "string": case "bytes": return "";
      case "bytearray": return toBase64(new Uint8Array(t.max!));
      case "slice": case "map": return [];
      case "array": return Array.from({ length: t.max! }, () => this.zero(t.elem!));
      case "quat": return [0, 0, 0, 1];
      case "ref": case "proto": return null;
      case "enum": return t.values![t.numbers!.indexOf(0)] ?? 0;
    }
    return 0;
  }

  /** parse returns the value of JSON. */
  parse(t: TypeForm, v: Json, path = ""): unknown {
    const fail = (why: string): never => { throw new Error(`${path || "the message"} ${why}`); };
    const at = (k: string | number) => (path ? `${path}.${k}` : String(k));
    const list = (): Json[] => (Array.isArray(v) ? v : fail("is no list"));
    const range = ranges[t.kind];
    if (range) return typeof v === "number" && Number.isInteger(v) && v >= range[0] && v <= range[1] ? v : fail(`is no ${t.kind}: ${brief(v)}`);
    if (t.kind in wide) return integer(v, wide[t.kind]!) ?? fail(`is no ${t.kind}: ${brief(v)}`);
    switch (t.kind) {
      case "bool": return typeof v === "boolean" ? v : fail("is neither true nor false");
      case "float32": case "float64": case "float": case "double": return float(v) ?? fail(`is no number: ${brief(v)}`);
      case "string": return typeof v === "string" ? v : fail(`is no text: ${brief(v)}`);
      case "bytes": case "bytearray": return (typeof v === "string" ? fromBase64(v) : undefined) ?? fail("is no base64");
      case "quat": return list().length === 4 ? list().map((x) => float(x) ?? fail("has a part that is no number")) : fail("has not four parts");
      case "ref": return v === null ? 0 : reference(v) ?? fail(`is no object such as "17.3": ${brief(v)}`);
      case "enum": return typeof v === "number" ? v : t.numbers![t.values!.indexOf(v as string)] ?? fail(`is none of ${t.values!.join(", ")}: ${brief(v)}`);
      case "slice": return list().map((x, i) => this.parse(t.elem!, x, at(i)));
      case "array": return list().length === t.max ? list().map((x, i) => this.parse(t.elem!, x, at(i))) : fail(`has not ${t.max} elements`);
      case "map": {
        const [key, value] = t.elem!.fields!;
        if (!value) return new Set(list().map((x, i) => this.parse(key!.type, x, at(i))));
        return new Map(list().map((x, i) => { const e = this.parse(t.elem!, x, at(i)) as Fields; return [e["Key"], e["Value"]]; }));
      }
      case "proto": case "struct": {
        if (t.kind === "proto" && v === null && path) return null;
        if (typeof v !== "object" || v === null || Array.isArray(v)) return fail("is no object");
        const known = new Map(this.fields(t).map((f) => [f.name, f]));
        for (const o of new Set(this.fields(t).map((f) => f.proto?.oneof))) {
          const set = Object.entries(v).filter(([name, x]) => o && known.get(name)?.proto?.oneof === o && x !== null);
          if (set.length > 1) fail(`can have only one of ${set.map(([name]) => name).join(", ")}`);
        }
        return Object.fromEntries(Object.entries(v).map(([name, x]) => {
          const f = known.get(name) ?? fail(`has no field ${JSON.stringify(name)}${known.size ? `, only ${[...known.keys()].join(", ")}` : ""}`);
          return [name, f.proto?.optional && x === null ? undefined : this.parse(f.type, x, at(name))];
        }));
      }
    }
    return fail(`is of the kind ${t.kind}, which this page does not know`);
  }

  /** show returns the JSON of a value. */
  show(t: TypeForm, v: any): Json {
    switch (t.kind) {
      case "int64": case "uint64": case "sint64": case "fixed64": case "sfixed64": case "instant":
        return Number.isSafeInteger(Number(v)) ? Number(v) : String(v);
      case "float32": case "float64": case "float": case "double": return Number.isFinite(v) ? v : String(v);
      case "bytes": case "bytearray": return toBase64(v);
      case "ref": return v ? `${Math.floor(v / 2 ** 32)}.${v % 2 ** 32}` : null;
      case "enum": return t.values![t.numbers!.indexOf(v)] ?? v;
      case "slice": case "array": return [...v].map((x) => this.show(t.elem!, x));
      case "map": {
        const [key, value] = t.elem!.fields!;
        return value ? [...v].map(([k, x]: [unknown, unknown]) => ({ Key: this.show(key!.type, k), Value: this.show(value.type, x) })) : [...v].map((x) => this.show(key!.type, x));
      }
      case "proto": case "struct": return !v ? null : Object.fromEntries(this.fields(t).filter((f) => v[f.name] !== undefined).map((f) => [f.name, this.show(f.type, v[f.name])]));
    }
    return v;
  }
}

/** one is the type of a protobuf field, or of an element of it. */
function one(p: ProtoForm): TypeForm {
  if (p.kind === "message") return { kind: "proto", text: p.of, of: p.of };
  return { kind: p.kind, text: p.kind, values: p.values, numbers: p.numbers };
}

function integer(v: Json, signed: boolean): bigint | undefined {
  if (!(typeof v === "number" ? Number.isSafeInteger(v) : typeof v === "string" && /^-?\d+$/.test(v))) return undefined;
  const n = BigInt(v as string | number);
  return (signed ? BigInt.asIntN(64, n) : BigInt.asUintN(64, n)) === n ? n : undefined;
}

function float(v: Json): number | undefined {
  if (typeof v === "number") return v;
  return v === "Infinity" || v === "-Infinity" ? Number(v) : undefined;
}

function reference(v: Json): number | undefined {
  const match = typeof v === "string" ? /^(\d{1,5})\.(\d{1,10})$/.exec(v) : null;
  return match ? Number(match[1]) * 2 ** 32 + Number(match[2]) : undefined;
}

function fromBase64(s: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(s), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function toBase64(b: Uint8Array): string {
  return btoa(Array.from(b, (c) => String.fromCharCode(c)).join(""));
}

function brief(v: Json): string {
  const s = JSON.stringify(v) ?? "nothing";
  return s.length > 40 ? `${s.slice(0, 40)}…` : s;
}
