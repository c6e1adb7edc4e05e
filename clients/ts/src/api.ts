// The types that index.ts exports to a page, and their contracts. client.ts implements them. All
// times are milliseconds, all ticks and steps are numbers, and every function that takes a callback
// returns a function that removes it.

import type { ProtobufCodec, Schema, Shape } from "./schema.js";

/** Removes a registered callback. A second call has no effect. */
export type Unsubscribe = () => void;

/** The stages of a frame, in their order. A message names the stage at which it runs. */
export const Stage = {
  Initialization: 10,
  EarlyUpdate: 20,
  FixedUpdate: 30,
  PreUpdate: 40,
  Update: 50,
  PreLateUpdate: 60,
  PostLateUpdate: 70,
} as const;
export type Stage = (typeof Stage)[keyof typeof Stage];

/**
 * The reason why a connection ended, a join was refused or a call rejected. Codes from Game on
 * belong to the game.
 */
export const Code = {
  Unspecified: 0,
  Left: 1,
  Closing: 2,
  Kicked: 3,
  BadVersion: 4,
  SchemaMismatch: 5,
  RoomUnknown: 6,
  Refused: 7,
  Full: 8,
  Protocol: 9,
  Flood: 10,
  Slow: 11,
  Timeout: 12,
  Lost: 13,
  Internal: 14,
  UnknownMethod: 15,
  StageNotAllowed: 16,
  Invalid: 17,
  Busy: 18,
  Unauthenticated: 19,
  Replaced: 20,
  Ticket: 21,
  Moved: 22,
  Game: 1000,
} as const;

/** The reason why a client ended. */
export interface Closed {
  readonly code: number;
  /** A text for people. It is sent by the server, so show it as text and never as HTML. */
  readonly text: string;
}

/**
 * The error of connect, of a call and of verify: a code, and a text of the server or of the client.
 */
export class NetloopError extends Error {
  override readonly name = "NetloopError";
  constructor(
    readonly code: number,
    text: string,
  ) {
    super(text);
  }
}

/** The kind of connection. */
export type Transport = "webtransport" | "websocket" | "memory";

/** A server's description of itself at /connect.json. */
export interface ConnectInfo {
  /** host:port of the game's UDP port, for WebTransport. */
  address: string;
  /** The path of the WebTransport session. */
  path: string;
  /**
   * SHA-256 hashes, in base64, of the certificates that the browser shall accept; empty: the
   * browser trusts the server's certificate.
   */
  certificateHashes?: string[];
  /** The address of the WebSocket, ws: or wss:. */
  webSocket?: string;
  schema: { name: string; major: number; minor: number; fingerprint?: string };
  version?: string;
  protocol?: number;
  /**
   * The refusal that a client from this address would get at the moment, if the server admits none.
   */
  refused?: Closed;
}

/** The options of connect. Without any of them, it asks the server that served the page. */
export interface ConnectOptions<G extends Shape = Shape> {
  /**
   * The address of the server's description; by default /connect.json of the page. Each attempt
   * fetches it again.
   */
  url?: string | URL;
  /** The description itself, if the caller has it already. */
  info?: ConnectInfo;
  /**
   * The game's schema, as `server schema --ts` writes it. The client then checks that it fits the
   * server's, interpolates values as the schema declares, and gives zero values to fields that an
   * older server lacks. Without it the client reads all state by the server's tables, and draws
   * numbers by their kinds.
   */
  schema?: Schema<G>;
  /** The room to join; by default the server's default room. */
  room?: string;
  /**
   * The ticket of a reserved seat, or the code of a private room. It names the room, and overrides
   * the option room.
   */
  ticket?: string;
  /** Asks for a spectator's seat. With a ticket, the ticket decides the kind of seat. */
  spectate?: boolean;
  /** The client's own description; the server reads it with Join.Params. It is sent as JSON. */
  params?: unknown;
  /** The client's authentication token, or a function that fetches it for each attempt. */
  token?: string | (() => string | Promise<string>);
  /**
   * Codecs of protobuf messages by their full names, in place of those of the schema. The value of
   * a message without a codec is its bytes.
   */
  protobuf?: Record<string, ProtobufCodec>;
  /** The transports to try. By default WebTransport, and 500 ms later WebSocket as well. */
  transports?: readonly ("webtransport" | "websocket")[];
  /** The time limit of connect; by default 10 s. */
  timeoutMs?: number;
  /**
   * Whether the client reconnects after a broken connection: false ends the client. By default it
   * tries for 60 s.
   */
  reconnect?: boolean | { giveUpMs?: number };
  /**
   * The connection counts as broken after a silence of this length: 1 000 to 10 000, by default 5
   * 000.
   */
  lostAfterMs?: number;
  /** Ends the client as close does; connect then rejects with Code.Left. */
  signal?: AbortSignal;
  /**
   * Whether the client steps itself while the page does not, as in a background tab, where no
   * frames are drawn. By default it does, so that messages and state do not pile up.
   */
  pump?: boolean;
  /** Makes the link worse, to try out its effect: see Client.simulate. */
  simulate?: Simulation;
  /**
   * Called with each error that a callback of the page has thrown; by default it is written to
   * console.error.
   */
  onError?: (error: unknown, where: string) => void;
  /** Receives the client's messages to a developer; by default they are discarded. */
  log?: (text: string) => void;
  /** The platform functions that the client uses, for Node and for tests. */
  platform?: Partial<Platform>;
}

/** The browser functions that a client uses. */
export interface Platform {
  WebTransport: unknown;
  WebSocket: unknown;
  fetch: typeof fetch;
  /** A monotonic clock in milliseconds. */
  now(): number;
  setTimeout(fn: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
  random(): number;
}

/** Impairments that are added to a link. */
export interface Simulation {
  /** The latency added each way. */
  latencyMs?: number;
  /** The maximum extra latency, drawn at random. */
  jitterMs?: number;
  /** The share of lost datagrams, from 0 to 1. */
  loss?: number;
}

/** The phase of a client's life. */
export type Phase = "connecting" | "loading" | "playing" | "moving" | "reconnecting" | "closed";

/** A client's phase, and the values that belong to it. */
export interface Status {
  readonly phase: Phase;
  /** While loading: the number of objects of the first state that have arrived, and their total. */
  readonly loaded: number;
  readonly objects: number;
  /**
   * The latest time at which the server closes, on the clock of step; 0 while no end is planned.
   */
  readonly closingAt: number;
  /** While reconnecting: the attempt, from 1. */
  readonly attempt: number;
  /** While reconnecting: the time for which the server still keeps the client's seat. */
  readonly leftMs: number;
  /** Once closed, and while reconnecting: the reason. */
  readonly code: number;
  readonly text: string;
}

/** The frame in which a callback runs. One object serves all frames. */
export interface Frame {
  /** The time of the step, by performance.now(). */
  readonly now: number;
  /** The length of the frame. */
  readonly deltaMs: number;
  /** The server's tick, estimated; in a fixed step the tick that runs that step. */
  readonly tick: number;
  readonly gameTime: number;
  readonly scaledTime: number;
  /** The running fixed step; outside of fixed steps the last one. */
  readonly fixedStep: number;
  /** The length of a fixed step. */
  readonly fixedDeltaMs: number;
  /** The distance of the frame beyond the last fixed step, in steps. */
  readonly fraction: number;
  readonly stage: Stage;
  /**
   * The milliseconds left from this frame, or in a fixed step from its tick, until a deadline of a
   * state; 0 or less once it has passed.
   */
  left(deadline: bigint | number): number;
  /** The deadline that many milliseconds of game time later, for a state, as Tick.In makes it. */
  in(ms: number): bigint;
  /** The same in scaled time, as Tick.InScaled. */
  inScaled(ms: number): bigint;
}

/** A replicated object. The client keeps one ReplicatedObject per object, from spawn to despawn. */
export interface ReplicatedObject<S = any> {
  /** The id by which references name the object; 0 while only the client has it. */
  readonly id: number;
  /** The id of the client that owns it, or 0. */
  readonly owner: number;
  readonly alive: boolean;
  readonly className: string;
  /** The newest state: one object that the client changes in place. Do not write to it. */
  readonly state: S;
}

/** How a class is drawn between two snapshots. */
export interface InterpolateOptions {
  /**
   * The time for which numbers continue their last movement without a new snapshot: up to 1 000, by
   * default 0.
   */
  extrapolateMs?: number;
}

/** How a prediction is corrected. */
export interface PredictOptions<S = any> {
  /** The time over which a correction is smoothed; by default 100. */
  smoothingMs?: number;
  /** Reports whether a correction is too large to be smoothed. */
  snap?: (was: S, is: S) => boolean;
}

/** The objects of a class. */
export interface ObjectClass<S, I> {
  readonly name: string;
  /** The number of objects that the client has. */
  readonly size: number;
  /** The objects, in no particular order. */
  all(): Iterable<ReplicatedObject<S>>;
  [Symbol.iterator](): Iterator<ReplicatedObject<S>>;
  get(id: number): ReplicatedObject<S> | undefined;
  /** The objects that this client owns. */
  owned(): Iterable<ReplicatedObject<S>>;
  /** Called for each new object, and in the next step for each object that exists already. */
  onSpawn(fn: (object: ReplicatedObject<S>) => void): Unsubscribe;
  /** Called once for each object that a packet has changed, for all fields together. */
  onChange(fn: (object: ReplicatedObject<S>) => void): Unsubscribe;
  /** Called when an object has despawned; its last state can still be read. */
  onDespawn(fn: (object: ReplicatedObject<S>) => void): Unsubscribe;
  /**
   * Draws the objects between two snapshots as the schema declares, a little behind the server's
   * time: evenly at any frame rate. Messages sent with their state then run when that state is
   * drawn.
   */
  interpolate(options?: InterpolateOptions): this;
  /**
   * Predicts the client's own objects: step gets the state, which it changes in place, the input of
   * the step and the frame. It has to compute the same as the server, with float32 by Math.fround
   * where that matters, and must have no other effects: it runs again when the server's result
   * differs. Call inputs before.
   */
  predict(step: (state: S, input: I, frame: Frame) => void, options?: PredictOptions<S>): this;
  /** Makes an object, in a step function, that the server is about to spawn for the same input. */
  spawn(state: S): ReplicatedObject<S>;
  /**
   * The state of an object to draw in this frame, or undefined if it is not drawn. It is one state
   * for each replicated object, and each frame overwrites it.
   */
  view(object: ReplicatedObject<S>): S | undefined;
  /**
   * Calls fn for each object to draw in this frame. A despawned object is drawn until its despawn
   * is shown.
   */
  views(fn: (state: S, object: ReplicatedObject<S>) => void): void;
  /** The predicted state as of the newest fixed step, or undefined. */
  predicted(object: ReplicatedObject<S>): S | undefined;
  /** Counts the mispredictions by field: steps with another result than the server's. */
  mispredictions(): Readonly<Record<string, number>>;
}

/** The clocks of the server, as the client estimates them. */
export interface ServerClock {
  /** Whether enough exchanges have been measured. */
  readonly synced: boolean;
  /** The server's monotonic time. */
  readonly serverTime: number;
  readonly gameTime: number;
  readonly scaledTime: number;
  readonly tick: number;
  readonly tickRate: number;
  readonly fixedRate: number;
  /** The game time at which interpolated classes are drawn. */
  readonly viewTime: number;
  /**
   * The milliseconds left until a deadline or instant of a state, of game time or of scaled time as
   * the instant has it; negative if it has passed. A bar of a duration is left / duration.
   */
  left(instant: bigint | number): number;
  /**
   * The instant in milliseconds, to compare it with gameTime or viewTime, or with scaledTime if it
   * is one of scaled time: at(shot.End) > clock.viewTime tells whether the drawn shot still glows.
   */
  at(instant: bigint | number): number;
}

/** Counters and measurements of the connection. */
export interface Stats {
  transport: Transport | "none";
  /** The least recent round trip, and whether enough exchanges were measured. */
  rttMs: number;
  synced: boolean;
  serverTick: number;
  appliedTick: number;
  /** The age of the newest state. */
  ageMs: number;
  /** Complete snapshots, and their number in the last second. */
  snapshots: number;
  snapshotRate: number;
  packets: number;
  records: number;
  stale: number;
  /** State packets that were sent and have not arrived, and snapshots that the server skipped. */
  lost: number;
  heldBack: number;
  /** Refused packets of state, and requests for a full state. */
  malformed: number;
  fullStates: number;
  /** Complete digests that did not match. Every one is a fault of netloop. */
  unequal: number;
  bytesIn: number;
  bytesOut: number;
  datagramsIn: number;
  datagramsOut: number;
  /** Datagrams and messages that were invalid or duplicates, or that found no room. */
  dropped: number;
  /**
   * The delay of the drawn moment behind the server's time, and the number of frames without a
   * newer snapshot.
   */
  viewDelayMs: number;
  drawn: number;
  starved: number;
  extrapolated: number;
  viewJumps: number;
  /**
   * Inputs made, steps that the server ran without this client's input, and the lead of the steps.
   */
  inputs: number;
  inputsMissed: number;
  leadMs: number;
  inputEarlyMs: number;
  leadJumps: number;
  /** Mispredicted objects, and steps that ran again. */
  mispredicted: number;
  mispredictedLate: number;
  replayed: number;
  spawnsMatched: number;
  spawnsWithdrawn: number;
  jumped: number;
  silentMs: number;
  drops: number;
  resumes: number;
  /** Messages that could not run, could not be sent, or have an unknown method. */
  rejected: number;
  unsent: number;
  unknown: number;
  /** Messages that wait for their state, and messages that ran before it arrived. */
  held: number;
  early: number;
  calls: number;
  lateCalls: number;
  /** Errors that callbacks of the page have thrown. */
  errors: number;
}

/** How a message is sent. */
export interface SendOptions {
  /** The stage at which the message runs; by default the method's. */
  stage?: Stage;
}

/** How a call is made. */
export interface CallOptions extends SendOptions {
  /** The timeout of the answer; by default 10 000. */
  timeoutMs?: number;
}

/**
 * One player's connection to a room. The page calls step once per frame, and the client calls the
 * page's callbacks only inside step.
 */
export interface Client<G extends Shape = Shape> {
  /** The client's id in the room. A new join gives the client a new id. */
  readonly id: number;
  readonly room: string;
  /** The server's description of itself. */
  readonly info: ConnectInfo;
  /** The minor version of the schema that is in force. */
  readonly minor: number;
  readonly status: Status;
  /** The reason why the client has ended, or undefined before its end. */
  readonly closed: Closed | undefined;
  readonly transport: Transport | "none";
  readonly clock: ServerClock;
  /** The current figures; each read makes a new object. */
  readonly stats: Stats;
  /**
   * The server's level of overload: from 0, no restriction, to 3, no admission of further clients.
   */
  readonly overload: number;

  /**
   * Runs one frame, of any length; now is the timestamp of requestAnimationFrame, from which the
   * frame's length is computed.
   */
  step(now?: number): void;
  /** Announces the end to the server and ends the client. */
  close(): void;

  /** Called when the status changes, and while loading with its progress. */
  onStatus(fn: (status: Status) => void): Unsubscribe;
  onOverload(fn: (level: number) => void): Unsubscribe;
  /** Called for each complete snapshot. */
  onSnapshot(fn: (tick: number, bytes: number) => void): Unsubscribe;
  /** Runs fn at a stage of every frame, in FixedUpdate once for each fixed step. */
  on(stage: Stage, fn: (frame: Frame) => void): Unsubscribe;

  class<K extends keyof G["classes"] & string>(name: K): ObjectClass<G["classes"][K], G["input"]>;
  /** Finds an object of any class by its id, as a reference names it. */
  get(id: number | bigint): ReplicatedObject | undefined;
  /** Counts the mispredictions of all classes by class and field, such as "ship.X". */
  mispredictions(): Readonly<Record<string, number>>;

  /**
   * Sends a message with the next flush. It reports false, and counts the message, if it cannot be
   * sent: the server's build lacks a method of the schema, the room's game does not handle it, the
   * message exceeds a limit, or there is no connection. It throws for a method or a field that is
   * not declared, with the nearest name, as call, handle and class do.
   */
  send<K extends keyof G["rpcs"] & string>(method: K, message: G["rpcs"][K], options?: SendOptions): boolean;
  /**
   * Sends a question to the server. The promise is settled inside a step, or fails with a
   * NetloopError.
   */
  call<K extends keyof G["calls"] & string>(
    method: K,
    question: G["calls"][K]["question"],
    options?: CallOptions,
  ): Promise<G["calls"][K]["answer"]>;
  /**
   * Sets the handler of the server's messages of a method: fn runs at the stage that each message
   * names.
   */
  handle<K extends keyof G["rpcs"] & string>(method: K, fn: (message: G["rpcs"][K], frame: Frame) => void): Unsubscribe;

  /**
   * Makes an input in each fixed step: sample returns the player's current input. It may be set
   * once. The game decides how the server replaces a missing input by the last one: repeat has to
   * do the same.
   */
  inputs(sample: (frame: Frame) => G["input"], options?: { repeat?: (last: G["input"], missed: number) => G["input"] }): void;

  /**
   * Asks the room to move the client to the room of a ticket, or of a private room's code. The game
   * may also move a client on its own, with the same effects. The connection is kept; all objects
   * despawn, and those of the other room spawn; calls and messages under way are lost; id and room
   * change. The phase is moving, and then loading. If the other room refuses the client, the client
   * ends with the reason. False: the client is in no room, or the game does not let clients of the
   * room move.
   *
   * To a room of another server the client first opens a connection, and plays on until then. If
   * that server does not admit it within 5 s, the client resumes its seat in the old room.
   */
  move(ticket: string): boolean;

  /** Compares the client's state with the server's: the promise resolves if the digests agree. */
  verify(): Promise<void>;
  /** Makes the link worse from now on; {} removes all impairments. */
  simulate(how: Simulation): void;
  /**
   * Breaks the connection without a close frame, as a dead network does, for tests and
   * demonstrations.
   */
  cut(): void;
}
