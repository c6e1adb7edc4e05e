// The newest inputs that a client has made, by their steps, kept for repeated sends.

import type { EncodedInput, InputWriter, StepInput, View } from "../codec/index.js";
import type { Moment } from "../view/playout.js";

/** The number of inputs before the newest of which the server reports the arrival. */
const REPORTED = 16;

interface Slot extends StepInput {
  step: number;
  input: EncodedInput;
  view: View | undefined;
  confirmed: boolean;
}

export class InputRing {
  newest = 0;
  /**
   * The inputs of two windows: those that a server may hold, and those that the server has run
   * without the client's knowledge.
   */
  private slots: (Slot | undefined)[];
  private done = 0;
  private sent = 0;
  private generation = 0;

  constructor(
    readonly writer: InputWriter,
    window: number,
    private repeats: number,
  ) {
    this.slots = new Array(2 * window);
  }

  /**
   * Whether the input of a step has to be made. It does not depend on the server, because a
   * sleeping room sends no state.
   */
  wants(step: number): boolean {
    return step > this.newest;
  }

  /**
   * Discards the inputs of steps after this one: the server accepts new ones, of another
   * generation.
   */
  setBack(step: number): void {
    this.generation = (this.generation + 1) % 4;
    this.newest = Math.min(this.newest, step);
    this.sent = Math.min(this.sent, step);
    this.slots.forEach((s, i) => {
      if (s) s.confirmed = false; // The server discards its waiting inputs.
      if (s && s.step > step) this.slots[i] = undefined;
    });
  }

  /** Stores the input of a step; throws a RangeError for one that cannot be encoded. */
  add(step: number, value: unknown, view: View | undefined): void {
    this.slots[step % this.slots.length] = { step, input: this.writer.encode(value), view, confirmed: false };
    this.newest = step;
  }

  /** The input of a step as the server reads it, while it is stored. */
  at(step: number): unknown {
    const s = this.slots[step % this.slots.length];
    return step > 0 && s?.step === step ? this.writer.decode(s.input) : undefined;
  }

  /**
   * Records which inputs of a generation the server has; false: the generation is not the current
   * one.
   */
  confirm(newest: number, before: number, generation: number): boolean {
    if (generation !== this.generation) return false;
    this.confirmStep(newest);
    for (let i = 0; i < REPORTED; i++) if ((before >> i) & 1 && newest > i + 1) this.confirmStep(newest - 1 - i);
    return true;
  }

  private confirmStep(step: number): void {
    const s = this.slots[step % this.slots.length];
    if (s?.step === step) s.confirmed = true;
  }

  /** Records that the server has run the steps up to this one. */
  ran(step: number): void {
    this.done = Math.max(this.done, step);
  }

  /**
   * A packet of the newest input and those before it, down to the oldest that the server may still
   * need. Each is sent once, even if its step has run, because late inputs run too.
   */
  packet(): Uint8Array | undefined {
    const list: Slot[] = [];
    let open = 0;
    for (let step = this.newest; step > Math.min(this.done, this.sent) && list.length < this.repeats && this.newest - step < this.slots.length; step--) {
      const s = this.slots[step % this.slots.length];
      if (s?.step !== step) continue;
      list.push(s);
      if (!s.confirmed) open = list.length;
    }
    this.sent = this.newest;
    return open > 0 ? this.writer.write(list.slice(0, open), this.generation) : undefined;
  }
}

const PLACES = 64;
const MAX_SPAN = 65_536;

/** A player's view at a moment, as the server reads it. */
export function viewOf(m: Moment): View | undefined {
  const { to } = m;
  const from = m.alpha >= 1 ? to : m.from;
  const alpha = m.alpha >= 1 ? 0 : Math.floor(m.alpha * PLACES);
  return to > 0 && from <= to && to - from < MAX_SPAN && alpha >= 0 ? { from, to, alpha } : undefined;
}
