// The moment that a client draws: a little behind the server's time, between two complete
// snapshots. It advances with the frames, runs faster or slower to reach its target, and never
// decreases.

import { DelayMeter, SPARE, type SnapshotArrival } from "./delay.js";

/**
 * The ticks of the two snapshots between which a moment is; with alpha beyond 1 it is behind the
 * newer one.
 */
export interface Moment {
  from: number;
  to: number;
  alpha: number;
}

const MAX_SLOWER = 1 / 20;
const MAX_FASTER = 1 / 50;
const SLEW_OVER = 1000;
const MAX_BEHIND = 250;
const MAX_DELAY = 500;
const DELAY_INTERVAL = 100;
/** A page that draws no frame for longer is in the background. */
const MAX_FRAME_GAP = 100;
/**
 * After this time without a change no frame counts as lacking the next snapshot: a sleeping room
 * sends none.
 */
const IDLE_AFTER = 750;
/** The maximum number of ticks for which versions are kept. */
export const HORIZON = 128;

export class Playout {
  delay = 0;
  /** The game time that is drawn. */
  at = 0;
  moment: Moment = { from: 0, to: 0, alpha: 0 };
  /** The maximum time that the moment may be beyond the newest snapshot. */
  ahead = 0;
  period = 16;
  tickMs = 16;
  drawn = 0;
  starved = 0;
  extrapolated = 0;
  jumps = 0;
  private meter = new DelayMeter();
  private computedAt = 0;
  /** The snapshot before the moment, one more, and all after it. */
  private snapshots: SnapshotArrival[] = [];
  private started = false;
  /** The time of the last frame. */
  private lastFrame = Infinity;
  /** The game time of the newest snapshot with a change. */
  private changed = 0;
  /** The game time to draw: it waits for more snapshots where they end. */
  private wanted = 0;
  private frames = new FrameClock();

  /** Takes a complete snapshot. Their ticks increase. */
  add(tick: number, game: number, at: number, unchanged = false): void {
    const last = this.snapshots.at(-1);
    if (last && tick <= last.tick) return;
    // Only frames draw: while the page is busy no frame lacks the snapshots that wait for it, so a
    // snapshot counts as arrived with the last frame before it.
    at = Math.min(Math.max(this.lastFrame, at - MAX_FRAME_GAP), at);
    const s = { tick, game, at, gap: last ? game - last.game : 0 };
    if (last) this.meter.add(s);
    if (this.snapshots.length >= HORIZON) this.snapshots.shift();
    this.snapshots.push(s);
    if (!unchanged) this.changed = game;
  }

  /** Follows a setback of the server's time for ticks from this one on. */
  shift(from: number, by: number): void {
    this.meter.shift(from, by);
  }

  /** Restarts for another connection. The drawn state remains until its first snapshot. */
  restart(): void {
    this.meter = new DelayMeter();
    this.snapshots = [];
    this.started = false;
  }

  /** Restarts for another room, which has its own time. */
  reset(): void {
    this.restart();
    this.at = this.wanted = this.changed = 0;
    this.moment = { from: 0, to: 0, alpha: 0 };
  }

  /** The tick of the oldest snapshot that may be drawn again. */
  get oldest(): number {
    const s = this.snapshots[0];
    return s ? Math.min(this.moment.from, s.tick) : this.moment.from;
  }

  /** Advances to a frame of that length at now, at the server's game time game. */
  frame(now: number, game: number, length: number): void {
    this.lastFrame = now;
    const before = this.frames.at;
    const passed = this.frames.step(now, length, before);
    if (this.snapshots.length === 0) return;
    const first = this.snapshots[0];
    const newest = this.snapshots.at(-1)!.game;
    if (!this.started || now - this.computedAt >= DELAY_INTERVAL) {
      this.computedAt = now;
      const d = this.meter.count > 0 ? this.meter.delay(now, game, this.period) : game - (now - first.at) - first.game + this.period + SPARE;
      this.delay = Math.min(Math.max(d, 0), MAX_DELAY, (HORIZON / 2) * this.tickMs);
    }
    this.steer(game - (now - this.frames.at) - this.delay, passed);
    this.at = Math.max(this.at, first.game, Math.min(this.wanted, newest + this.ahead));
    this.findMoment();
    if (this.wanted > newest && newest - this.changed < IDLE_AFTER) {
      this.starved++;
      if (this.at > newest) this.extrapolated++;
    }
    this.drawn++;
  }

  /** Advances the time to draw, and moves it towards its target. */
  private steer(target: number, passed: number): void {
    // The time has waited for snapshots, so that a step back is not visible.
    if (this.wanted > this.at) this.wanted = Math.max(this.at, Math.min(this.wanted, target - passed));
    const off = target - this.wanted - passed;
    if (!this.started) {
      this.started = true;
      this.wanted = target;
    } else if (off > MAX_BEHIND) {
      this.wanted = target;
      this.jumps++;
    } else {
      const correction = (off * passed) / SLEW_OVER;
      this.wanted += passed + Math.min(Math.max(correction, -passed * MAX_SLOWER), passed * MAX_FASTER);
    }
  }

  /** Finds the snapshots around the moment, and drops the earlier ones. */
  private findMoment(): void {
    let i = this.snapshots.length - 1;
    while (i > 0 && this.snapshots[i].game > this.at) i--;
    if (i > 1) {
      this.snapshots.splice(0, i - 1); // One more is kept, as the start of an extrapolation.
      i = 1;
    }
    const s = this.snapshots[i];
    const next = this.snapshots[i + 1];
    const m = this.moment;
    m.from = s.tick;
    m.to = next ? next.tick : s.tick;
    m.alpha = next ? (this.at - s.game) / (next.game - s.game) : 0;
  }

  /** The moment of a class that extrapolates by at most so much where snapshots end. */
  extrapolate(most: number, into: Moment): void {
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

/**
 * The most that the summed lengths of frames may differ from the clock before the clock alone
 * counts.
 */
const MAX_UNEVEN = 20;

/** The time of frames: it advances by their lengths, and slowly follows the clock. */
class FrameClock {
  at = 0;
  private started = false;

  /** Returns the time that has passed since before. */
  step(now: number, length: number, before: number): number {
    this.at += length;
    this.at += (now - this.at) * Math.min(length / 1000, 1);
    if (!this.started || length <= 0 || Math.abs(this.at - now) > MAX_UNEVEN) {
      if (!this.started) before = now;
      this.started = true;
      this.at = now;
    }
    this.at = Math.max(this.at, before);
    return this.at - before;
  }
}
