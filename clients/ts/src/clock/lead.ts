// Lets the steps of a client that makes inputs run ahead of the server's present, so that each input
// is there before its step runs: docs/adr/0031 says how far.

import type { Timeline } from "./timeline.js";

/** Measures of the last second. */
const NEEDS = 128;
const SLEW = 1 / 100;
/** While the last STARVED inputs came too late, the lead grows faster, which is felt. */
const STARVED_SLEW = 1 / 20;
const STARVED = 4;
const FAR = 250;
const PATIENCE = 1500;
const START = 3;
const BEGUN = 16;
const MOST_EARLY = 10_000;
export const MOST_INTERVAL = 100;
/** For how many ms steps stand still at most when the server's time moves back: by more they are set back. */
const STILL = 100;

interface Made {
  step: number;
  epochs: number;
  at: number;
  /** When the oldest was made that has left with it; -1 before. */
  first: number;
}

export class Lead {
  on = false;
  /** The first step that leads: inputs of earlier ones would come too late. */
  first = 0;
  /** The newest step whose input has left. */
  left = 0;
  jumps = 0;
  backs = 0;
  /** The step to which the steps were set back last. */
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

  /** Begins, and returns where the steps stand then. */
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

  /** Measures anew, because the path to the server may be another. */
  restart(): void {
    this.needs = new Needs();
    this.begun = false;
    this.far = this.late = 0;
  }

  /** Where the steps stand in a frame, in game time, that stood at a time before. It is never earlier. */
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

  /** The input of a step was made. */
  made(now: number, step: number): void {
    this.steps[step % this.steps.length] = { step, epochs: this.epochs, at: now, first: -1 };
  }

  /** The inputs up to a step have left. */
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

  /** Takes how early the input of a step came, when no newer one had come. */
  take(now: number, line: Timeline, step: number, early: number): void {
    const s = this.steps[step % this.steps.length];
    if (!this.on || step <= this.told || s?.step !== step || s.first < 0 || s.epochs !== this.epochs || Math.abs(early) > MOST_EARLY) return;
    this.told = step;
    this.late = early < 0 ? this.late + 1 : 0;
    this.needs.add(now, line.gameTime(line.stepTick(step)) - early - s.first);
  }

  /** Follows an epoch by which the server's time has moved back; true: the steps are to be set back. */
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

  /** The steps were set back to this one: inputs of later ones are made again. */
  setBack(step: number): void {
    this.back = step;
    this.left = Math.min(this.left, step);
    this.told = Math.min(this.told, step);
  }
}

const SPAN = 1000;
const LEAST = 8;

/** How far ahead of the client's clock steps needed to be, over the last second. */
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

  /** What nearly all needed, and the jitter. */
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
