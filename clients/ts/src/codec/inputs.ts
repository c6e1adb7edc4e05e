// Inputs of a client, in packets (docs/WIRE.md, "Inputs").

import { BitWriter } from "../wire/bitwriter.js";
import { same } from "../wire/bytes.js";
import { zigzag } from "../wire/numbers.js";
import type { Version } from "./delta.js";
import { cellsOf, decodeMessage, encodeMessage } from "./message.js";
import type { Message, MessageType } from "./schema.js";
import { DeltaWriter } from "./writedelta.js";

/** A player's view when an input was made: between the snapshots of two ticks. */
export interface View {
  from: number;
  to: number;
  /** The position from one to the other, from 0 to 63, in 64ths. */
  alpha: number;
}

/** An input that has been made for a fixed step. */
export interface StepInput {
  readonly step: number;
  /** The input as InputWriter.encode has made it: it never changes. */
  readonly input: EncodedInput;
  readonly view?: View | undefined;
}

/** An input with a copied value: the caller may reuse its own object. */
export interface EncodedInput {
  /** Its encoding as a message. @internal */
  readonly bytes: Uint8Array;
  /** Its cells, unless it is a protobuf message. @internal */
  readonly version: Version | undefined;
}

const MAX_INPUT = 48;
const MAX_PACKET = 900;
const PLACES = 64;
const MAX_ADVANCE = 2 ** 20;

/** Writes the packets of inputs. */
export class InputWriter {
  private readonly type: Message;
  private readonly w = new BitWriter();
  private readonly deltas = new DeltaWriter(this.w);

  constructor(type: MessageType) {
    this.type = type as Message;
  }

  /** Encodes an input. Throws a RangeError as encodeMessage does, and if it is over 48 bytes. */
  encode(value: unknown): EncodedInput {
    const bytes = encodeMessage(this.type, value);
    if (bytes.length > MAX_INPUT) {
      throw new RangeError(`input has ${bytes.length} bytes, more than ${MAX_INPUT}`);
    }
    const { layout } = this.type;
    return { bytes, version: layout && { tick: 0, owner: 0, ...cellsOf(layout, bytes) } };
  }

  /**
   * The server's reading of an input: quantised and rounded, so that a prediction uses the same.
   */
  decode(input: EncodedInput): unknown {
    return decodeMessage(this.type, input.bytes);
  }

  /**
   * Writes one packet of the newest inputs of a generation, newest first. Older inputs that do not
   * fit into 900 bytes are left out. Views are encoded as in docs/WIRE.md: a missing view means
   * that the player kept looking on.
   */
  write(inputs: readonly StepInput[], generation = 0): Uint8Array {
    for (let n = inputs.length; ; n--) {
      this.writeSome(inputs.slice(0, n), generation);
      if (n <= 1 || this.w.length <= 8 * MAX_PACKET) {
        return this.w.done();
      }
    }
  }

  private writeSome(inputs: readonly StepInput[], generation: number): void {
    const { w } = this;
    const gap = (i: number) => inputs[i - 1].step - inputs[i].step - 1;
    const gaps = inputs.some((_, i) => i > 0 && gap(i) > 0);
    const line = new ViewLine();
    w.reset();
    w.bits(inputs[0].step % 2 ** 16, 16);
    w.bits(inputs.length - 1, 8);
    w.bit(gaps);
    w.bits(generation, 2);
    for (let i = 0; i < inputs.length; i++) {
      if (gaps && i > 0) {
        w.len(gap(i));
      }
      line.write(w, inputs[i].view, inputs[i].step);
      this.writeInput(inputs[i].input, inputs[i - 1]?.input, inputs[i - 2]?.input);
    }
  }

  private writeInput(input: EncodedInput, newer: EncodedInput | undefined, newest: EncodedInput | undefined): void {
    const { layout } = this.type;
    if (layout !== undefined) {
      const zero = { tick: 0, owner: 0, n: layout.zeroN, x: layout.zeroX as unknown[] };
      this.deltas.write(layout, input.version!, newer?.version ?? zero, newest?.version, 1, 1);
      return;
    }
    const changed = !same(input.bytes, newer?.bytes ?? new Uint8Array(0));
    this.w.bit(changed);
    if (changed) {
      this.w.len(input.bytes.length);
      this.w.raw(input.bytes);
    }
  }
}

/** Predicts the next view from those of newer inputs. */
class ViewLine {
  private newer: View | undefined;
  private advance = PLACES;

  write(w: BitWriter, v: View | undefined, step: number): void {
    const advance = this.newer && v && advanceOf(this.newer, v);
    if (v === undefined) {
      if (this.newer === undefined) w.bit(false);
      else w.bits(1, 2);
    } else if (advance !== undefined) {
      w.bit(false);
      w.rice(zigzag(advance - this.advance), 0);
      this.advance = advance;
    } else {
      w.bits(3, 2);
      w.len(zigzag(step - v.from));
      w.len(v.to - v.from);
      w.bits(v.alpha, 6);
    }
    this.newer = v;
  }
}

/** The number of places from a view to a newer one, undefined if it is not on its line. */
function advanceOf(newer: View, v: View): number | undefined {
  const span = newer.to - newer.from;
  const ticks = newer.from - v.from;
  if (span === 0 || v.to - v.from !== span || ticks % span !== 0) {
    return undefined;
  }
  const advance = (ticks / span) * PLACES + newer.alpha - v.alpha;
  return Math.abs(advance) < MAX_ADVANCE ? advance : undefined;
}
