// The client as the page uses it: one step per frame, in which the seven stages run as on the
// server.

import type {
  Client, ConnectInfo, ConnectOptions, Frame, ObjectClass, Platform, ReplicatedObject, Simulation, Stats, Status, Transport, Unsubscribe,
} from "./api.js";
import { Code, NetloopError, Stage } from "./api.js";
import { PublicClock } from "./clock/api.js";
import { Pace } from "./clock/server.js";
import { InputWriter, type Schema as Served } from "./codec/index.js";
import type { Route } from "./connection.js";
import { Messages } from "./messages.js";
import { InputRing, viewOf } from "./input/ring.js";
import { fieldsKnown, known as nameKnown } from "./names.js";
import { Prediction, type PredictionHost } from "./predict/prediction.js";
import { Acking } from "./session/losses.js";
import { statsOf } from "./stats.js";
import type { ApplyResult, Replicated } from "./state/replica.js";
import type { InputStatus } from "./wire/frames.js";
import { ClassObjects, Listeners, type ClassHost } from "./view/classes.js";
import { Entity } from "./view/entity.js";
import { Playout } from "./view/playout.js";

const STAGES = Object.values(Stage);
/** The client steps itself if the page has not done so for this long. */
const PUMP_MS = 250;

export class ClientImpl extends Messages implements Client<any>, ClassHost, PredictionHost {
  readonly playout = new Playout();
  readonly prediction: Prediction = new Prediction(this);
  readonly clock: PublicClock;
  fixedStep: number | undefined;
  private classes = new Map<string, ClassObjects>();
  private servedClasses: ClassObjects[] = [];
  private systems = new Map<number, Listeners<(f: Frame) => void>>();
  private statusListeners = new Listeners<(s: Status) => void>();
  private overloadListeners = new Listeners<(level: number) => void>();
  private snapshotListeners = new Listeners<(tick: number, bytes: number) => void>();
  private pace = new Pace();
  private acking = new Acking();
  private posted: (() => void)[] = [];
  private interpolates = false;
  private reached = 0;
  /** No object has changed since the last whole snapshot. */
  private unchanged = true;
  private sample: ((f: Frame) => unknown) | undefined;
  private repeat: ((last: any, missed: number) => unknown) | undefined;
  private ring: InputRing | undefined;
  /** The number of times that the ring has followed steps that were set back. */
  private setBacks = 0;
  private inputStatus = { newest: 0, missed: 0, early: 0 };
  private stepping = false;
  private stepped = -Infinity;
  private drawnAt: number | undefined;
  private pump: unknown;

  constructor(options: ConnectOptions<any>, platform: Platform, route: (known?: ConnectInfo) => Promise<Route>, info: ConnectInfo, private impair: (how: Simulation) => void) {
    super(options, platform, route, info);
    this.clock = new PublicClock(this.time, () => (this.interpolates ? this.playout.at : this.time.line.gameTime(this.replica?.tick ?? 0)), () => this.frame.now);
  }

  /** Called once the game has admitted the client. */
  begin(): void {
    this.setStatus({ ...this.current, phase: "loading" });
    if (this.options.pump === false) return;
    const again = () => {
      if (this.closed) return;
      if (this.platform.now() - this.stepped >= PUMP_MS) this.step();
      this.pump = this.platform.setTimeout(again, PUMP_MS);
      (this.pump as { unref?: () => void }).unref?.(); // The timer does not keep Node running.
    };
    this.stepped = this.platform.now();
    again();
  }

  // The frame.

  step(at?: number): void {
    if (this.stepping) throw new Error("step is called in a callback of step");
    const f = this.frame;
    const { time } = this;
    const now = this.platform.now();
    this.stepping = true;
    try {
      // The client's own clock gives the time; the caller's timestamps give the frame's length.
      f.deltaMs = at !== undefined && this.drawnAt !== undefined ? Math.max(at - this.drawnAt, 0) : Math.max(now - f.now, 0);
      this.drawnAt = at;
      f.now = now;
      this.stepped = now;
      if (this.closed) return this.runLater();
      this.checkSilence(now);
      this.switchOver(); // Before the frame's time is computed: another room has another time.
      if (this.live && time.requestDue(now)) this.link!.requestTime();
      if (this.sample) time.startLead(now);
      time.frame(now);
      this.showPresent();
      for (const stage of STAGES) this.run(stage);
      this.flush(now);
    } finally {
      this.stepping = false;
    }
  }

  /** Sets the frame to the server's present. */
  private showPresent(): void {
    const f = this.frame;
    const { steps, game, tick, line } = this.time;
    f.tick = tick;
    f.gameTime = game;
    f.scaledTime = this.time.scaled(game);
    f.fixedStep = steps.done;
    f.fixedDeltaMs = line.stepMs;
    f.fraction = steps.fraction;
  }

  private run(stage: Stage): void {
    const f = this.frame;
    f.stage = stage;
    if (stage === Stage.EarlyUpdate) this.poll();
    this.drain(stage);
    const systems = this.systems.get(stage);
    if (stage !== Stage.FixedUpdate) return this.runSystems(systems);
    const { first, count } = this.time.steps;
    for (let step = first; step < first + count; step++) {
      this.fixedStep = step;
      this.frameOf(step);
      // A frame in which the steps were set back skips its later steps, which are not due any more.
      const due = this.live && step <= this.time.steps.done;
      if (due) this.makeInput(step);
      if (due && this.prediction.classes.length > 0) this.prediction.step(step);
      this.runSystems(systems);
    }
    this.fixedStep = undefined;
    this.showPresent();
  }

  private runSystems(systems: Listeners<(f: Frame) => void> | undefined): void {
    systems?.notify((fn) => this.guard("on", fn), this.frame);
  }

  /**
   * Applies the packets and messages that have arrived, and computes the state that this frame
   * draws.
   */
  private poll(): void {
    this.runLater();
    this.receive();
    const { now, deltaMs } = this.frame;
    this.prediction.reconcile(now);
    this.showPresent(); // Steps that ran again have overwritten the frame.
    this.show(now, deltaMs);
    this.held.expire(this.time.tick, this.queue);
    this.calls.expire(now);
    if (this.live) this.verification.step(now, this.link!);
  }

  private show(now: number, deltaMs: number): void {
    const { playout, time } = this;
    if (!this.interpolates || !time.known) return;
    playout.tickMs = time.line.tickMs;
    playout.period = this.losses.every * playout.tickMs;
    if (!this.rejoin) playout.frame(now, time.gameTime(now), deltaMs);
    for (const c of this.servedClasses) c.advance(playout);
    this.held.reached(Math.min(this.reached, time.line.tickAt(playout.at)), this.queue);
  }

  private flush(now: number): void {
    const { link } = this;
    if (!link || !this.live || this.closed) return;
    const { line, lead } = this.time;
    const newest = this.ring?.newest ?? 0;
    const { flushMs } = line;
    const early = !this.ring || !lead.on ? flushMs / 4 : newest > lead.sent ? flushMs / 2 : -flushMs / 2;
    let beat = false;
    if (this.pace.due(now, link.lastArrival, early, flushMs)) {
      const packet = this.ring?.packet();
      if (packet) {
        link.setInputs(packet);
        lead.flush(now, newest);
      }
      beat = this.acking.due(now, this.losses, line.tickMs);
      link.flush(beat, this.replica!.acknowledgement(), this.prediction.wrong);
    } else link.flushTime(this.replica!.acknowledgement());
  }

  later(fn: () => void): void {
    this.posted.push(fn);
  }

  private runLater(): void {
    for (const fn of this.posted.splice(0)) fn();
  }

  on(stage: Stage, fn: (f: Frame) => void): Unsubscribe {
    let list = this.systems.get(stage);
    if (!list) this.systems.set(stage, (list = new Listeners()));
    return list.add(fn);
  }

  onStatus(fn: (s: Status) => void): Unsubscribe {
    return this.statusListeners.add(fn);
  }

  onOverload(fn: (level: number) => void): Unsubscribe {
    return this.overloadListeners.add(fn);
  }

  onSnapshot(fn: (tick: number, bytes: number) => void): Unsubscribe {
    return this.snapshotListeners.add(fn);
  }

  protected setStatus(s: Status): void {
    this.current = s;
    this.statusListeners.notify((fn) => this.guard("onStatus", fn), this.status);
  }

  protected setOverload(level: number): void {
    if (level === this.overload) return;
    this.overload = level;
    this.overloadListeners.notify((fn) => this.guard("onOverload", fn), level);
  }

  // Objects.

  class(name: string): ObjectClass<any, any> {
    let c = this.classes.get(name);
    if (!c) {
      const known = this.options.schema?.classes[name];
      const served = this.served?.classes.find((k) => k.name === name);
      nameKnown("class", name, this.options.schema ? Object.keys(this.options.schema.classes) : this.served!.classes.map((k) => k.name));
      c = new ClassObjects(name, known, this);
      c.bind(served);
      this.classes.set(name, c);
    }
    return c;
  }

  get(id: number | bigint): ReplicatedObject | undefined {
    return this.replica?.get(Number(id))?.data as Entity | undefined;
  }

  mispredictions(): Record<string, number> {
    const all: Record<string, number> = {};
    for (const by of this.prediction.classes) for (const field in by.wrong) all[`${by.className}.${field}`] = by.wrong[field]!;
    return all;
  }

  protected bind(served: Served): void {
    this.setMethods(served);
    for (const c of served.classes) if (!this.options.schema || c.name in this.options.schema.classes) this.class(c.name);
    for (const c of this.classes.values()) c.bind(served.classes.find((k) => k.name === c.name));
    this.servedClasses = [...this.classes.values()].filter((c) => c.served);
    this.ring = undefined;
    this.inputStatus = { newest: 0, missed: 0, early: 0 };
  }

  /**
   * Notifies the page of the changes of a packet; result is undefined for changes outside of a
   * packet.
   */
  protected appliedState(result: ApplyResult | undefined): void {
    const tick = result?.tick ?? 0;
    for (const change of this.replica!.changes()) {
      this.unchanged = false;
      const c = this.classes.get(change.object.class.name);
      if (!c?.served) continue;
      if (change.kind === "spawned") this.addSpawned(c, change.object, tick);
      else {
        const e = change.object.data as Entity | undefined;
        if (e && change.kind === "changed") c.changed(e);
        else if (e) c.despawned(e, tick);
      }
    }
    if (!result) return;
    this.prediction.update(result, result.whole && this.losses.gapless(result.base));
  }

  private addSpawned(c: ClassObjects, object: Replicated, tick: number): void {
    const e = new Entity(c, object, undefined, 0);
    object.data = e;
    if (this.prediction.confirm(e, tick)) return;
    c.spawned(e);
    c.notifySpawn(e);
  }

  protected wholeSnapshot(r: ApplyResult, at: number, bytes: number): void {
    this.reached = Math.max(this.reached, r.tick - r.behind);
    if (this.interpolates) this.playout.add(r.tick, this.time.line.gameTime(r.tick), at, this.unchanged);
    else this.held.reached(this.reached, this.queue);
    this.unchanged = true;
    this.snapshotListeners.notify((fn) => this.guard("onSnapshot", fn), r.tick, bytes);
  }

  interpolated(): void {
    this.interpolates = true;
  }

  protected epochMoved(tick: number, by: number): void {
    if (by !== 0) this.playout.shift(tick, by);
  }

  protected restartView(): void {
    this.playout.restart();
    this.pace = new Pace(); // The room before may have been slower.
  }

  protected reset(): void {
    this.calls.failAll(Code.Lost, "connection is broken, and the server has kept no seat");
    this.held.release(this.queue, true);
    this.reached = 0;
    this.playout.reset();
    for (const c of this.servedClasses) c.reset();
    this.prediction.reset();
  }

  protected runHeld(): void {
    this.held.release(this.queue, false); // Mostly the last messages before the server's close.
    for (const stage of STAGES) this.drain(stage);
  }

  // Inputs and prediction.

  get inputsMade(): boolean {
    return this.sample !== undefined;
  }

  inputs(sample: (f: Frame) => unknown, options: { repeat?: (last: any, missed: number) => unknown } = {}): void {
    if (this.sample) throw new Error("inputs is called twice");
    this.sample = sample;
    this.repeat = options.repeat;
  }

  private makeInput(step: number): void {
    const { lead, line } = this.time;
    const type = this.served?.input;
    if (!this.sample || !lead.on || !type) return;
    if (!this.ring) {
      this.ring = new InputRing(new InputWriter(type), line.window, line.repeats);
      this.setBacks = lead.setBacks;
    }
    if (this.setBacks !== lead.setBacks) {
      this.setBacks = lead.setBacks;
      this.inputStatus.newest = 0;
      this.ring.setBack(lead.backTo);
    }
    this.ring.ran(line.fixedSteps(this.replica!.tick));
    if (step < lead.first || !this.ring.wants(step)) return;
    const tick = this.replica!.tick;
    const view = viewOf(this.interpolates ? this.playout.moment : { from: tick, to: tick, alpha: 0 });
    this.guard("inputs", () => {
      const input = this.sample!(this.frame);
      if (this.ring!.newest === 0) fieldsKnown(this.options.schema?.input ?? type.text, input, "the input");
      this.ring!.add(step, input, view);
      this.counts.inputs++;
      lead.made(this.frame.now, step);
    });
  }

  protected inputsReported(s: InputStatus): void {
    if (!this.ring?.confirm(s.newest, s.before, s.generation)) return;
    this.time.lead.reported(this.frame.now, this.time.line, s.newest, s.early);
    if (s.newest < this.inputStatus.newest || s.missed < this.inputStatus.missed) return;
    this.inputStatus = s;
    this.prediction.inputsReported(s.missed, s.early);
  }

  /**
   * The input that the server uses for a step: the step's own, or the replacement that repeat makes
   * of the last one before.
   */
  inputOf(step: number): { input: unknown } | undefined {
    if (!this.ring) return undefined;
    for (let missed = 0; missed < this.time.line.window && missed < step; missed++) {
      const input = this.ring.at(step - missed);
      if (input !== undefined) return { input: missed > 0 && this.repeat ? this.repeat(input, missed) : input };
    }
    return undefined;
  }

  frameOf(step: number): Frame {
    const f = this.frame;
    const { line } = this.time;
    f.tick = line.stepTick(step);
    f.gameTime = line.gameTime(f.tick);
    f.scaledTime = this.time.scaled(f.gameTime);
    f.fixedStep = step;
    return f;
  }

  owned(className: string): Iterable<Entity> {
    const c = this.classes.get(className);
    return this.id === 0 || !c ? [] : c.owned();
  }

  addLocal(className: string, state: Record<string, unknown>): Entity {
    return this.classes.get(className)!.addLocal(state);
  }

  removeLocal(e: Entity): void {
    this.classes.get(e.className)!.removeLocal(e, true);
  }

  takeOver(local: Entity, server: Entity): void {
    const c = this.classes.get(local.className)!;
    c.removeLocal(local, false);
    c.takeOver(local, server);
    server.nv!.data = local;
  }

  // The rest of the API.

  get transport(): Transport | "none" {
    return this.live ? this.link!.transport : "none";
  }

  get stats(): Stats {
    return statsOf(this);
  }

  verify(): Promise<void> {
    if (this.closed) return Promise.reject(new NetloopError(this.closed.code, this.closed.text));
    return this.verification.ask(this.platform.now());
  }

  simulate(how: Simulation): void {
    this.impair(how);
  }

  move(ticket: string): boolean {
    const can = this.live && this.movable && !this.closed;
    if (can) this.link!.move(ticket);
    return can;
  }

  cut(): void {
    this.link?.cut();
  }

  close(): void {
    this.finish(Code.Left, "");
    this.platform.clearTimeout(this.pump);
  }

  /** The values from which stats are computed. */
  figures() {
    const { link, replica, losses, snapshots, playout, prediction, calls, held, inputStatus, traffic, counts, time, closed } = this;
    return { link, replica, losses, snapshots, playout, prediction, calls, held, inputStatus, traffic, counts, time, closed, interpolates: this.interpolates };
  }
}
