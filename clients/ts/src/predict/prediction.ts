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
import { Predicted, type Birth } from "./predicted.js";
import type { Predictor } from "./predictor.js";

/** The parts of the client that predictions use. */
export interface Surroundings {
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

/** The most objects of spawn that wait for the server's: a second of 256 shots. */
const MAX_AWAITED = 256;

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
  private turn = 0;
  private spawned = 0;
  private awaited = 0;

  constructor(private s: Surroundings) {}

  /**
   * The number of steps for which predictions are kept: an input may be as far ahead of its server.
   */
  private get kept(): number {
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
    if (step <= this.last || step > this.last + this.kept) this.predictFrom(step - 1);
    while (this.last < step) this.run(++this.last);
  }

  private run(step: number): void {
    this.running = step;
    this.spawned = 0;
    const in_ = this.s.inputOf(step);
    const frame = this.s.frameOf(step);
    for (this.turn = 0; this.turn < this.classes.length; this.turn++) {
      const by = this.classes[this.turn];
      for (let i = 0; i < by.objects.length; i++) {
        const d = by.objects[i]; // A step may spawn.
        if (d.birth.unborn) continue;
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
  private predictFrom(step: number): void {
    this.last = step;
    for (const by of this.classes) {
      for (const d of by.objects) {
        d.remember(this.now);
        if (d.has(step)) d.back(step);
        else if (!d.birth.awaited) d.put(step, d.server());
        d.smoothen(this.now);
      }
    }
    this.timeOut();
  }

  // The server's state.

  /** Takes the result of an applied packet; certain: no packet is lost or under way. */
  learn(a: ApplyResult, certain: boolean): void {
    if (this.classes.length === 0) return;
    this.applied = true;
    const reached = a.tick - a.behind;
    this.adopt(a.tick);
    for (const by of this.classes) {
      for (const d of by.objects) {
        if (d.birth.awaited) continue;
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
  adopt(tick: number): void {
    for (const by of this.classes) {
      for (const e of this.s.owned(by.className)) {
        if (this.objects.has(e)) continue;
        this.s.guard(`predict ${by.className}`, () => {
          const d = new Predicted(by, e, tick, this.kept);
          by.insert(d);
          this.objects.set(e, d);
        });
      }
    }
  }

  /** Records the server's report on inputs. */
  told(missed: number, early: number): void {
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
        if (d.birth.awaited || d.known <= d.judged) continue;
        const step = this.s.time.line.fixedSteps(d.known);
        if (this.judge(d, step)) {
          from = Math.min(from, step);
          any = true;
        }
      }
    }
    this.timeOut();
    if (any) this.replay(from);
  }

  /** Compares, and reports whether the object has to be corrected. */
  private judge(d: Predicted, step: number): boolean {
    d.judged = d.known;
    const now = d.server();
    if (d.has(step)) {
      const was = d.at(step);
      if (same(was, now)) {
        d.base = Math.max(d.base, step);
        return false;
      }
      this.mispredicted++;
      if (this.lateAt > d.base) this.mispredictedLate++;
      d.by.count(was, now);
    } else if (step + this.kept <= this.last && d.newest > 0) return false; // Too old.
    d.wrong = true;
    d.base = step;
    return true;
  }

  /**
   * Goes back to a step, takes the server's state of the objects that differed, and runs the later
   * steps again.
   */
  private replay(from: number): void {
    from = Math.max(from, this.last - this.kept + 1);
    for (const by of this.classes) {
      for (const d of by.objects) {
        d.remember(this.now);
        if (d.birth.step > from && d.birth.inStep) d.birth.unborn = d.birth.awaited;
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
        d.smoothen(this.now);
      }
    }
    this.withdraw((b) => b.unborn);
  }

  /** Removes the objects that are gone, and those that have another owner now. */
  private prune(by: Predictor): void {
    for (const d of [...by.objects]) {
      if (d.entity.alive && d.entity.owner === this.s.id) continue;
      by.remove(d);
      this.objects.delete(d.entity);
      if (d.birth.awaited) this.awaited--;
    }
  }

  /** Restarts in another room, or as another client. */
  forget(): void {
    this.withdraw(() => true);
    for (const by of this.classes) by.objects = [];
    this.objects.clear();
    this.last = this.missed = this.lateAt = 0;
    this.applied = false;
  }

  // Objects that the server is about to spawn.

  /** Makes an object, or finds the one that an earlier run of the same step has made. */
  spawn(by: Predictor, state: Record<string, unknown>, step: number): Entity {
    const birth: Birth = { step, n: this.spawned++, awaited: true, inStep: this.running > 0, unborn: false };
    const own = by.round({ ...state, [by.born!]: { Step: BigInt(step), N: birth.n } });
    let d = by.find(step, birth.n);
    if (!d) {
      if (this.awaited >= MAX_AWAITED) throw new Error(`${this.awaited} objects of spawn wait for the server's: is Tick.SpawnKey stored there?`);
      const e = this.s.addLocal(by.className, own);
      d = new Predicted(by, e, 0, this.kept);
      d.birth = birth;
      by.insert(d);
      this.objects.set(e, d);
      this.awaited++;
      d.begin(own, this.eve(by, birth));
    } else if (d.birth.unborn) {
      d.birth.unborn = false;
      d.begin(own, this.eve(by, birth));
    }
    return d.entity;
  }

  /**
   * The last step that an object does not run: the step before its birth if its class runs later in
   * that step, else the step of its birth.
   */
  private eve(by: Predictor, b: Birth): number {
    return b.inStep && this.classes.indexOf(by) >= this.turn ? b.step - 1 : b.step;
  }

  /**
   * Takes a new object of a tick's packet; true: it is the server's copy of an object that the
   * client has spawned.
   */
  met(e: Entity, tick: number): boolean {
    const by = this.by(e.className);
    const born = by?.born ? e.state[by.born] : undefined;
    if (!by || !born || e.owner !== this.s.id) return false;
    const d = by.find(Number(born.Step), born.N);
    if (!d?.birth.awaited) return false;
    this.s.takeOver(d.entity, e);
    d.birth.awaited = false;
    d.version = d.entity.nv!.tick;
    d.known = tick;
    this.awaited--;
    this.spawnsMatched++;
    by.remove(d);
    by.insert(d);
    return true;
  }

  /**
   * Despawns the objects that have waited for the server's for so long that they can no longer be
   * matched.
   */
  private timeOut(): void {
    this.withdraw((b) => b.step > this.last || b.step + this.kept <= this.last);
  }

  private withdraw(gone: (b: Birth) => boolean): void {
    if (this.awaited === 0) return;
    for (const by of this.classes) {
      for (const d of by.objects.filter((o) => o.birth.awaited && gone(o.birth))) {
        by.remove(d);
        this.objects.delete(d.entity);
        this.awaited--;
        this.spawnsWithdrawn++;
        this.s.removeLocal(d.entity);
      }
    }
  }
}
