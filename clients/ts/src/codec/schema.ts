// The server's schema, read from the bytes that the handshake carries (docs/WIRE.md, "Schema").
// Everything on the wire has its layout: a client needs no code that was made from the game.

/** Bytes that are no tables, or tables that make no sense: the client closes with CODE_PROTOCOL. */
export class SchemaError extends Error {
  override name = "SchemaError";
}

/** Turns one type of protobuf messages into values and back, for a game that gives one. */
export interface ProtoCodec {
  /** Throws on bytes that are no such message. */
  decode(bytes: Uint8Array): unknown;
  encode(value: unknown): Uint8Array;
}

/** Finds the codec of a protobuf message by its full name. Without one its value is its bytes. */
export type ProtoCodecs = (name: string) => ProtoCodec | undefined;

/**
 * The type of a message, an answer or an input.
 *
 * Values are plain objects with the field names of the schema. By kinds:
 * `bool` is a boolean; integers up to 32 bits, floats and quantised values are numbers, `float32`
 * rounded as on the server; `int64` and `uint64` are bigints; `instant` is a bigint of nanoseconds,
 * below 0 for -1 - t ns of scaled time; `ref` is the number of the object, 0 for none; `quat` is
 * `[x, y, z, w]`; `string` is a string; `bytes` and `[n]byte` are Uint8Arrays; arrays and slices are
 * arrays; maps are Maps and sets are Sets; a protobuf message is what its codec makes, or its
 * bytes, and null for none in a field.
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
   * Its fields, as if they were a message: who predicts encodes and decodes a state to round it as
   * the wire does, and compares the bytes.
   */
  readonly fields: MessageType;
  /**
   * The leaves that are numbers, in a flat layout for whoever interpolates: see Replicated.flat. A
   * quaternion takes four places in it, everything else one.
   */
  readonly flat: readonly FlatLeaf[];
  /** How many places the flat layout has. */
  readonly flatSize: number;
  /** Makes a state of zero values, of which each call makes another one. */
  create(): Record<string, unknown>;
  /** Writes numbers in the flat layout into a state that create, or Replicated.copy, has made. */
  unflatten(flat: Float64Array, state: Record<string, unknown>): void;
}

/** A number in the flat layout. */
export interface FlatLeaf {
  /** Where it is in a state: field names, and indices of arrays. */
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
  /** The answer's, of a call. */
  readonly reply: MessageType | undefined;
}

/** What the server's schema declares. */
export interface Schema {
  readonly classes: readonly ObjectClass[];
  readonly methods: readonly Method[];
  /** What clients make for each fixed step, if they make anything. */
  readonly input: MessageType | undefined;
}

/** Reads the bytes of a SchemaTables. Throws a SchemaError. */
export function readSchema(_bytes: Uint8Array, _protos?: ProtoCodecs): Schema {
  throw new SchemaError("to be written");
}
