// Predicts the objects that the client owns. The predicted state of a step is compared with the
// server's state after that step, which is known in two cases only: a packet of a tick brings a
// version of the object, or a whole snapshot, without lost packets or packets under way, confirms
// that the client has all changes. If the states differ, all objects return to that step, and the
// later steps run again. See docs/adr/0034.

import type { Frame } from "../api.js";
import type { ServerTime } from "../clock/server.js";
import type { ApplyResult } from "../state/replica.js";
import type { Entity } from "../view/entity.js";
import { same } from "../wire/bytes.js";
import { Predicted, type SpawnInfo } from "./predicted.js";
import type { Predictor } from "./predictor.js";

/** The parts of the client that predictions use. */
export interface PredictionHost {
  readonly id: number;
  readonly time: ServerTime;
  /** The input that the server uses for a step, undefined without one. */
  inputOf(step: number): { input: unknown } | undefined;
  /** The frame, set to a fixed step. */
  frameOf(step: number): Frame;
  /** The objects of a class of which the server has made this client the owner. */
  owned(className: string): Iterable<Entity>;
  addLocal(className: string, state: Record<string, unknown>): Entity;
  removeLocal(e: Entity): void;
  /** Replaces a local object of spawn by the server's object. */
  takeOver(local: Entity, server: Entity): void;
  guard(where: string, fn: () => void): void;
}

/** The maximum number of objects of spawn that the server has not confirmed. */
const MAX_UNCONFIRMED = 256;

export class Prediction {
  /** In the order in which they run. */
  readonly classes: Predictor[] = [];
  last = 0;
  mispredicted = 0;
  mispredictedLate = 0;
  replayed = 0;
  spawnsMatched = 0;
  spawnsWithdrawn = 0;
  /** The step that runs, or runs again; 0 outside of steps. */
  running = 0;
  private objects = new Map<Entity, Predicted>();
  private applied = false;
  private missed = 0;
  private lateAt = 0;
  private now = 0;
  private classIndex = 0;
  private stepSpawns = 0;
  private unconfirmed = 0;
  /** The mispredictions since the client joined the room. */
  wrong = 0;

  constructor(private s: PredictionHost) {}

  /**
   * The number of steps for which predictions are kept: an input may be as far ahead of its server.
   */
  private get window(): number {
    return this.s.time.line.window;
  }

  of(e: Entity): Predicted | undefined {
    return this.objects.get(e);
  }

  by(className: string): Predictor | undefined {
    return this.classes.find((c) => c.className === className);
  }

  // Steps.

  /**
   * Runs a fixed step, and the steps that a frame has skipped, because the server runs them too.
   */
  step(step: number): void {
    if (step <= this.last || step > this.last + this.window) this.restartAt(step - 1);
    while (this.last < step) this.run(++this.last);
  }

  private run(step: number): void {
    this.running = step;
    this.stepSpawns = 0;
    const in_ = this.s.inputOf(step);
    const frame = this.s.frameOf(step);
    for (this.classIndex = 0; this.classIndex < this.classes.length; this.classIndex++) {
      const by = this.classes[this.classIndex];
      for (let i = 0; i < by.objects.length; i++) {
        const d = by.objects[i]; // A step may spawn.
        if (d.spawnInfo.pending) continue;
        if (step <= d.base) {
          d.load(step);
          continue;
        }
        if (in_) this.s.guard(`predict ${by.className}`, () => by.step(d.live, in_.input, frame));
        this.keep(d, step);
      }
    }
    this.running = 0;
  }

  /** Stores the state of the step; the last state replaces one that cannot be encoded. */
  private keep(d: Predicted, step: number): void {
    let fits = false;
    this.s.guard(`predict ${d.by.className}`, () => {
      d.keep(step);
      fits = true;
    });
    if (!fits) d.put(step, d.has(step - 1) ? d.at(step - 1) : d.server());
  }

  /** Restarts the prediction at a step: predicted states of later ones are discarded. */
  private restartAt(step: number): void {
    this.last = step;
    for (const by of this.classes) {
      for (const d of by.objects) {
        d.saveDrawn(this.now);
        if (d.has(step)) d.back(step);
        else if (!d.spawnInfo.unconfirmed) d.put(step, d.server());
        d.smooth(this.now);
      }
    }
    this.expireSpawns();
  }

  // The server's state.

  /** Takes the result of an applied packet; certain: no packet is lost or under way. */
  update(a: ApplyResult, certain: boolean): void {
    if (this.classes.length === 0) return;
    this.applied = true;
    const reached = a.tick - a.behind;
    this.addOwned(a.tick);
    for (const by of this.classes) {
      for (const d of by.objects) {
        if (d.spawnInfo.unconfirmed) continue;
        const { tick } = d.entity.nv!;
        if (tick !== d.version) {
          d.version = tick;
          d.known = Math.max(d.known, a.tick);
        }
        if (certain) d.known = Math.max(d.known, reached);
      }
    }
    if (certain) {
      const steps = this.s.time.line.fixedSteps(reached);
      this.withdraw((b) => b.step <= steps);
    }
  }

  /** Begins to predict the objects that have become the client's, as of a tick. */
  addOwned(tick: number): void {
    for (const by of this.classes) {
      for (const e of this.s.owned(by.className)) {
        if (this.objects.has(e)) continue;
        this.s.guard(`predict ${by.className}`, () => {
          const d = new Predicted(by, e, tick, this.window);
          by.insert(d);
          this.objects.set(e, d);
        });
      }
    }
  }

  /** Records the server's report on inputs. */
  inputsReported(missed: number, early: number): void {
    if (missed === this.missed && early >= 0) return;
    this.missed = missed;
    this.lateAt = this.s.time.line.fixedSteps(this.s.time.tick);
  }

  /** Compares the predicted states with the received ones, once a frame. */
  reconcile(now: number): void {
    this.now = now;
    if (!this.applied) return;
    this.applied = false;
    let from = this.last;
    let any = false;
    for (const by of this.classes) {
      this.prune(by);
      for (const d of by.objects) {
        if (d.spawnInfo.unconfirmed || d.known <= d.compared) continue;
        const step = this.s.time.line.fixedSteps(d.known);
        if (this.compare(d, step)) {
          from = Math.min(from, step);
          any = true;
        }
      }
    }
    this.expireSpawns();
    if (any) this.replay(from);
  }

  /** Compares, and reports whether the object has to be corrected. */
  private compare(d: Predicted, step: number): boolean {
    d.compared = d.known;
    const now = d.server();
    if (d.has(step)) {
      const was = d.at(step);
      if (same(was, now)) {
        d.base = Math.max(d.base, step);
        return false;
      }
      this.mispredicted++;
      this.wrong++;
      if (this.lateAt > d.base) this.mispredictedLate++;
      d.by.count(was, now);
    } else if (step + this.window <= this.last && d.newest > 0) return false; // Too old.
    d.wrong = true;
    d.base = step;
    return true;
  }

  /**
   * Resets to a step, applies the server's state of the objects that differed, and runs the later
   * steps again.
   */
  private replay(from: number): void {
    from = Math.max(from, this.last - this.window + 1);
    for (const by of this.classes) {
      for (const d of by.objects) {
        d.saveDrawn(this.now);
        if (d.spawnInfo.step > from && d.spawnInfo.inStep) d.spawnInfo.pending = d.spawnInfo.unconfirmed;
        if (d.wrong) d.put(d.base, d.server());
        d.back(from);
      }
    }
    for (let step = from + 1; step <= this.last; step++) {
      this.run(step);
      this.replayed++;
    }
    for (const by of this.classes) {
      for (const d of by.objects) {
        d.wrong = false;
        d.smooth(this.now);
      }
    }
    this.withdraw((b) => b.pending);
  }

  /** Removes despawned objects, and objects with another owner. */
  private prune(by: Predictor): void {
    for (const d of [...by.objects]) {
      if (d.entity.alive && d.entity.owner === this.s.id) continue;
      by.remove(d);
      this.objects.delete(d.entity);
      if (d.spawnInfo.unconfirmed) this.unconfirmed--;
    }
  }

  /** Restarts in another room, or as another client. */
  reset(): void {
    this.withdraw(() => true);
    for (const by of this.classes) by.objects = [];
    this.objects.clear();
    this.last = this.missed = this.lateAt = this.wrong = 0;
    this.applied = false;
  }

  // Objects that the server is about to spawn.

  /** Makes an object, or finds the one that an earlier run of the same step has made. */
  spawn(by: Predictor, state: Record<string, unknown>, step: number): Entity {
    const birth: SpawnInfo = { step, n: this.stepSpawns++, unconfirmed: true, inStep: this.running > 0, pending: false };
    const own = by.round({ ...state, [by.born!]: { Step: BigInt(step), N: birth.n } });
    let d = by.find(step, birth.n);
    if (!d) {
      if (this.unconfirmed >= MAX_UNCONFIRMED) throw new Error(`${this.unconfirmed} objects are unconfirmed: does the server store Tick.SpawnKey?`);
      const e = this.s.addLocal(by.className, own);
      d = new Predicted(by, e, 0, this.window);
      d.spawnInfo = birth;
      by.insert(d);
      this.objects.set(e, d);
      this.unconfirmed++;
      d.begin(own, this.lastStepWithout(by, birth));
    } else if (d.spawnInfo.pending) {
      d.spawnInfo.pending = false;
      d.begin(own, this.lastStepWithout(by, birth));
    }
    return d.entity;
  }

  /**
   * The last step that an object does not run: the step before its spawn if its class runs later in
   * that step, else the step of its spawn.
   */
  private lastStepWithout(by: Predictor, b: SpawnInfo): number {
    return b.inStep && this.classes.indexOf(by) >= this.classIndex ? b.step - 1 : b.step;
  }

  /**
   * Takes a new object of a tick's packet; true: it is the server's copy of an object that the
   * client has spawned.
   */
  confirm(e: Entity, tick: number): boolean {
    const by = this.by(e.className);
    const born = by?.born ? e.state[by.born] : undefined;
    if (!by || !born || e.owner !== this.s.id) return false;
    const d = by.find(Number(born.Step), born.N);
    if (!d?.spawnInfo.unconfirmed) return false;
    this.s.takeOver(d.entity, e);
    d.spawnInfo.unconfirmed = false;
    d.version = d.entity.nv!.tick;
    d.known = tick;
    this.unconfirmed--;
    this.spawnsMatched++;
    by.remove(d);
    by.insert(d);
    return true;
  }

  /**
   * Despawns unconfirmed objects that are too old to be confirmed.
   */
  private expireSpawns(): void {
    this.withdraw((b) => b.step > this.last || b.step + this.window <= this.last);
  }

  private withdraw(match: (b: SpawnInfo) => boolean): void {
    if (this.unconfirmed === 0) return;
    for (const by of this.classes) {
      for (const d of by.objects.filter((o) => o.spawnInfo.unconfirmed && match(o.spawnInfo))) {
        by.remove(d);
        this.objects.delete(d.entity);
        this.unconfirmed--;
        this.spawnsWithdrawn++;
        this.s.removeLocal(d.entity);
      }
    }
  }
}
