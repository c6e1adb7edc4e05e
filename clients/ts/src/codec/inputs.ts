import type { MessageType } from "./schema.js";

/** What a player saw when an input was made: between the snapshots of two ticks. */
export interface View {
  from: number;
  to: number;
  /** From 0 to 63: how far it is from one to the other, in 64ths. */
  alpha: number;
}

/** An input that has been made for a fixed step. */
export interface StepInput {
  readonly step: number;
  /** The input as InputWriter.encode has made it: it never changes. */
  readonly input: EncodedInput;
  readonly view?: View | undefined;
}

/** An input whose value has been taken over: the player may go on with his own object. */
export interface EncodedInput {
  /** @internal */
  readonly bytes: Uint8Array;
}

/** Writes the packets of inputs (docs/WIRE.md, "Inputs"). */
export class InputWriter {
  constructor(readonly type: MessageType) {}

  /** Takes over an input. Throws a RangeError as encodeMessage does, and if it is over 48 bytes. */
  encode(_value: unknown): EncodedInput {
    throw new RangeError("to be written");
  }

  /** What the server makes of an input: quantised and rounded, so that a prediction uses the same. */
  decode(_input: EncodedInput): unknown {
    throw new RangeError("to be written");
  }

  /**
   * Writes one packet of the newest input and those before it, newest first: at most 16, of which
   * those that do not fit into 900 bytes are left out. Views are as docs/WIRE.md has them: without
   * one a player has looked on.
   */
  write(_inputs: readonly StepInput[]): Uint8Array {
    throw new RangeError("to be written");
  }
}
