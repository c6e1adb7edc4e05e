// One predicted object: its predicted states of the newest steps, in their wire encoding, and the
// drawn state while a correction decays.

import { decodeMessage, encodeMessage } from "../codec/index.js";
import { same } from "../wire/bytes.js";
import type { Entity } from "../view/entity.js";
import type { Leaves } from "../view/leaves.js";
import type { Predictor } from "./predictor.js";

/** The origin of an object of spawn; step 0 is that of all other objects. */
export interface SpawnInfo {
  step: number;
  n: number;
  /** The server's object has not arrived. */
  unconfirmed: boolean;
  /** Made in a step function, which makes it again when its step runs again. */
  inStep: boolean;
  /** The step that makes it has not run again yet. */
  pending: boolean;
}

export class Predicted {
  /** The state as of the step held. */
  live: Record<string, unknown>;
  liveStep = 0;
  newest = 0;
  first = 0;
  /** The states up to this step are the server's. */
  base = 0;
  /** The tick of the object's version at the last comparison. */
  version: number;
  /** The tick as of which that version is confirmed as the server's. */
  known: number;
  /** The tick up to which the predicted states have been compared. */
  compared = 0;
  wrong = false;
  spawnInfo: SpawnInfo = { step: 0, n: 0, unconfirmed: false, inStep: false, pending: false };
  shown = false;
  private bytes: Uint8Array[];
  private flats: Float64Array[];
  private leaves: Leaves;
  private was: Float64Array;
  private wasBytes: Uint8Array = NONE;
  private offset: Float64Array;
  private since = 0;
  private smoothing = false;

  constructor(
    readonly by: Predictor,
    readonly entity: Entity,
    known: number,
    /** The number of steps for which predicted states are kept. */
    private window: number,
  ) {
    this.bytes = new Array(window);
    this.flats = new Array(window);
    this.leaves = entity.of.leaves;
    this.was = new Float64Array(this.leaves.size);
    this.offset = new Float64Array(this.leaves.size);
    this.known = known;
    this.version = entity.nv?.tick ?? 0;
    this.live = this.decode(this.server());
  }

  /** The server's newest state of the object. */
  server(): Uint8Array {
    return encodeMessage(this.by.type, this.entity.state);
  }

  private decode(bytes: Uint8Array): Record<string, unknown> {
    return decodeMessage(this.by.type, bytes) as Record<string, unknown>;
  }

  /** Reports whether the predicted state of a step is stored. */
  has(step: number): boolean {
    return this.newest > 0 && step >= this.first && step <= this.newest;
  }

  at(step: number): Uint8Array {
    return this.bytes[step % this.window];
  }

  /**
   * Rounds the live state to the wire's precision, and stores it as the predicted state of a step.
   */
  keep(step: number): void {
    this.put(step, encodeMessage(this.by.type, this.live, true));
  }

  /** Stores bytes as the predicted state of a step, and makes them the live state. */
  put(step: number, bytes: Uint8Array): void {
    this.live = this.decode(bytes);
    const i = step % this.window;
    this.bytes[i] = bytes;
    this.leaves.flatten(this.live, (this.flats[i] ??= new Float64Array(this.leaves.size)));
    if (this.newest === 0 || step < this.first || step > this.newest + 1) this.first = step;
    this.liveStep = this.newest = step;
    this.first = Math.max(this.first, step - this.window + 1);
  }

  /** Makes the live state that of a step, if it is stored. */
  load(step: number): void {
    if (this.liveStep === step || !this.has(step)) return;
    this.live = this.decode(this.at(step));
    this.liveStep = step;
  }

  /** Goes back to a step, or to the newest step with the server's state if that is later. */
  back(step: number): void {
    this.newest = Math.min(this.newest, Math.max(step, this.base));
    this.load(Math.min(step, this.newest));
  }

  /** Makes a state, as of a step, the only stored one. */
  begin(state: Record<string, unknown>, step: number): void {
    this.live = state;
    this.newest = 0;
    this.base = step;
    this.keep(step);
  }

  // Drawing.

  /** Records the drawn state before the object is corrected. */
  saveDrawn(now: number): void {
    this.wasBytes = NONE;
    if (!this.has(this.liveStep)) return;
    this.was.set(this.flats[this.liveStep % this.window]);
    this.wasBytes = this.at(this.liveStep);
    this.move(this.was, now);
  }

  /** Moves numbers by the remaining part of the offset. */
  move(v: Float64Array, now: number): void {
    const left = 1 - (now - this.since) / Math.max(this.by.smoothingMs, 1e-6);
    this.smoothing = this.smoothing && left > 0;
    if (this.smoothing) this.leaves.shift(v, this.offset, left);
  }

  /** Starts a transition of the drawn state from the recorded to the corrected one. */
  smooth(now: number): void {
    const bytes = this.at(this.liveStep);
    if (this.wasBytes === NONE || same(bytes, this.wasBytes)) return;
    const is = this.flats[this.liveStep % this.window];
    this.smoothing = false;
    const before = new Float64Array(this.leaves.size);
    this.leaves.flatten(this.decode(this.wasBytes), before);
    if (!this.shown || this.leaves.teleported(before, is)) return;
    this.transition(this.was, is, now);
  }

  /** Starts a transition of the drawn state from some numbers to others. */
  transition(was: Float64Array, is: Float64Array, now: number): void {
    const { snap, smoothingMs } = this.by;
    this.since = now;
    this.smoothing = smoothingMs > 0 && !snap?.(this.stateOf(was), this.stateOf(is));
    if (this.smoothing) this.leaves.apart(this.offset, was, is);
  }

  private stateOf(flat: Float64Array): any {
    const s = this.leaves.of.create();
    this.leaves.of.unflatten(flat, s);
    return s;
  }

  /**
   * Writes the numbers to draw: interpolated between the two newest steps, plus the remaining part
   * of a correction.
   */
  draw(out: Float64Array, last: number, fraction: number, now: number): void {
    const to = this.flats[this.liveStep % this.window];
    if (!to) this.leaves.flatten(this.live, out);
    else if (this.liveStep > 0 && this.has(this.liveStep - 1)) {
      const from = this.flats[(this.liveStep - 1) % this.window];
      this.leaves.between(out, from, to, fraction + Math.max(last, this.liveStep) - this.liveStep);
    } else out.set(to);
    this.move(out, now);
    this.shown = true;
  }
}

const NONE = new Uint8Array(0);
