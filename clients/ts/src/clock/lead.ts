// Lets the steps of a client that makes inputs run ahead of the server's present, so that each
// input arrives before its step runs: docs/adr/0031 describes the length of the lead.

import type { Timeline } from "./timeline.js";

const MAX_SAMPLES = 128;
const MIN_SAMPLES = 8;
/** The least time over which inputs are measured: in ms, and in ticks, because the server reports with snapshots. */
const SPAN = 1000;
const SAMPLE_TICKS = 4 * MIN_SAMPLES;
const SLEW = 1 / 100;
/**
 * While the last STARVED inputs arrived too late, the lead grows at this faster rate, which a
 * player notices.
 */
const STARVED_SLEW = 1 / 20;
const STARVED = 4;
const MAX_OFF = 250;
const MAX_OFF_FOR = 1500;
const START_MARGIN = 3;
const MIN_MEASURED = 16;
const MAX_EARLY = 10_000;
export const MAX_INTERVAL = 100;
/**
 * The longest pause of the steps, in ms, when the server's time moves back: a larger move sets the
 * steps back.
 */
const MAX_HOLD = 100;

interface MadeStep {
  step: number;
  epochs: number;
  at: number;
  /** The time when the oldest input of the same packet was made; -1: not sent, or not measured. */
  first: number;
}

export class Lead {
  on = false;
  /** The first step that leads: inputs of earlier ones would arrive too late. */
  first = 0;
  /** The newest step with a sent input. */
  sent = 0;
  jumps = 0;
  setBacks = 0;
  /** The step to which the steps were set back last. */
  backTo = 0;
  private late = 0;
  private last = 0;
  private target = 0;
  private limit = 0;
  private hold = 0;
  /** Inputs whose last sending is later than this after they were made are not measured: the path did not delay them. */
  private maxWait = 0;
  private offFor = 0;
  private measured = false;
  private frame = 0;
  private steps: (MadeStep | undefined)[] = [];
  private flushed = 0;
  private interval = 0;
  private lastReported = 0;
  private epochs = 0;
  private span = SPAN;
  private samples = new LeadSamples(SPAN);

  /** Begins, and returns the game time that the steps have then. */
  begin(now: number, game: number, rtt: number, line: Timeline): number {
    this.steps = new Array(line.window);
    this.on = true;
    this.last = now;
    this.interval = Math.max(line.flushMs, line.stepMs);
    this.limit = line.window * line.stepMs - line.tickMs;
    this.maxWait = line.stepMs + MAX_INTERVAL;
    this.span = Math.max(SPAN, SAMPLE_TICKS * line.tickMs);
    this.sent = this.lastReported = this.frame = this.hold = this.offFor = 0;
    this.clockMoved(rtt, line);
    return game + this.target;
  }

  /** Estimates the lead, and measures it anew: earlier samples may have times of another clock. */
  clockMoved(rtt: number, line: Timeline): void {
    this.restart();
    this.aim(rtt / 2 + START_MARGIN * Math.max(line.flushMs, line.stepMs));
  }

  /** Sets the target, within the limits of the steps whose inputs the server measures. */
  private aim(target: number): void {
    this.target = Math.max(Math.min(target, this.limit), 0);
  }

  /**
   * Discards the measurements, because the path to the server may have changed. Inputs made before
   * do not count: they waited for the connection.
   */
  restart(): void {
    this.steps.fill(undefined);
    this.samples = new LeadSamples(this.span);
    this.measured = false;
    this.offFor = this.late = 0;
  }

  /**
   * Returns the steps' game time in a frame, given their time at the frame before. It never
   * decreases.
   */
  advance(now: number, at: number, game: number, step: number): number {
    const passed = Math.max(now - this.last, 0);
    this.last += passed;
    const still = Math.min(passed, this.hold);
    this.hold -= still;
    at += passed - still;
    if (this.hold > 0) return at;
    this.frame += (Math.min(passed, MAX_INTERVAL) - this.frame) / 8;
    if (this.samples.known(now)) this.aim(Math.max(now + this.samples.required - game, 0) + this.frame + Math.max(step, this.interval));
    const off = game + this.target - at;
    if (this.jumpsBy(off, at - now, passed)) {
      this.hold = Math.max(-off, 0);
      return at + Math.max(off, 0);
    }
    const most = passed * (off > 0 && this.late >= STARVED && this.measured ? STARVED_SLEW : SLEW);
    return at + Math.min(Math.max(off, -most), most);
  }

  private jumpsBy(off: number, ahead: number, passed: number): boolean {
    const known = this.samples.known(this.last);
    if (known && !this.measured && this.samples.length >= MIN_MEASURED) return (this.measured = true);
    if (off > -MAX_OFF && ((known && ahead >= this.samples.p50) || (!known && off < MAX_OFF))) {
      this.offFor = 0;
      return false;
    }
    if ((this.offFor += passed) < MAX_OFF_FOR) return false;
    this.offFor = 0;
    this.jumps++;
    return true;
  }

  /** Records that the input of a step was made. */
  made(now: number, step: number): void {
    this.steps[step % this.steps.length] = { step, epochs: this.epochs, at: now, first: -1 };
  }

  /** Records that the inputs up to a step were sent, for the first time or again. */
  flush(now: number, newest: number): void {
    const s = this.steps[newest % this.steps.length];
    if (newest < this.sent || s?.step !== newest) return;
    if (newest > this.sent) {
      s.first = s.at;
      const oldest = this.steps[(this.sent + 1) % this.steps.length];
      if (oldest?.step === this.sent + 1) {
        s.first = oldest.at;
        this.interval += (Math.min(now - this.flushed, MAX_INTERVAL) - this.interval) / 8;
      }
      this.sent = newest;
      this.flushed = now;
    }
    if (now - s.first > this.maxWait) s.first = -1;
  }

  /**
   * Takes the server's measurement of how early the input of a step arrived, while it was the
   * newest.
   */
  reported(now: number, line: Timeline, step: number, early: number): void {
    const s = this.steps[step % this.steps.length];
    if (!this.on || step <= this.lastReported || s?.step !== step || s.first < 0 || s.epochs !== this.epochs || Math.abs(early) > MAX_EARLY) return;
    this.lastReported = step;
    this.late = early < 0 ? this.late + 1 : 0;
    this.samples.add(now, line.gameTime(line.stepTick(step)) - early - s.first);
  }

  /**
   * Follows an epoch by which the server's time has moved back; true: the caller has to set the
   * steps back.
   */
  epochMoved(by: number): boolean {
    this.epochs++;
    this.samples.shift(-by);
    if (by <= MAX_HOLD) {
      this.hold += Math.max(by, 0);
      return false;
    }
    // Some reports may have overtaken the epoch: their samples contain it already.
    this.samples = new LeadSamples(this.span);
    this.hold = 0;
    this.setBacks++;
    return true;
  }

  /** Records that the steps were set back to this one: inputs of later steps are made again. */
  setBack(step: number): void {
    this.backTo = step;
    this.sent = Math.min(this.sent, step);
    this.lastReported = Math.min(this.lastReported, step);
  }
}

/** Measures how far ahead of the client's clock the steps had to be, over a span in ms. */
class LeadSamples {
  p50 = 0;
  private p5 = 0;
  private p95 = 0;
  private all: { at: number; ahead: number }[] = [];

  constructor(private span: number) {}

  get length(): number {
    return this.all.length;
  }

  known(now: number): boolean {
    return this.all.length >= MIN_SAMPLES && now - this.all.at(-1)!.at <= this.span;
  }

  /** The lead that nearly all inputs needed, and the jitter. */
  get required(): number {
    return this.p95 + this.p95 - this.p5;
  }

  add(at: number, ahead: number): void {
    this.all.push({ at, ahead });
    while (this.all.length > MAX_SAMPLES || at - this.all[0]!.at > this.span) this.all.shift();
    const sorted = this.all.map((n) => n.ahead).sort((a, b) => a - b);
    const n = sorted.length;
    this.p5 = sorted[Math.floor((n * 5) / 100)]!;
    this.p50 = sorted[n >> 1]!;
    this.p95 = sorted[Math.floor((n * 95) / 100)]!;
  }

  shift(by: number): void {
    for (const n of this.all) n.ahead += by;
    this.p5 += by;
    this.p50 += by;
    this.p95 += by;
  }
}
