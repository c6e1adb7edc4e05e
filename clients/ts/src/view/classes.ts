// The objects of one class, and the page's callbacks for them.

import type { Frame, InterpolateOptions, ObjectClass, PredictOptions, ReplicatedObject, Unsubscribe } from "../api.js";
import type { ObjectClass as ServedClass } from "../codec/index.js";
import type { Prediction } from "../predict/prediction.js";
import { Predictor } from "../predict/predictor.js";
import type { ClassSchema } from "../schema.js";
import { zeroOf } from "../adapt.js";
import { before, Entity, type EntityClass } from "./entity.js";
import { Leaves } from "./leaves.js";
import type { Moment, Playout } from "./playout.js";

/** Callbacks of the page, in the order of their registration. */
export class Listeners<F extends (...args: any[]) => void> {
  private list: { fn: F; gone: boolean }[] = [];

  add(fn: F): Unsubscribe {
    const one = { fn, gone: false };
    this.list = [...this.list, one]; // The old list may be in an iteration.
    return () => {
      one.gone = true;
      this.list = this.list.filter((other) => other !== one);
    };
  }

  notify(guard: (fn: () => void) => void, ...args: Parameters<F>): void {
    for (const one of this.list) if (!one.gone) guard(() => one.fn(...args));
  }
}

/** The parts of the client that a class uses. */
export interface ClassHost {
  readonly id: number;
  readonly playout: Playout;
  readonly prediction: Prediction;
  /** The frame's clock, and its distance beyond the last fixed step. */
  readonly frame: Frame;
  readonly inputsMade: boolean;
  readonly fixedStep: number | undefined;
  guard(where: string, fn: () => void): void;
  /** Runs fn at the start of the next step. */
  later(fn: () => void): void;
  /** Called when a class begins to be interpolated. */
  interpolated(): void;
}

/** The maximum number of despawned objects that are kept because they may still be drawn. */
const MAX_DESPAWNED = 4096;
const MAX_EXTRAPOLATION = 1000;

type Listener = (o: ReplicatedObject) => void;

export class ClassObjects implements ObjectClass<any, any>, EntityClass {
  leaves!: Leaves;
  served: ServedClass | undefined;
  interpolating = false;
  extrapolateMs = 0;
  private entities = new Map<number, Entity>();
  private locals = new Set<Entity>();
  private despawnedEntities: Entity[] = [];
  private moment: Moment = { from: 0, to: 0, alpha: 0 };
  private out = new Float64Array(0);
  private spare = new Float64Array(0);
  private missing: [string, string][] = [];
  private listeners = {
    spawn: new Listeners<Listener>(),
    change: new Listeners<Listener>(),
    despawn: new Listeners<Listener>(),
  };
  private pending: { step: Predictor["step"]; options: PredictOptions } | undefined;

  constructor(
    readonly name: string,
    private known: ClassSchema | undefined,
    private world: ClassHost,
  ) {}

  /** Binds the class to the server's class; undefined: the server lacks it. */
  bind(served: ServedClass | undefined): void {
    this.served = served;
    if (!served) return;
    this.leaves = new Leaves(served, this.known);
    this.out = new Float64Array(this.leaves.size);
    this.spare = new Float64Array(this.leaves.size);
    const theirs = served.create();
    this.missing = Object.entries(this.known?.fields ?? {}).filter(([name]) => !(name in theirs));
    if (this.pending) this.predict(this.pending.step, this.pending.options);
  }

  // The page's functions.

  get size(): number {
    return this.entities.size + this.locals.size;
  }

  *all(): IterableIterator<Entity> {
    yield* this.entities.values();
    yield* this.locals;
  }

  [Symbol.iterator](): IterableIterator<Entity> {
    return this.all();
  }

  get(id: number): Entity | undefined {
    return this.entities.get(id);
  }

  *owned(): IterableIterator<Entity> {
    for (const e of this.all()) if (e.owner === this.world.id) yield e;
  }

  onSpawn(fn: Listener): Unsubscribe {
    const there = new Set(this.all());
    const off = this.listeners.spawn.add((o) => void (there.delete(o as Entity), fn(o)));
    let stopped = false;
    this.world.later(() => {
      for (const e of there) if (!stopped && e.alive) this.world.guard(`onSpawn ${this.name}`, () => fn(e));
    });
    return () => {
      stopped = true;
      off();
    };
  }

  onChange(fn: Listener): Unsubscribe {
    return this.listeners.change.add(fn);
  }

  onDespawn(fn: Listener): Unsubscribe {
    return this.listeners.despawn.add(fn);
  }

  interpolate(options: InterpolateOptions = {}): this {
    this.interpolating = true;
    this.extrapolateMs = Math.min(Math.max(options.extrapolateMs ?? 0, 0), MAX_EXTRAPOLATION);
    this.world.playout.ahead = Math.max(this.world.playout.ahead, this.extrapolateMs);
    for (const e of this.entities.values()) e.storeVersion();
    this.world.interpolated();
    return this;
  }

  predict(step: Predictor["step"], options: PredictOptions = {}): this {
    const { prediction, inputsMade } = this.world;
    if (this.known && !this.known.predicted) throw new Error(`predict ${this.name}: declare the class with netloop.Predicted()`);
    if (!inputsMade) throw new Error(`predict ${this.name}: call inputs before`);
    this.pending = { step, options };
    if (!this.served) return this;
    const at = prediction.classes.findIndex((p) => p.className === this.name);
    const p = new Predictor(this.name, this.served.fields, step, options.smoothingMs ?? 100, options.snap, this.known?.born);
    if (at >= 0) prediction.classes[at] = p;
    else prediction.classes.push(p);
    prediction.addOwned(0);
    return this;
  }

  spawn(state: any): Entity {
    const { prediction } = this.world;
    const by = prediction.by(this.name);
    const step = prediction.running || this.world.fixedStep; // A step that runs again does so before FixedUpdate.
    if (!by) throw new Error(`spawn ${this.name}: class is not predicted`);
    if (!by.born) throw new Error(`spawn ${this.name}: schema has no field of type netloop.SpawnKey`);
    if (step === undefined) throw new Error(`spawn ${this.name}: only allowed in FixedUpdate`);
    return prediction.spawn(by, state, step);
  }

  predicted(o: ReplicatedObject): any {
    return this.world.prediction.of(o as Entity)?.live;
  }

  mispredictions(): Readonly<Record<string, number>> {
    return { ...this.world.prediction.by(this.name)?.wrong };
  }

  view(o: ReplicatedObject): any {
    const e = o as Entity;
    const own = this.world.prediction.of(e);
    if (own && e.alive) {
      const { frame, prediction } = this.world;
      if (e.drawnAs === "other" && this.interpolateTo(e, this.spare)) {
        own.draw(this.out, prediction.last, frame.fraction, frame.now);
        own.transition(this.spare, this.out, frame.now);
      }
      own.draw(this.out, prediction.last, frame.fraction, frame.now);
      e.drawnAs = "own";
      e.own = own;
      return e.draw(this.out, own.live);
    }
    if (!e.alive && e.drawnAs === "own") return undefined;
    if (!this.interpolating) return e.alive ? e.state : undefined;
    if (!this.interpolateTo(e, this.out)) return undefined;
    if (e.drawnAs === "own" && e.drawn) {
      // The object was the client's own: the picture changes over from the state that was drawn
      // last.
      this.leaves.flatten(e.drawn, this.spare);
      if (this.leaves.teleported(this.spare, this.out)) e.own = undefined;
      e.own?.transition(this.spare, this.out, this.world.frame.now);
    }
    e.own?.move(this.out, this.world.frame.now);
    e.drawnAs = "other";
    return e.draw(this.out, e.state);
  }

  private interpolateTo(e: Entity, out: Float64Array): boolean {
    return this.interpolating && e.at(this.moment, out);
  }

  views(fn: (state: any, o: ReplicatedObject) => void): void {
    for (const e of this.entities.values()) this.show(e, fn);
    for (const e of this.locals) this.show(e, fn);
    for (const e of this.despawnedEntities) this.show(e, fn);
  }

  private show(e: Entity, fn: (state: any, o: ReplicatedObject) => void): void {
    const s = this.view(e);
    if (s !== undefined) fn(s, e);
  }

  // The client's notifications.

  /** Adds a spawned object. */
  spawned(e: Entity): void {
    for (const [field, type] of this.missing) e.state[field] = zeroOf(type);
    this.entities.set(e.id, e);
    if (this.interpolating) e.storeVersion();
  }

  notifySpawn(e: Entity): void {
    this.listeners.spawn.notify((fn) => this.world.guard(`onSpawn ${this.name}`, fn), e);
  }

  changed(e: Entity): void {
    if (this.interpolating) e.storeVersion();
    this.listeners.change.notify((fn) => this.world.guard(`onChange ${this.name}`, fn), e);
  }

  despawned(e: Entity, tick: number): void {
    e.despawnTick = Math.max(tick, 1);
    if (this.entities.get(e.id) === e) this.entities.delete(e.id);
    if (this.interpolating && tick > 0 && this.despawnedEntities.length < MAX_DESPAWNED) this.despawnedEntities.push(e);
    this.listeners.despawn.notify((fn) => this.world.guard(`onDespawn ${this.name}`, fn), e);
  }

  addLocal(state: Record<string, unknown>): Entity {
    const e = new Entity(this, undefined, state, this.world.id);
    this.locals.add(e);
    this.notifySpawn(e);
    return e;
  }

  /** Removes a local object: with despawns, because no server's object followed. */
  removeLocal(e: Entity, despawns: boolean): void {
    this.locals.delete(e);
    if (despawns) this.despawned(e, 0);
  }

  /** Replaces the state of a local object, which the page has, by the server's object. */
  takeOver(local: Entity, server: Entity): void {
    local.nv = server.nv;
    local.local = undefined;
    this.entities.set(local.id, local);
    if (this.interpolating) local.storeVersion();
  }

  /** Advances to the moment that this frame shows, and drops older versions. */
  advance(playout: Playout): void {
    if (!this.interpolating) return;
    playout.extrapolate(this.extrapolateMs, this.moment);
    const oldest = playout.oldest;
    for (const e of this.entities.values()) e.history.prune(oldest);
    if (this.despawnedEntities.length > 0) this.despawnedEntities = this.despawnedEntities.filter((e) => before(this.moment, e.despawnTick));
  }

  reset(): void {
    this.despawnedEntities = [];
  }
}
