// Lets the steps of a client that makes inputs run ahead of the server's present, so that each
// input arrives before its step runs: docs/adr/0031 describes the length of the lead.

import type { Timeline } from "./timeline.js";

/** Measures of the last second. */
const NEEDS = 128;
const SLEW = 1 / 100;
/**
 * While the last STARVED inputs arrived too late, the lead grows at this faster rate, which a
 * player notices.
 */
const STARVED_SLEW = 1 / 20;
const STARVED = 4;
const FAR = 250;
const PATIENCE = 1500;
const START = 3;
const BEGUN = 16;
const MOST_EARLY = 10_000;
export const MOST_INTERVAL = 100;
/**
 * The longest pause of the steps, in ms, when the server's time moves back: a larger move sets the
 * steps back.
 */
const STILL = 100;

interface Made {
  step: number;
  epochs: number;
  at: number;
  /** The time at which the oldest input was made that was sent in the same packet; -1 before. */
  first: number;
}

export class Lead {
  on = false;
  /** The first step that leads: inputs of earlier ones would arrive too late. */
  first = 0;
  /** The newest step with a sent input. */
  left = 0;
  jumps = 0;
  backs = 0;
  /** The step to which the last setback went. */
  back = 0;
  private late = 0;
  private last = 0;
  private keep = 0;
  private owed = 0;
  private far = 0;
  private begun = false;
  private frame = 0;
  private steps: (Made | undefined)[] = [];
  private flushed = 0;
  private interval = 0;
  private told = 0;
  private epochs = 0;
  private needs = new Needs();

  /** Begins, and returns the game time that the steps have then. */
  begin(now: number, game: number, rtt: number, interval: number, window: number): number {
    this.steps = new Array(window);
    this.on = true;
    this.last = now;
    this.interval = interval;
    this.keep = rtt / 2 + START * interval;
    this.left = this.told = this.frame = this.owed = this.far = 0;
    this.restart();
    return game + this.keep;
  }

  /** Discards the measurements, because the path to the server may have changed. */
  restart(): void {
    this.needs = new Needs();
    this.begun = false;
    this.far = this.late = 0;
  }

  /**
   * Returns the steps' game time in a frame, given their time at the frame before. It never
   * decreases.
   */
  follow(now: number, at: number, game: number, step: number): number {
    const passed = Math.max(now - this.last, 0);
    this.last += passed;
    const still = Math.min(passed, this.owed);
    this.owed -= still;
    at += passed - still;
    if (this.owed > 0) return at;
    this.frame += (Math.min(passed, MOST_INTERVAL) - this.frame) / 8;
    if (this.needs.known(now)) this.keep = now + this.needs.wanted + this.frame + Math.max(step, this.interval) - game;
    const off = game + this.keep - at;
    if (this.jumpsBy(off, at - now, passed)) {
      this.owed = Math.max(-off, 0);
      return at + Math.max(off, 0);
    }
    const most = passed * (off > 0 && this.late >= STARVED && this.begun ? STARVED_SLEW : SLEW);
    return at + Math.min(Math.max(off, -most), most);
  }

  private jumpsBy(off: number, ahead: number, passed: number): boolean {
    const known = this.needs.known(this.last);
    if (known && !this.begun && this.needs.length >= BEGUN) return (this.begun = true);
    if (off > -FAR && ((known && ahead >= this.needs.half) || (!known && off < FAR))) {
      this.far = 0;
      return false;
    }
    if ((this.far += passed) < PATIENCE) return false;
    this.far = 0;
    this.jumps++;
    return true;
  }

  /** Records that the input of a step was made. */
  made(now: number, step: number): void {
    this.steps[step % this.steps.length] = { step, epochs: this.epochs, at: now, first: -1 };
  }

  /** Records that the inputs up to a step were sent. */
  flush(now: number, newest: number): void {
    const s = this.steps[newest % this.steps.length];
    if (newest <= this.left || s?.step !== newest) return;
    s.first = s.at;
    const oldest = this.steps[(this.left + 1) % this.steps.length];
    if (oldest?.step === this.left + 1) {
      s.first = oldest.at;
      this.interval += (Math.min(now - this.flushed, MOST_INTERVAL) - this.interval) / 8;
    }
    this.left = newest;
    this.flushed = now;
  }

  /**
   * Takes the server's measurement of how early the input of a step arrived, while it was the
   * newest.
   */
  take(now: number, line: Timeline, step: number, early: number): void {
    const s = this.steps[step % this.steps.length];
    if (!this.on || step <= this.told || s?.step !== step || s.first < 0 || s.epochs !== this.epochs || Math.abs(early) > MOST_EARLY) return;
    this.told = step;
    this.late = early < 0 ? this.late + 1 : 0;
    this.needs.add(now, line.gameTime(line.stepTick(step)) - early - s.first);
  }

  /**
   * Follows an epoch by which the server's time has moved back; true: the caller has to set the
   * steps back.
   */
  moved(by: number): boolean {
    this.epochs++;
    this.needs.shift(-by);
    if (by <= STILL) {
      this.owed += Math.max(by, 0);
      return false;
    }
    this.owed = 0;
    this.backs++;
    return true;
  }

  /** Records that the steps were set back to this one: inputs of later steps are made again. */
  setBack(step: number): void {
    this.back = step;
    this.left = Math.min(this.left, step);
    this.told = Math.min(this.told, step);
  }
}

const SPAN = 1000;
const LEAST = 8;

/** Measures how far ahead of the client's clock the steps had to be, over the last second. */
class Needs {
  half = 0;
  private few = 0;
  private most = 0;
  private all: { at: number; ahead: number }[] = [];

  get length(): number {
    return this.all.length;
  }

  known(now: number): boolean {
    return this.all.length >= LEAST && now - this.all.at(-1)!.at <= SPAN;
  }

  /** The lead that nearly all inputs needed, and the jitter. */
  get wanted(): number {
    return this.most + this.most - this.few;
  }

  add(at: number, ahead: number): void {
    this.all.push({ at, ahead });
    while (this.all.length > NEEDS || at - this.all[0]!.at > SPAN) this.all.shift();
    const sorted = this.all.map((n) => n.ahead).sort((a, b) => a - b);
    const n = sorted.length;
    this.few = sorted[Math.floor((n * 5) / 100)]!;
    this.half = sorted[n >> 1]!;
    this.most = sorted[Math.floor((n * 95) / 100)]!;
  }

  shift(by: number): void {
    for (const n of this.all) n.ahead += by;
    this.few += by;
    this.half += by;
    this.most += by;
  }
}
