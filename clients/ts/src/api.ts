// What a page sees of the client: the types of index.ts, and what they promise. client.ts makes
// them. All times are milliseconds, all ticks and steps are numbers, and every function that takes
// a callback returns a function that takes it away again.

import type { ProtobufCodec, Schema, Shape } from "./schema.js";

/** Takes away what was registered. Calling it twice does nothing. */
export type Unsubscribe = () => void;

/** The stages of a frame, in their order. A message names the one at which it wants to run. */
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

/** Why a connection ended, a join was refused or a call rejected. From Game on they are the game's. */
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

/** Why a client ended. */
export interface Closed {
  readonly code: number;
  /** For people; it comes from the server, so show it as text and never as HTML. */
  readonly text: string;
}

/** The error of connect, of a call and of verify: a code, and the server's words or the client's. */
export class NetloopError extends Error {
  override readonly name = "NetloopError";
  constructor(
    readonly code: number,
    text: string,
  ) {
    super(text);
  }
}

/** How the bytes travel. */
export type Transport = "webtransport" | "websocket" | "memory";

/** What a server says about itself at /connect.json. */
export interface ConnectInfo {
  /** host:port of the game's UDP port, for WebTransport. */
  address: string;
  /** The path of the WebTransport session. */
  path: string;
  /** SHA-256 of the certificates that the browser is to accept, in base64; empty: it trusts the server's. */
  certificateHashes?: string[];
  /** The address of the WebSocket, ws: or wss:. */
  webSocket?: string;
  schema: { name: string; major: number; minor: number; fingerprint?: string };
  version?: string;
  protocol?: number;
  /** Why the server lets in nobody who comes from here at the moment, if it does not. */
  refused?: Closed;
}

/** What connect needs to know. Without any of it, it asks the server that served the page. */
export interface ConnectOptions<G extends Shape = Shape> {
  /** Where the server describes itself; by default /connect.json of the page. Each attempt asks anew. */
  url?: string | URL;
  /** What that would say, for who knows it. */
  info?: ConnectInfo;
  /**
   * The game's schema, as `server schema --ts` writes it: the client then finds out whether it fits
   * the server's, knows how values are interpolated, and gives fields that an older server lacks their
   * zero values. Without it everything is read by the server's tables, and numbers are drawn by their kinds.
   */
  schema?: Schema<G>;
  /** The room to join; by default the server's default room. */
  room?: string;
  /** A seat that is reserved, or the code of a private room. It names the room, whatever room says. */
  ticket?: string;
  /** Asks for a seat to watch from. With a ticket that says what the seat is. */
  spectate?: boolean;
  /** What the client says about itself; the server reads it with Join.Params. It travels as JSON. */
  params?: unknown;
  /** What the client proves itself with, or what fetches it for each attempt. */
  token?: string | (() => string | Promise<string>);
  /**
   * Other codecs of protobuf messages, by their full names, than those of the schema. A message of
   * which nobody knows more is its bytes.
   */
  protobuf?: Record<string, ProtobufCodec>;
  /** Which transports are tried. By default WebTransport, and 500 ms later WebSocket as well. */
  transports?: readonly ("webtransport" | "websocket")[];
  /** For how long connect tries; by default 10 s. */
  timeoutMs?: number;
  /** What happens when the connection breaks: false ends the client. By default it comes back for 60 s. */
  reconnect?: boolean | { giveUpMs?: number };
  /** For how long nothing may be heard before the connection counts as broken: 1 000 to 10 000, by default 5 000. */
  lostAfterMs?: number;
  /**
   * Whether the client steps itself while the page does not, as in a tab in the background, where
   * no frames are drawn. By default it does: messages and state then do not pile up.
   */
  pump?: boolean;
  /** Makes the link worse, to feel what it does: see Client.simulate. */
  simulate?: Simulation;
  /** Called with what a callback of the page has thrown; by default it goes to console.error. */
  onError?: (error: unknown, where: string) => void;
  /** Takes what the client has to say to a developer; by default nobody. */
  log?: (text: string) => void;
  /** What the client uses of its surroundings, for Node and for tests. */
  platform?: Partial<Platform>;
}

/** What a client uses of the browser. */
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

/** A link that is worse than it is. */
export interface Simulation {
  /** Added each way. */
  latencyMs?: number;
  /** At most so much more, at random. */
  jitterMs?: number;
  /** The share of datagrams that are lost, from 0 to 1. */
  loss?: number;
}

/** Where a client is in its life. */
export type Phase = "connecting" | "loading" | "playing" | "moving" | "reconnecting" | "closed";

/** A client's phase, and what belongs to it. */
export interface Status {
  readonly phase: Phase;
  /** While loading: so many of the objects of the first state have arrived. */
  readonly loaded: number;
  readonly objects: number;
  /** When the server closes at the latest, on the clock of step; 0 while it does not mean to. */
  readonly closingAt: number;
  /** While reconnecting: the attempt, from 1. */
  readonly attempt: number;
  /** While reconnecting: for how long the server still keeps the client's place. */
  readonly leftMs: number;
  /** Once closed, and while reconnecting: why. */
  readonly code: number;
  readonly text: string;
}

/** What a callback may know of the frame in which it runs. It is one object for all frames. */
export interface Frame {
  /** The time of the step, by performance.now(). */
  readonly now: number;
  /** How long the frame is. */
  readonly deltaMs: number;
  /** The server's tick, estimated; in a fixed step the tick that runs it. */
  readonly tick: number;
  readonly gameTime: number;
  readonly scaledTime: number;
  /** The fixed step that runs; outside of them the last one. */
  readonly fixedStep: number;
  /** How long a fixed step is. */
  readonly fixedDeltaMs: number;
  /** How far the frame is beyond the last fixed step, in steps. */
  readonly fraction: number;
  readonly stage: Stage;
}

/** A replicated object. There is one for each, for as long as the client has it. */
export interface ReplicatedObject<S = any> {
  /** As it occurs in references; 0 while only the client has it. */
  readonly id: number;
  /** The id of the client that owns it, or 0. */
  readonly owner: number;
  readonly alive: boolean;
  readonly className: string;
  /** The newest state: one object, changed in place. Do not write to it. */
  readonly state: S;
}

/** How a class is drawn between two snapshots. */
export interface InterpolateOptions {
  /** For how long numbers go on as they went when no snapshot comes: up to 1 000, by default 0. */
  extrapolateMs?: number;
}

/** How a prediction is corrected. */
export interface PredictOptions<S = any> {
  /** For how long a correction is drawn; by default 100. */
  smoothingMs?: number;
  /** Which corrections are too large to be smoothed. */
  snap?: (was: S, is: S) => boolean;
}

/** The objects of a class. */
export interface ObjectClass<S, I> {
  readonly name: string;
  /** How many the client has. */
  readonly size: number;
  /** The objects, in no particular order. */
  all(): Iterable<ReplicatedObject<S>>;
  [Symbol.iterator](): Iterator<ReplicatedObject<S>>;
  get(id: number): ReplicatedObject<S> | undefined;
  /** Those that this client owns. */
  owned(): Iterable<ReplicatedObject<S>>;
  /** Called for each object that appears, and for those that are there, in the next step. */
  onSpawn(fn: (object: ReplicatedObject<S>) => void): Unsubscribe;
  /** Called when a packet has changed an object, once for all fields. */
  onChange(fn: (object: ReplicatedObject<S>) => void): Unsubscribe;
  /** Called when an object is gone; its last state can still be read. */
  onDespawn(fn: (object: ReplicatedObject<S>) => void): Unsubscribe;
  /**
   * Draws the objects between two snapshots, by the ways of the schema, a little behind the server:
   * evenly at any frame rate. Messages sent with their state then run when that is shown.
   */
  interpolate(options?: InterpolateOptions): this;
  /**
   * Runs ahead with the client's own objects: step gets the state, which it changes in place, the input
   * of the step and the frame. It does what the server does, with float32 by Math.fround where that
   * matters, and nothing else: it runs again when the server says otherwise. Call inputs before.
   */
  predict(step: (state: S, input: I, frame: Frame) => void, options?: PredictOptions<S>): this;
  /** Makes an object in a step function that the server is about to spawn for the same input. */
  spawn(state: S): ReplicatedObject<S>;
  /**
   * What is to be drawn of an object in this frame, or undefined if nothing is. It is one object for
   * each replicated one, and written again in each frame.
   */
  view(object: ReplicatedObject<S>): S | undefined;
  /** Calls fn for all that is to be drawn in this frame: what has despawned is, until that is shown. */
  views(fn: (state: S, object: ReplicatedObject<S>) => void): void;
  /** The predicted state as of the newest fixed step, or undefined. */
  predicted(object: ReplicatedObject<S>): S | undefined;
  /** Which fields were predicted wrongly, and how often: a step that differs from the server's. */
  mispredictions(): Readonly<Record<string, number>>;
}

/** The clocks of the server, as the client knows them. */
export interface ServerClock {
  /** Enough has been measured. */
  readonly synced: boolean;
  /** The server's monotonic time. */
  readonly serverTime: number;
  readonly gameTime: number;
  readonly scaledTime: number;
  readonly tick: number;
  readonly tickRate: number;
  readonly fixedRate: number;
  /** The game time that interpolated classes are drawn at. */
  readonly viewTime: number;
  /** How much of a deadline or instant, as it is in a state, is left. Below 0 it has passed. */
  left(instant: bigint | number): number;
}

/** How the connection has done so far. */
export interface Stats {
  transport: Transport | "none";
  /** The least round trip of late, and whether enough was measured. */
  rttMs: number;
  synced: boolean;
  serverTick: number;
  appliedTick: number;
  /** How old the newest state is. */
  ageMs: number;
  /** Whole snapshots, and how many came in the last second. */
  snapshots: number;
  snapshotRate: number;
  packets: number;
  records: number;
  stale: number;
  /** State packets that were sent and have not arrived, and snapshots that were held back. */
  lost: number;
  heldBack: number;
  /** Packets of state that were refused, and full states that were asked for. */
  malformed: number;
  fullStates: number;
  /** Complete digests that did not match. It cannot happen. */
  unequal: number;
  bytesIn: number;
  bytesOut: number;
  datagramsIn: number;
  datagramsOut: number;
  /** Datagrams and messages that made no sense, came twice or found no room. */
  dropped: number;
  /** How far behind the server's time what is shown lies, and how often there was nothing newer. */
  viewDelayMs: number;
  drawn: number;
  starved: number;
  extrapolated: number;
  viewJumps: number;
  /** Inputs made, steps that the server ran without theirs, and how far ahead the steps are. */
  inputs: number;
  inputsMissed: number;
  leadMs: number;
  inputEarlyMs: number;
  leadJumps: number;
  /** Objects that were predicted wrongly, and steps that ran again. */
  mispredicted: number;
  mispredictedLate: number;
  replayed: number;
  spawnsMatched: number;
  spawnsWithdrawn: number;
  jumped: number;
  silentMs: number;
  drops: number;
  resumes: number;
  /** Messages that could not run, could not be sent, or are of methods that nobody knows. */
  rejected: number;
  unsent: number;
  unknown: number;
  /** Messages that wait for their state, and those that ran before it came. */
  held: number;
  early: number;
  calls: number;
  lateCalls: number;
  /** Callbacks of the page that have thrown. */
  errors: number;
}

/** How a message is sent. */
export interface SendOptions {
  /** The stage at which it wants to run; by default the method's. */
  stage?: Stage;
}

/** How a call is made. */
export interface CallOptions extends SendOptions {
  /** How long to wait for the answer; by default 10 000. */
  timeoutMs?: number;
}

/**
 * One player's way into a room. The page calls step once per frame, and everything that the client
 * does to the page's code it does inside of it.
 */
export interface Client<G extends Shape = Shape> {
  /** The client's id in the room. It is another after it has joined anew. */
  readonly id: number;
  readonly room: string;
  /** What the server said about itself. */
  readonly info: ConnectInfo;
  /** The minor version of the schema that is in force. */
  readonly minor: number;
  readonly status: Status;
  /** Why the client has ended, or undefined while it has not. */
  readonly closed: Closed | undefined;
  readonly transport: Transport | "none";
  readonly clock: ServerClock;
  /** The figures of the moment; the object is another each time. */
  readonly stats: Stats;
  /** How much the server gives up because it cannot keep up: 0 nothing, to 3 nobody else may join. */
  readonly overload: number;

  /** Runs one frame, of any length; now is what requestAnimationFrame says, for the length of the frame. */
  step(now?: number): void;
  /** Says goodbye and ends the client. */
  close(): void;

  /** Called when the status changes, and while loading with its progress. */
  onStatus(fn: (status: Status) => void): Unsubscribe;
  onOverload(fn: (level: number) => void): Unsubscribe;
  /** Called for each snapshot that has arrived whole. */
  onSnapshot(fn: (tick: number, bytes: number) => void): Unsubscribe;
  /** Runs fn at a stage of every frame, in FixedUpdate once for each fixed step. */
  on(stage: Stage, fn: (frame: Frame) => void): Unsubscribe;

  class<K extends keyof G["classes"] & string>(name: K): ObjectClass<G["classes"][K], G["input"]>;
  /** Finds an object of any class by its id, as a reference names it. */
  get(id: number | bigint): ReplicatedObject | undefined;

  /**
   * Sends a message with the next flush. It reports false for one that cannot be sent, which is counted:
   * the server's build lacks a method of the schema, the room's game does not handle it, the message exceeds a limit, or there is no connection.
   * It throws for a method or a field that nothing declares, with the nearest name, as call, handle and
   * class do.
   */
  send<K extends keyof G["rpcs"] & string>(method: K, message: G["rpcs"][K], options?: SendOptions): boolean;
  /** Asks the server. The promise is settled inside a step, or fails with a NetloopError. */
  call<K extends keyof G["calls"] & string>(
    method: K,
    question: G["calls"][K]["question"],
    options?: CallOptions,
  ): Promise<G["calls"][K]["answer"]>;
  /** Sets what happens when the server sends such a message: fn runs at the stage that it names. */
  handle<K extends keyof G["rpcs"] & string>(method: K, fn: (message: G["rpcs"][K], frame: Frame) => void): Unsubscribe;

  /**
   * Makes an input in each fixed step: sample says what the player does now. It may be set once. What
   * the server makes of the last input where one is missing is the game's to say: repeat does the same.
   */
  inputs(sample: (frame: Frame) => G["input"], options?: { repeat?: (last: G["input"], missed: number) => G["input"] }): void;

  /**
   * Asks the room to let the client go on to that of a ticket, or of a private room's code. The game
   * may send a client on by itself, and both are the same from there on. The connection stays; all
   * objects despawn, and those of the other room spawn; calls and messages under way are lost; id and
   * room are others. The phase is moving, and then loading. If the other room does not take it, the
   * client ends with the reason. False: it is in no room that it could leave, or the
   * game does not let clients of the room move.
   */
  move(ticket: string): boolean;

  /** Asks whether the state is the server's: it resolves if the digests agree. */
  verify(): Promise<void>;
  /** Makes the link worse from now on, or with {} as good as it is. */
  simulate(how: Simulation): void;
  /** Breaks the connection without a word, as a dead network does, for tests and demonstrations. */
  cut(): void;
}
