// The server's clock, tick and steps, and the time of each of the client's frames.

import type { Epoch, TimeScale, Welcome } from "../wire/frames.js";
import { Lead } from "./lead.js";
import { StepClock } from "./steps.js";
import { Sync, SYNC_JUMP } from "./sync.js";
import { Timeline } from "./timeline.js";

/**
 * The client requests the time often until the filter is full, at intervals that are no multiple of
 * a tick.
 */
const FIRST_INTERVAL = 53;
const LATER_INTERVAL = 293;
const FIRST_REQUESTS = 40;
/**
 * The maximum number of changes of the game's speed that are kept. A game makes fewer changes in the few seconds
 * whose steps may run again.
 */
const MAX_SCALES = 16;

export class ServerTime {
  line = new Timeline({ num: 60, den: 1 }, { num: 60, den: 1 });
  epoch: Epoch = { tick: 0, at: 0 };
  known = false;
  sync = new Sync();
  steps = new StepClock();
  lead = new Lead();
  /** The game time of the newest frame. */
  game = 0;
  tick = 0;
  private offset = 0;
  /**
   * The newest lines of scaled time, so that a step that runs again has its original scaled time.
   */
  private scales: TimeScale[] = [];
  private requestedAt = 0;
  private requests = 0;
  /** The jumps of sync at the newest frame. */
  private syncJumps = 0;

  /**
   * Takes the time of a welcome; took is the length of its handshake. Offset and drift belong to
   * the server and outlive a move. Game time, steps and lead belong to a room.
   */
  welcome(now: number, took: number, w: Welcome, sameServer: boolean, sameRoom: boolean): void {
    const ahead = this.server(now) - w.server;
    if (!sameServer || ahead < -SYNC_JUMP || ahead > took + SYNC_JUMP) {
      // Another clock, or this end's clock was stopped, for instance because its machine slept.
      this.sync = new Sync();
      this.lead.on = false;
    }
    if (!sameRoom) {
      this.known = false;
      this.game = this.tick = 0;
      const { skipped } = this.steps;
      const { jumps, setBacks, backTo } = this.lead;
      this.steps = Object.assign(new StepClock(), { skipped });
      this.lead = Object.assign(new Lead(), { jumps, setBacks, backTo });
    }
    this.line = new Timeline(w.tickRate, w.fixedRate);
    this.offset = w.server - now;
    this.requests = 0;
    this.lead.restart();
    this.scales = [w.scale ?? { tick: 0, at: 0, num: 1, den: 1 }];
    if (w.epoch.tick !== 0) this.epochMoved(w.epoch);
  }

  /** Takes an epoch that the server has published, and returns by how much its time moved back. */
  epochMoved(e: Epoch): number {
    const by = this.known ? e.at - this.line.deadline(this.epoch, e.tick) : 0;
    if (this.known && this.lead.on && by !== 0 && this.lead.epochMoved(by)) {
      this.steps.setBack(this.line, by);
      this.lead.setBack(this.steps.done);
    }
    this.epoch = e;
    this.known = true;
    return by;
  }

  rescale(s: TimeScale): void {
    this.scales = [...this.scales.filter((o) => o.tick < s.tick).slice(1 - MAX_SCALES), s];
  }

  /** The server's monotonic time at a time of the client. */
  server(now: number): number {
    return this.sync.ready ? this.sync.server(now) : now + this.offset;
  }

  /** Whether a time request is due now. */
  requestDue(now: number): boolean {
    if (this.requests > 0 && now - this.requestedAt < (this.requests < FIRST_REQUESTS ? FIRST_INTERVAL : LATER_INTERVAL)) return false;
    this.requestedAt = now;
    this.requests++;
    return true;
  }

  gameTime(now: number): number {
    return Math.max(0, this.line.gameTime(this.epoch.tick) + this.server(now) - this.epoch.at);
  }

  scaled(game: number): number {
    const since = (s: TimeScale) => game - this.line.gameTime(s.tick);
    const s = this.scales.filter((o) => since(o) >= 0).at(-1) ?? this.scales[0];
    return s ? s.at + (Math.max(since(s), 0) * s.num) / s.den : game;
  }

  /** Advances to the frame at now. Neither time nor steps decrease. */
  frame(now: number): void {
    this.steps.count = 0;
    if (!this.known) return;
    const game = this.gameTime(now);
    this.game = Math.max(this.game, game);
    this.tick = this.line.tickAt(this.game);
    if (this.syncJumps !== this.sync.jumps) {
      this.syncJumps = this.sync.jumps;
      this.lead.clockMoved(this.sync.rtt, this.line);
    }
    const to = this.lead.on ? this.lead.advance(now, this.steps.at, game, this.line.stepMs) : this.game;
    this.steps.advance(this.line, to);
  }

  /** Lets the steps lead, once the server's clock is known. */
  startLead(now: number): void {
    if (this.lead.on || !this.known || !this.sync.ready) return;
    this.steps.at = Math.max(this.steps.at, this.lead.begin(now, this.gameTime(now), this.sync.rtt, this.line));
    this.lead.first = this.line.stepAt(this.steps.at).step;
    this.steps.start(this.lead.first - 1); // This frame already makes an input.
  }

  /** The time since a tick was due. */
  age(now: number, tick: number): number {
    return this.known ? this.server(now) - this.line.deadline(this.epoch, tick) : 0;
  }
}

const SILENT_AFTER = 500;
const SILENT_PERIOD = 100;

/** Limits flushes to their period, and to 10 Hz while the server is silent. */
export class Pace {
  private next = 0;

  due(now: number, arrival: number, early: number, period: number): boolean {
    if (now - arrival > SILENT_AFTER) period = SILENT_PERIOD;
    if (now + early < this.next) return false;
    this.next = Math.max(this.next, now - period) + period;
    return true;
  }
}
