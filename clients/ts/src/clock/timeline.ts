// Conversions between ticks, fixed steps and game time. Game times are ms; steps and ticks are
// calculated in whole numbers, as on the server.

import type { Epoch, Rate } from "../wire/frames.js";

/** floor(a * b / c), exact for whole numbers. */
function mulDiv(a: number, b: number, c: number): number {
  const p = a * b;
  return p <= Number.MAX_SAFE_INTEGER ? Math.floor(p / c) : Number((BigInt(a) * BigInt(b)) / BigInt(c));
}

const NS = 1e9;
/** The highest tick and step: the client clamps the server's numbers to it. */
export const MAX_TICK = 2 ** 50;

export class Timeline {
  readonly tickMs: number;
  readonly stepMs: number;

  /**
   * The number of fixed steps for which inputs and predictions are kept: those of 2 s, rounded to a
   * power of two.
   */
  readonly window: number;
  /**
   * The most inputs of a packet, those of 250 ms, and the most steps of a frame, those of 125 ms.
   */
  readonly repeats: number;
  readonly maxSteps: number;
  /** The period of flushes: a tick, or between slow ticks a faster fixed step, 100 ms at least. */
  readonly flushMs: number;

  constructor(
    readonly tick: Rate,
    readonly fixed: Rate,
  ) {
    this.tickMs = (1000 * tick.den) / tick.num;
    this.stepMs = (1000 * fixed.den) / fixed.num;
    this.flushMs = Math.min(this.tickMs, Math.max(this.stepMs, 100));
    const steps = (ms: number) => Math.floor((ms * 1e6) / Math.round(this.stepMs * 1e6));
    this.window = Math.min(Math.max(2 ** Math.ceil(Math.log2(2000 / this.stepMs)), 64), 2048);
    this.repeats = Math.min(Math.max(steps(250), 16), 256);
    this.maxSteps = Math.max(steps(125), 8);
  }

  /** The game time of a tick, in ms. */
  gameTime(tick: number): number {
    return at(tick, this.tick);
  }

  /** The number of fixed steps that are done when a tick has run. */
  fixedSteps(tick: number): number {
    const { tick: t, fixed: f } = this;
    return mulDiv(clampTick(tick), f.num * t.den, f.den * t.num);
  }

  /** The tick that runs a fixed step. */
  stepTick(step: number): number {
    const { tick: t, fixed: f } = this;
    const a = f.den * t.num;
    const b = f.num * t.den;
    const tick = mulDiv(clampTick(step), a, b);
    return this.fixedSteps(tick) < step ? tick + 1 : tick;
  }

  /** The last tick that is not after a game time. */
  tickAt(ms: number): number {
    return indexAt(ms, this.tick);
  }

  /**
   * The last fixed step that is not after a game time, and the distance of the game time beyond it,
   * in steps.
   */
  stepAt(ms: number): { step: number; fraction: number } {
    const step = indexAt(ms, this.fixed);
    const from = at(step, this.fixed);
    const to = at(step + 1, this.fixed);
    return { step, fraction: Math.min(Math.max((ms - from) / (to - from), 0), 1 - 2 ** -53) };
  }

  /** The time at which a tick is due, on the clock of the epoch. */
  deadline(e: Epoch, tick: number): number {
    return e.at + this.gameTime(tick) - this.gameTime(e.tick);
  }
}

function clampTick(n: number): number {
  return Math.min(Math.max(n, 0), MAX_TICK);
}

/** The time of the n-th tick or step of a rate, rounded down to a nanosecond as on the server. */
function at(n: number, r: Rate): number {
  return mulDiv(clampTick(n), NS * r.den, r.num) / 1e6;
}

/** The index of the last tick or step that is not after a time. */
function indexAt(ms: number, r: Rate): number {
  if (!(ms > 0)) return 0;
  let n = Math.min(Math.floor((ms * r.num) / (1000 * r.den)), MAX_TICK);
  while (n > 0 && at(n, r) > ms) n--;
  while (n < MAX_TICK && at(n + 1, r) <= ms) n++;
  return n;
}
