// Types from their texts, as docs/WIRE.md writes them: for tests, of the client and of games.

import { Kind, type Field, type Type } from "./tables.js";
import { Class, Message } from "./schema.js";

const KINDS: Record<string, Kind> = {
  bool: Kind.Bool,
  int8: Kind.Int8,
  int16: Kind.Int16,
  int32: Kind.Int32,
  int64: Kind.Int64,
  uint8: Kind.Uint8,
  uint16: Kind.Uint16,
  uint32: Kind.Uint32,
  uint64: Kind.Uint64,
  float32: Kind.Float32,
  float64: Kind.Float64,
  ref: Kind.Ref,
  instant: Kind.Instant,
  string: Kind.String,
  bytes: Kind.Bytes,
  quat: Kind.Quat,
  proto: Kind.Proto,
};

function plain(kind: Kind): Type {
  return { kind, max: 0, num: 0, den: 0, low: 0, high: 0, element: undefined, fields: [], proto: "" };
}

class Parser {
  constructor(private rest: string) {}

  private take(pattern: RegExp): RegExpMatchArray | undefined {
    const m = this.rest.match(new RegExp(`^\\s*(?:${pattern.source})`));
    if (m) this.rest = this.rest.slice(m[0].length);
    return m ?? undefined;
  }

  type(): Type {
    if (this.take(/\{/)) return this.struct();
    const list = this.take(/\[(\d*)\]|map\[|set\[/);
    if (list) return this.list(list[0].trim(), list[1]);
    const name = this.take(/\w+/)![0].trim();
    const t = plain(KINDS[name]);
    if (t.kind === Kind.Proto) t.proto = this.take(/[\w.]+/)![0].trim();
    return this.tags(t);
  }

  private list(head: string, length: string | undefined): Type {
    if (head === "map[" || head === "set[") {
      const t = plain(Kind.Map);
      t.element = plain(Kind.Struct);
      t.element.fields.push({ name: "Key", type: this.type() });
      this.take(/\]/);
      if (head === "map[") t.element.fields.push({ name: "Value", type: this.type() });
      return this.tags(t);
    }
    const t = plain(length === "" ? Kind.Slice : Kind.Array);
    t.max = Number(length);
    if (t.kind === Kind.Array && this.take(/byte/)) {
      t.kind = Kind.ByteArray;
      return t;
    }
    t.element = this.type();
    return t.kind === Kind.Array ? t : this.tags(t);
  }

  private struct(): Type {
    const t = plain(Kind.Struct);
    while (!this.take(/\}/)) {
      const name = this.take(/\w+/)![0].trim();
      t.fields.push({ name, type: this.type() });
      this.take(/;/);
    }
    return t;
  }

  /** The parts that follow a type in its text. An element leaves the limit to its list. */
  private tags(t: Type): Type {
    if (t.kind === Kind.Float32 || t.kind === Kind.Float64) {
      const step = this.take(/quant=(\d+)\/(\d+)/);
      if (step) [t.num, t.den] = [Number(step[1]), Number(step[2])];
      const range = this.take(/steps=(-?\d+):(-?\d+)/);
      if (range) [t.low, t.high, t.kind] = [Number(range[1]), Number(range[2]), t.kind + Kind.Range32 - Kind.Float32];
    } else if (t.kind > Kind.Instant) {
      t.max = Number(this.take(/(?:max|bits)=(\d+)/)?.[1] ?? 0);
    }
    return t;
  }
}

/** A type from its text. */
export function typeOf(text: string): Type {
  return new Parser(text).type();
}

/** A message's type from its text. */
export function messageOf(text: string): Message {
  return new Message(typeOf(text), () => undefined);
}

/** A class from the text of its fields. */
export function classOf(text: string): Class {
  const fields: Field[] = typeOf(text).fields;
  return new Class(0, "c", fields, () => undefined);
}
