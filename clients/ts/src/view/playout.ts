// Which moment a client draws: a little behind the server's time, between two snapshots that it has
// whole. It goes on with the frames, is led to where it should be by running faster or slower, and
// never goes back.

import { DelayMeter, SPARE, type Whole } from "./delay.js";

/** Between which two snapshots somebody looks, by their ticks; beyond 1 alpha lies behind the newer. */
export interface Moment {
  from: number;
  to: number;
  alpha: number;
}

const MOST_SLOWER = 1 / 20;
const MOST_FASTER = 1 / 50;
const SLEW_OVER = 1000;
const VIEW_JUMP = 250;
const MAX_DELAY = 500;
const RECONSIDER = 100;
/** A page that draws no frame for longer is in the background. */
const MOST_BUSY = 100;
/** While nothing has changed for so long no frame lacks the next snapshot: a room that sleeps sends none. */
const STILL_AFTER = 750;
/** Ticks back to which versions are kept at most. */
export const HORIZON = 128;

export class Playout {
  delay = 0;
  /** The game time that is drawn. */
  at = 0;
  moment: Moment = { from: 0, to: 0, alpha: 0 };
  /** How far beyond the newest snapshot it may go. */
  ahead = 0;
  period = 16;
  tickMs = 16;
  drawn = 0;
  starved = 0;
  extrapolated = 0;
  jumps = 0;
  private meter = new DelayMeter();
  private asked = 0;
  /** The one before the moment, one more, and all after it. */
  private snapshots: Whole[] = [];
  private started = false;
  /** The last frame. */
  private framed = Infinity;
  /** The game time of the newest snapshot with a change. */
  private changed = 0;
  /** Game time that would be drawn: where snapshots end it waits for more. */
  private run = 0;
  private frames = new FrameClock();

  /** A whole snapshot. Their ticks grow. */
  arrived(tick: number, game: number, at: number, still = false): void {
    const last = this.snapshots.at(-1);
    if (last && tick <= last.tick) return;
    // Only frames draw: while the page is busy no frame lacks the snapshots that wait for it. So one counts
    // as arrived with the last frame before it.
    at = Math.min(Math.max(this.framed, at - MOST_BUSY), at);
    const s = { tick, game, at, gap: last ? game - last.game : 0 };
    if (last) this.meter.add(s);
    if (this.snapshots.length >= HORIZON) this.snapshots.shift();
    this.snapshots.push(s);
    if (!still) this.changed = game;
  }

  /** The server's time was set back by so much for ticks from this one on. */
  moved(from: number, by: number): void {
    this.meter.shift(from, by);
  }

  /** Begins with another connection. What is drawn stays until its first snapshot. */
  anew(): void {
    this.meter = new DelayMeter();
    this.snapshots = [];
    this.started = false;
  }

  /** Begins in another world, where time is another. */
  forget(): void {
    this.anew();
    this.at = this.run = this.changed = 0;
    this.moment = { from: 0, to: 0, alpha: 0 };
  }

  /** The tick of the oldest snapshot that may be looked at again. */
  get oldest(): number {
    const s = this.snapshots[0];
    return s ? Math.min(this.moment.from, s.tick) : this.moment.from;
  }

  /** Moves on to a frame of that length at now, when the server's game time is game. */
  frame(now: number, game: number, length: number): void {
    this.framed = now;
    const before = this.frames.at;
    const passed = this.frames.step(now, length, before);
    if (this.snapshots.length === 0) return;
    const first = this.snapshots[0];
    const newest = this.snapshots.at(-1)!.game;
    if (!this.started || now - this.asked >= RECONSIDER) {
      this.asked = now;
      const d = this.meter.count > 0 ? this.meter.delay(now, game, this.period) : game - (now - first.at) - first.game + this.period + SPARE;
      this.delay = Math.min(Math.max(d, 0), MAX_DELAY, (HORIZON / 2) * this.tickMs);
    }
    this.lead(game - (now - this.frames.at) - this.delay, passed);
    this.at = Math.max(this.at, first.game, Math.min(this.run, newest + this.ahead));
    this.settle();
    if (this.run > newest && newest - this.changed < STILL_AFTER) {
      this.starved++;
      if (this.at > newest) this.extrapolated++;
    }
    this.drawn++;
  }

  /** Moves the time that would be drawn on, and towards where it should be. */
  private lead(target: number, passed: number): void {
    // It has waited for snapshots, and nobody sees that it goes back.
    if (this.run > this.at) this.run = Math.max(this.at, Math.min(this.run, target - passed));
    const wrong = target - this.run - passed;
    if (!this.started) {
      this.started = true;
      this.run = target;
    } else if (wrong > VIEW_JUMP) {
      this.run = target;
      this.jumps++;
    } else {
      const correction = (wrong * passed) / SLEW_OVER;
      this.run += passed + Math.min(Math.max(correction, -passed * MOST_SLOWER), passed * MOST_FASTER);
    }
  }

  /** Finds the snapshots around the moment, and lets go of those before. */
  private settle(): void {
    let i = this.snapshots.length - 1;
    while (i > 0 && this.snapshots[i].game > this.at) i--;
    if (i > 1) {
      this.snapshots.splice(0, i - 1); // One more stays, from which the newest goes on.
      i = 1;
    }
    const s = this.snapshots[i];
    const next = this.snapshots[i + 1];
    const m = this.moment;
    m.from = s.tick;
    m.to = next ? next.tick : s.tick;
    m.alpha = next ? (this.at - s.game) / (next.game - s.game) : 0;
  }

  /** The moment of those who go on by at most so much where snapshots end. */
  beyond(most: number, into: Moment): void {
    Object.assign(into, this.moment);
    const n = this.snapshots.length;
    if (n < 2 || most === 0 || this.moment.from !== this.snapshots[n - 1].tick) return;
    const older = this.snapshots[n - 2];
    const newest = this.snapshots[n - 1];
    const further = Math.min(this.at - newest.game, most);
    if (further <= 0) return;
    into.from = older.tick;
    into.to = newest.tick;
    into.alpha = 1 + further / (newest.game - older.game);
  }
}

/** How far the lengths of frames may be off before the clock alone counts. */
const MOST_UNEVEN = 20;

/** Time as frames have it: it follows their lengths, and the clock slowly. */
class FrameClock {
  at = 0;
  private started = false;

  /** Returns how much time has passed since before. */
  step(now: number, length: number, before: number): number {
    this.at += length;
    this.at += (now - this.at) * Math.min(length / 1000, 1);
    if (!this.started || length <= 0 || Math.abs(this.at - now) > MOST_UNEVEN) {
      if (!this.started) before = now;
      this.started = true;
      this.at = now;
    }
    this.at = Math.max(this.at, before);
    return this.at - before;
  }
}
