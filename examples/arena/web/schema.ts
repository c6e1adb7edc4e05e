// The schema of "arena" 1.0, written by "schema --ts". Do not edit.

import type { Schema } from "@netloop/client";
import { protobufCodecs } from "@netloop/client/protobuf";

/** The protobuf message arena.v1.Said. Unset fields have their zero values. */
export interface Said {
  name: string;
  text: string;
}

/** The protobuf message arena.v1.Say. Unset fields have their zero values. */
export interface Say {
  text: string;
}

/** Objects of the class "ship". */
export interface Ship {
  /** float32 quant=1/32 */
  X: number;
  /** float32 quant=1/32 */
  Y: number;
  /** float32 quant=1/64, read by: owner */
  VX: number;
  /** float32 quant=1/64, read by: owner */
  VY: number;
  /** float32 quant=1/256 */
  Heading: number;
  /** uint8 */
  Leaps: number;
  /** bool */
  Thrust: boolean;
  /** int8 */
  Turn: number;
  /** instant, read by: owner */
  Reload: bigint;
  /** instant */
  Shield: bigint;
  /** string max=16 */
  Name: string;
  /** uint8 */
  Hull: number;
  /** instant */
  Falls: bigint;
  /** int32 */
  Score: number;
}

/** Objects of the class "rock". */
export interface Rock {
  /** float32 quant=1/8 */
  X: number;
  /** float32 quant=1/8 */
  Y: number;
  /** uint8 */
  Leaps: number;
  /** uint8 */
  Radius: number;
}

/** Objects of the class "shot". */
export interface Shot {
  /** float32 quant=1/32 */
  X: number;
  /** float32 quant=1/32 */
  Y: number;
  /** float32 quant=1/256 */
  Heading: number;
  /** instant */
  End: bigint;
  /** {Step uint64; N uint8}, read by: owner */
  Born: { Step: bigint; N: number };
}

/** Objects of the class "pickup". */
export interface Pickup {
  /** float32 quant=1/8 */
  X: number;
  /** float32 quant=1/8 */
  Y: number;
  /** uint8 */
  Kind: number;
}

/** Objects of the class "waiting". */
export interface Waiting {
  /** bool */
  Queued: boolean;
  /** instant */
  Until: bigint;
}

/** Objects of the class "duel". */
export interface Duel {
  /** bool */
  Playing: boolean;
  /** bool */
  Over: boolean;
  /** string max=16 */
  Winner: string;
  /** {Until instant; Length uint32} */
  Clock: { Until: bigint; Length: number };
}

/** Objects of the class "place". */
export interface Place {
  /** {Status uint8; Until instant} */
  Presence: { Status: number; Until: bigint };
  /** string max=16 */
  Player: string;
  /** int32 */
  Score: number;
}

/** The payload of "enter". */
export interface Entry {
  /** string max=16 */
  Name: string;
}

/** The payload of "struck". */
export interface Strike {
  /** ref */
  By: number;
  /** ref */
  Ship: number;
  /** uint64 */
  Step: bigint;
}

/** The payload of "standings". */
export interface StandingsQuery {
  /** uint8 */
  Top: number;
}

/** The payload of "standings". */
export interface StandingsReply {
  /** []{Name string max=16; Score int32} max=10 */
  Rows: Array<{ Name: string; Score: number }>;
}

/** The payload of "duel.result". */
export interface Outcome {
  /** []string max=16 max=2 */
  Players: Array<string>;
  /** string max=16 */
  Winner: string;
}

/** The payload of "input". */
export interface Control {
  /** bool */
  Thrust: boolean;
  /** bool */
  Fire: boolean;
  /** int8 */
  Turn: number;
}

/** The types of the game, by the names that they have on the wire. */
export interface Arena {
  classes: {
    "ship": Ship;
    "rock": Rock;
    "shot": Shot;
    "pickup": Pickup;
    "waiting": Waiting;
    "duel": Duel;
    "place": Place;
  };
  rpcs: {
    "say": Say;
    "said": Said;
    "enter": Entry;
    "struck": Strike;
    "duel.result": Outcome;
  };
  calls: {
    "standings": { question: StandingsQuery; answer: StandingsReply };
  };
  input: Control;
}

/** The maximum bytes of texts and elements of lists, by class or method and field. */
export const limits = {
  "ship": { Name: 16 },
  "duel": { Winner: 16 },
  "place": { Player: 16 },
  "enter": { Name: 16 },
  "duel.result": { Players: 2, Winner: 16 },
} as const;

/** The schema for connect. */
export const schema: Schema<Arena> = {
  name: "arena",
  major: 1,
  minor: 0,
  classes: {
    "ship": {
      fields: {
        X: "float32 quant=1/32",
        Y: "float32 quant=1/32",
        VX: "float32 quant=1/64",
        VY: "float32 quant=1/64",
        Heading: "float32 quant=1/256",
        Leaps: "uint8",
        Thrust: "bool",
        Turn: "int8",
        Reload: "instant",
        Shield: "instant",
        Name: "string max=16",
        Hull: "uint8",
        Falls: "instant",
        Score: "int32",
      },
      lerp: { "Heading": "angle" },
      teleport: ["Leaps"],
      predicted: true,
    },
    "rock": {
      fields: {
        X: "float32 quant=1/8",
        Y: "float32 quant=1/8",
        Leaps: "uint8",
        Radius: "uint8",
      },
      teleport: ["Leaps"],
    },
    "shot": {
      fields: {
        X: "float32 quant=1/32",
        Y: "float32 quant=1/32",
        Heading: "float32 quant=1/256",
        End: "instant",
        Born: "{Step uint64; N uint8}",
      },
      predicted: true,
      born: "Born",
    },
    "pickup": {
      fields: {
        X: "float32 quant=1/8",
        Y: "float32 quant=1/8",
        Kind: "uint8",
      },
    },
    "waiting": {
      fields: {
        Queued: "bool",
        Until: "instant",
      },
    },
    "duel": {
      fields: {
        Playing: "bool",
        Over: "bool",
        Winner: "string max=16",
        Clock: "{Until instant; Length uint32}",
      },
    },
    "place": {
      fields: {
        Presence: "{Status uint8; Until instant}",
        Player: "string max=16",
        Score: "int32",
      },
    },
  },
  methods: {
    "say": { stages: [50], message: "proto arena.v1.Say" },
    "said": { stages: [50], message: "proto arena.v1.Said" },
    "enter": { stages: [50], message: "{Name string max=16;}" },
    "struck": { stages: [50], message: "{By ref;Ship ref;Step uint64;}" },
    "standings": { stages: [50], message: "{Top uint8;}", answer: "{Rows []{Name string max=16; Score int32} max=10;}", timeoutMs: 10000 },
    "duel.result": { stages: [50], message: "{Players []string max=16 max=2;Winner string max=16;}" },
  },
  input: "{Thrust bool;Fire bool;Turn int8;}",
  protobuf: protobufCodecs({
    "arena.v1.Say": [
      { no: 1, name: "text", kind: "string", repeated: false, optional: false, of: "" },
    ],
    "arena.v1.Said": [
      { no: 1, name: "name", kind: "string", repeated: false, optional: false, of: "" },
      { no: 2, name: "text", kind: "string", repeated: false, optional: false, of: "" },
    ],
  }),
};
