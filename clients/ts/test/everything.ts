// The schema of "every-thing" 3.1, written by "schema --ts". Do not edit.

import type { Schema } from "../src/index.js";
import { protobufCodecs } from "../src/protobuf.js";

/** The protobuf message google.protobuf.ListValue. Unset fields have their zero values. */
export interface ListValue {
  values: Array<Value>;
}

/** The protobuf enum google.protobuf.NullValue. */
export const NullValue = {
  NULL_VALUE: 0,
} as const;
export type NullValue = number;

/** The protobuf message google.protobuf.Struct. Unset fields have their zero values. */
export interface Struct {
  fields: Array<FieldsEntry>;
}

/** The protobuf message google.protobuf.Struct.FieldsEntry. Unset fields have their zero values. */
export interface FieldsEntry {
  key: string;
  value?: Value;
}

/** The protobuf message google.protobuf.Timestamp. Unset fields have their zero values. */
export interface Timestamp {
  seconds: bigint;
  nanos: number;
}

/** The protobuf message google.protobuf.Value. Unset fields have their zero values. */
export interface Value {
  nullValue?: NullValue;
  numberValue?: number;
  stringValue?: string;
  boolValue?: boolean;
  structValue?: Struct;
  listValue?: ListValue;
}

/** Objects of the class "everything". */
export interface Everything {
  /** bool */
  Yes: boolean;
  /** int8 */
  Small: number;
  /** uint64 */
  Large: bigint;
  /** float32 */
  Exact: number;
  /** float64 quant=1/10 steps=200:900 */
  Steps: number;
  /** float32 */
  Yaw: number;
  /** [4]float32 */
  Rot: Array<number>;
  /** quat bits=10 */
  Spin: [number, number, number, number];
  /** string max=16, read by: owner */
  Name: string;
  /** bytes max=256 */
  Data: Uint8Array;
  /** [32]byte */
  Hash: Uint8Array;
  /** [2]{X float32 quant=1/8; Y float32 quant=1/8; Hops uint8} */
  Legs: Array<{ X: number; Y: number; Hops: number }>;
  /** []{ID uint16; Count uint16} max=20 */
  Bag: Array<{ ID: number; Count: number }>;
  /** map[string max=128]int32 max=8 */
  Ammo: Map<string, number>;
  /** set[uint16] max=64 */
  Seen: Set<number>;
  /** ref */
  Target: number;
  /** instant */
  Until: bigint;
  /** proto google.protobuf.Timestamp max=256 */
  Said: Timestamp | null;
  /** {Step uint64; N uint8} */
  Born: { Step: bigint; N: number };
}

/** Objects of the class "odd name". */
export interface Everything2 {
  /** bool */
  Yes: boolean;
  /** int8 */
  Small: number;
  /** uint64 */
  Large: bigint;
  /** float32 */
  Exact: number;
  /** float64 quant=1/10 steps=200:900 */
  Steps: number;
  /** float32 */
  Yaw: number;
  /** [4]float32 */
  Rot: Array<number>;
  /** quat bits=10 */
  Spin: [number, number, number, number];
  /** string max=16, read by: owner */
  Name: string;
  /** bytes max=256 */
  Data: Uint8Array;
  /** [32]byte */
  Hash: Uint8Array;
  /** [2]{X float32 quant=1/8; Y float32 quant=1/8; Hops uint8} */
  Legs: Array<{ X: number; Y: number; Hops: number }>;
  /** []{ID uint16; Count uint16} max=20 */
  Bag: Array<{ ID: number; Count: number }>;
  /** map[string max=128]int32 max=8 */
  Ammo: Map<string, number>;
  /** set[uint16] max=64 */
  Seen: Set<number>;
  /** ref */
  Target: number;
  /** instant */
  Until: bigint;
  /** proto google.protobuf.Timestamp max=256 */
  Said: Timestamp | null;
  /** {Step uint64; N uint8} */
  Born: { Step: bigint; N: number };
}

/** The payload of "tell". */
export interface Ask {
  /** string max=128 */
  Text: string;
}

/** The payload of "input". */
export interface Unnamed {
  /** bool */
  Fire: boolean;
}

/** The types of the game, by the names that they have on the wire. */
export interface EveryThing {
  classes: {
    "everything": Everything;
    "odd name": Everything2;
  };
  rpcs: {
    "tell": Ask;
    "frame": Value;
  };
  calls: {
    "ask": { question: Ask; answer: Timestamp };
  };
  input: Unnamed;
}

/** The maximum bytes of texts and elements of lists, by class or method and field. */
export const limits = {
  "everything": { Name: 16, Data: 256, Bag: 20, Ammo: 8, Seen: 64, Said: 256 },
  "odd name": { Name: 16, Data: 256, Bag: 20, Ammo: 8, Seen: 64, Said: 256 },
  "tell": { Text: 128 },
  "ask": { Text: 128 },
} as const;

/** The schema for connect. */
export const schema: Schema<EveryThing> = {
  name: "every-thing",
  major: 3,
  minor: 1,
  classes: {
    "everything": {
      fields: {
        Yes: "bool",
        Small: "int8",
        Large: "uint64",
        Exact: "float32",
        Steps: "float64 quant=1/10 steps=200:900",
        Yaw: "float32",
        Rot: "[4]float32",
        Spin: "quat bits=10",
        Name: "string max=16",
        Data: "bytes max=256",
        Hash: "[32]byte",
        Legs: "[2]{X float32 quant=1/8; Y float32 quant=1/8; Hops uint8}",
        Bag: "[]{ID uint16; Count uint16} max=20",
        Ammo: "map[string max=128]int32 max=8",
        Seen: "set[uint16] max=64",
        Target: "ref",
        Until: "instant",
        Said: "proto google.protobuf.Timestamp max=256",
        Born: "{Step uint64; N uint8}",
      },
      lerp: { "Small": "linear", "Steps": "none", "Yaw": "degrees", "Legs.0.X": "none", "Legs.0.Y": "none", "Legs.1.X": "none", "Legs.1.Y": "none" },
      teleport: ["Legs.0.Hops", "Legs.1.Hops"],
      born: "Born",
    },
    "odd name": {
      fields: {
        Yes: "bool",
        Small: "int8",
        Large: "uint64",
        Exact: "float32",
        Steps: "float64 quant=1/10 steps=200:900",
        Yaw: "float32",
        Rot: "[4]float32",
        Spin: "quat bits=10",
        Name: "string max=16",
        Data: "bytes max=256",
        Hash: "[32]byte",
        Legs: "[2]{X float32 quant=1/8; Y float32 quant=1/8; Hops uint8}",
        Bag: "[]{ID uint16; Count uint16} max=20",
        Ammo: "map[string max=128]int32 max=8",
        Seen: "set[uint16] max=64",
        Target: "ref",
        Until: "instant",
        Said: "proto google.protobuf.Timestamp max=256",
        Born: "{Step uint64; N uint8}",
      },
      lerp: { "Small": "linear", "Steps": "none", "Yaw": "degrees", "Legs.0.X": "none", "Legs.0.Y": "none", "Legs.1.X": "none", "Legs.1.Y": "none" },
      teleport: ["Legs.0.Hops", "Legs.1.Hops"],
      born: "Born",
    },
  },
  methods: {
    "tell": { stages: [30, 50], message: "{Text string max=128;}" },
    "frame": { stages: [50], message: "proto google.protobuf.Value" },
    "ask": { stages: [50], message: "{Text string max=128;}", answer: "proto google.protobuf.Timestamp", timeoutMs: 10000 },
  },
  input: "{Fire bool;}",
  protobuf: protobufCodecs({
    "google.protobuf.Timestamp": [
      { no: 1, name: "seconds", kind: "int64", repeated: false, optional: false, of: "" },
      { no: 2, name: "nanos", kind: "int32", repeated: false, optional: false, of: "" },
    ],
    "google.protobuf.Struct.FieldsEntry": [
      { no: 1, name: "key", kind: "string", repeated: false, optional: false, of: "" },
      { no: 2, name: "value", kind: "message", repeated: false, optional: true, of: "google.protobuf.Value" },
    ],
    "google.protobuf.Struct": [
      { no: 1, name: "fields", kind: "message", repeated: true, optional: false, of: "google.protobuf.Struct.FieldsEntry" },
    ],
    "google.protobuf.ListValue": [
      { no: 1, name: "values", kind: "message", repeated: true, optional: false, of: "google.protobuf.Value" },
    ],
    "google.protobuf.Value": [
      { no: 1, name: "nullValue", kind: "enum", repeated: false, optional: true, of: "" },
      { no: 2, name: "numberValue", kind: "double", repeated: false, optional: true, of: "" },
      { no: 3, name: "stringValue", kind: "string", repeated: false, optional: true, of: "" },
      { no: 4, name: "boolValue", kind: "bool", repeated: false, optional: true, of: "" },
      { no: 5, name: "structValue", kind: "message", repeated: false, optional: true, of: "google.protobuf.Struct" },
      { no: 6, name: "listValue", kind: "message", repeated: false, optional: true, of: "google.protobuf.ListValue" },
    ],
  }),
};
