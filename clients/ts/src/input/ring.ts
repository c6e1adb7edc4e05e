// The newest inputs that a client has made, by their steps. None goes before its step is known to
// have run, so that an input can be sent again, and none has to be made twice.

import type { EncodedInput, InputWriter, StepInput, View } from "../codec/index.js";
import type { Moment } from "../view/playout.js";

/** As many as a server may hold, and those that have run and of which the client has not heard yet. */
const KEPT = 128;
const REPEATS = 16;

interface Slot extends StepInput {
  step: number;
  input: EncodedInput;
  view: View | undefined;
  came: boolean;
}

export class InputRing {
  newest = 0;
  private slots: (Slot | undefined)[] = new Array(KEPT);
  private done = 0;

  constructor(readonly writer: InputWriter) {}

  /** Whether the input of a step is to be made: none was made for it or a later one, and there is room. */
  wants(step: number): boolean {
    return step > this.newest && step <= this.done + KEPT;
  }

  /** Keeps the input of a step; throws a RangeError for one that cannot travel. */
  add(step: number, value: unknown, view: View | undefined): void {
    this.slots[step % KEPT] = { step, input: this.writer.encode(value), view, came: false };
    this.newest = step;
  }

  /** The input of a step as the server reads it, while it is kept. */
  at(step: number): unknown {
    const s = this.slots[step % KEPT];
    return step > 0 && s?.step === step ? this.writer.decode(s.input) : undefined;
  }

  /** Takes which inputs the server has. */
  confirm(newest: number, before: number): void {
    this.came(newest);
    for (let i = 0; i < REPEATS; i++) if ((before >> i) & 1 && newest > i + 1) this.came(newest - 1 - i);
  }

  private came(step: number): void {
    const s = this.slots[step % KEPT];
    if (s?.step === step) s.came = true;
  }

  /** The server has run the steps up to this one. */
  ran(step: number): void {
    this.done = Math.max(this.done, step);
  }

  /** A packet of the input of a step and those before it down to the oldest that may still have to come. */
  packet(newest: number): Uint8Array | undefined {
    const list: Slot[] = [];
    let open = 0;
    for (let step = newest; step > this.done && list.length < REPEATS && newest - step < KEPT; step--) {
      const s = this.slots[step % KEPT];
      if (s?.step !== step) continue;
      list.push(s);
      if (!s.came) open = list.length;
    }
    return open > 0 ? this.writer.write(list.slice(0, open)) : undefined;
  }
}

const PLACES = 64;
const MAX_SPAN = 65_536;

/** What a player sees at a moment, as the other side reads it. */
export function viewOf(m: Moment): View | undefined {
  const { to } = m;
  const from = m.alpha >= 1 ? to : m.from;
  const alpha = m.alpha >= 1 ? 0 : Math.floor(m.alpha * PLACES);
  return to > 0 && from <= to && to - from < MAX_SPAN && alpha >= 0 ? { from, to, alpha } : undefined;
}
