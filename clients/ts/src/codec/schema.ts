// The server's schema, read from the bytes that the handshake carries (docs/WIRE.md, "Schema"). It
// describes all layouts of the wire: a client needs no code that was generated from the game.

import { layoutOf, messageText, structOf, type Layout, type Leaf } from "./layout.js";
import { containersOf, flatKind, flatLeaves, show, unflatten } from "./show.js";
import { Kind, readTables, type Field, type Type } from "./tables.js";

/** Decodes and encodes one type of protobuf messages, for a game that supplies a codec. */
export interface ProtoCodec {
  /** Throws on invalid bytes. */
  decode(bytes: Uint8Array): unknown;
  encode(value: unknown): Uint8Array;
}

/**
 * Finds the codec of a protobuf message by its full name. The value of a message without one is its
 * bytes.
 */
export type ProtoCodecs = (name: string) => ProtoCodec | undefined;

/**
 * The type of a message, an answer or an input.
 *
 * Values are plain objects with the field names of the schema. By kinds: `bool` is a boolean;
 * integers up to 32 bits, floats and quantised values are numbers, `float32` rounded as on the
 * server; `int64` and `uint64` are bigints; `instant` is a bigint of nanoseconds, below 0 for -1 -
 * t ns of scaled time; `ref` is the number of the object, 0 for none; `quat` is `[x, y, z, w]`;
 * `string` is a string; `bytes` and `[n]byte` are Uint8Arrays; arrays and slices are arrays; maps
 * are Maps and sets are Sets; a protobuf message is the result of its codec, or its bytes, and null
 * for none in a field.
 */
export interface MessageType {
  /** The type as text, as in docs/WIRE.md. */
  readonly text: string;
}

/** A replicated class. */
export interface ObjectClass {
  readonly index: number;
  readonly name: string;
  /**
   * Its fields, as if they were a message: a prediction encodes and decodes a state to round it as
   * the wire does, and compares the bytes.
   */
  readonly fields: MessageType;
  /**
   * The leaves that are numbers, in a flat layout for interpolation: see Replicated.flat. A
   * quaternion takes four places in it, every other leaf one.
   */
  readonly flat: readonly FlatLeaf[];
  /** The number of places of the flat layout. */
  readonly flatSize: number;
  /** Makes a new state of zero values. */
  create(): Record<string, unknown>;
  /** Writes numbers in the flat layout into a state that create, or Replicated.copy, has made. */
  unflatten(flat: Float64Array, state: Record<string, unknown>): void;
}

/** A number in the flat layout. */
export interface FlatLeaf {
  /** Its place in a mask. */
  readonly index: number;
  /** Its path in a state: field names, and indices of arrays. */
  readonly path: readonly (string | number)[];
  readonly kind: "integer" | "float" | "quat" | "bool";
  /** Its first place. */
  readonly at: number;
}

/** An RPC or a call. */
export interface Method {
  /** From 1, as on the wire. */
  readonly id: number;
  readonly name: string;
  readonly call: boolean;
  readonly reliable: boolean;
  /** The stages that it allows, its default first: 10, 20 ... 70. */
  readonly stages: readonly number[];
  readonly message: MessageType;
  /** The type of the answer, of a call. */
  readonly reply: MessageType | undefined;
}

/** The declarations of the server's schema. */
export interface Schema {
  readonly classes: readonly ObjectClass[];
  readonly methods: readonly Method[];
  /** The type of clients' inputs for each fixed step, undefined for a game without inputs. */
  readonly input: MessageType | undefined;
}

/** The compiled form of a class. */
export class Class implements ObjectClass {
  readonly layout: Layout;
  readonly fields: Message;
  readonly flat: readonly FlatLeaf[];
  readonly flatLeaves: readonly Leaf[];
  /** The baseline of versions of objects that have no other one. */
  readonly zero: { tick: number; owner: number; n: Float64Array; x: unknown[] };

  constructor(
    readonly index: number,
    readonly name: string,
    fields: Field[],
    protos: ProtoCodecs,
  ) {
    this.fields = new Message(structOf(fields), protos);
    this.layout = this.fields.layout!;
    this.flatLeaves = flatLeaves(this.layout);
    this.flat = this.flatLeaves.map((l) => ({ path: l.path, kind: flatKind(l), at: l.at, index: this.layout.leaves.indexOf(l) }));
    this.zero = { tick: 0, owner: 0, n: this.layout.zeroN, x: this.layout.zeroX.slice() };
  }

  get flatSize(): number {
    return this.layout.nSize;
  }

  create(): Record<string, unknown> {
    return show(this.layout.root, this.zero.n, 0, this.zero.x, 0) as Record<string, unknown>;
  }

  unflatten(flat: Float64Array, state: Record<string, unknown>): void {
    unflatten(this.flatLeaves, flat, containersOf(this.layout.root, state));
  }
}

/** The compiled type of a message: a struct with a layout, or a protobuf message. */
export class Message implements MessageType {
  readonly text: string;
  readonly layout: Layout | undefined;
  readonly codec: ProtoCodec | undefined;

  constructor(type: Type, protos: ProtoCodecs) {
    this.text = messageText(type);
    this.layout = type.kind === Kind.Struct ? layoutOf(type, protos) : undefined;
    this.codec = this.layout === undefined ? protos(type.proto) : undefined;
  }
}

/** Reads the bytes of a SchemaTables. Throws a Refusal for invalid bytes. */
export function readSchema(bytes: Uint8Array, protos: ProtoCodecs = () => undefined): Schema {
  const t = readTables(bytes);
  return {
    classes: t.classes.map((c, i) => new Class(i, c.name, c.fields, protos)),
    methods: t.methods.map((m, i) => ({
      id: i + 1,
      name: m.name,
      call: m.kind === 2,
      reliable: m.reliable,
      stages: m.stages,
      message: new Message(m.message!, protos),
      reply: m.reply && new Message(m.reply, protos),
    })),
    input: t.input && new Message(t.input, protos),
  };
}
