// The schema of "dots" 1.0, written by "schema --ts". Do not edit.

import type { Schema } from "@netloop/client";

/** Objects of the class "dot". */
export interface Dot {
  /** float32 quant=1/8 */
  X: number;
  /** float32 quant=1/8 */
  Y: number;
  /** int32 */
  Score: number;
}

/** Objects of the class "coin". */
export interface Dot2 {
  /** float32 quant=1/8 */
  X: number;
  /** float32 quant=1/8 */
  Y: number;
  /** int32 */
  Score: number;
}

/** The payload of "move". */
export interface Move {
  /** int8 */
  DX: number;
  /** int8 */
  DY: number;
}

/** The types of the game, by the names that they have on the wire. */
export interface Dots {
  classes: {
    "dot": Dot;
    "coin": Dot2;
  };
  rpcs: {
    "move": Move;
  };
  calls: {
  };
  input: undefined;
}

/** The maximum bytes of texts and elements of lists, by class or method and field. */
export const limits = {
} as const;

/** The schema for connect. */
export const schema: Schema<Dots> = {
  name: "dots",
  major: 1,
  minor: 0,
  classes: {
    "dot": {
      fields: {
        X: "float32 quant=1/8",
        Y: "float32 quant=1/8",
        Score: "int32",
      },
    },
    "coin": {
      fields: {
        X: "float32 quant=1/8",
        Y: "float32 quant=1/8",
        Score: "int32",
      },
    },
  },
  methods: {
    "move": { stages: [30], message: "{DX int8;DY int8;}" },
  },
};
