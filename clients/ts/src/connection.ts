// The client's membership in a room, over one connection at a time: entry, received data,
// reconnection and end. client.ts is the page's interface to it.

import { check } from "./adapt.js";
import { Code, NetloopError, type Closed, type ConnectInfo, type ConnectOptions, type Platform, type Status } from "./api.js";
import { ServerTime } from "./clock/server.js";
import { readSchema, type Schema as Served } from "./codec/index.js";
import { decided, open, race, type Candidate, type Joined } from "./session/race.js";
import { Elsewhere } from "./session/greeting.js";
import { Rejoin, reconnects } from "./session/rejoin.js";
import { Backlog } from "./session/backlog.js";
import { Arrived, type Arrival, type Link, type Moving, type Traffic } from "./session/link.js";
import { discard, MAX_HOPS, targetOf, TRAVEL_LIMIT, type Travel } from "./session/travel.js";
import { Losses } from "./session/losses.js";
import { Refusals, Snapshots, Verification } from "./session/receiver.js";
import { Replica, type ApplyResult } from "./state/replica.js";
import { same } from "./wire/bytes.js";
import type { InputStatus, Message, Moved, Welcome } from "./wire/frames.js";

/** The connections to race, and the server's description. */
export interface Route {
  info: ConnectInfo;
  candidates: readonly Candidate[];
}

const NONE: Uint8Array = new Uint8Array(0);
const MAX_FRAME_MS = 100;
const MAX_MOVE_MS = 60_000;
const MAX_CLOSING = 2 ** 53;

/** The initial status. */
const CONNECTING: Status = { phase: "connecting", loaded: 0, objects: 0, closingAt: 0, attempt: 0, leftMs: 0, code: 0, text: "" };

export abstract class Connection {
  id = 0;
  room = "";
  minor = 0;
  overload = 0;
  closed: Closed | undefined;
  info: ConnectInfo;
  served: Served | undefined;
  readonly time = new ServerTime();
  readonly counts = {
    packets: 0, records: 0, stale: 0, malformed: 0, fullStates: 0, unequal: 0, drops: 0, resumes: 0,
    rejected: 0, unsent: 0, unknown: 0, errors: 0, inputs: 0,
  };
  readonly traffic: Traffic = { bytesIn: 0, bytesOut: 0, datagramsIn: 0, datagramsOut: 0, dropped: 0 };
  protected link: Link | undefined;
  protected replica: Replica | undefined;
  protected rejoin: Rejoin | undefined;
  protected current: Status = CONNECTING;
  protected readonly losses = new Losses();
  protected readonly snapshots = new Snapshots();
  protected readonly verification = new Verification();
  private refusals = new Refusals();
  private dialedSchema: Served | undefined;
  private instance = NONE;
  private secret = NONE;
  private keepMs = 0;
  private backlog: Backlog | undefined;
  private before = 0;
  private received = 0;
  private attempts = 0;
  private silence = { arrival: 0, step: 0, duration: 0 };
  private ticket: string;
  private moving: Moving | undefined;
  private travel: Travel | undefined;
  /** The server of the client's room, once another one than that of the route has admitted it. */
  private home: ConnectInfo | undefined;
  protected movable = false;
  protected handles: Uint8Array = new Uint8Array(0);

  constructor(
    protected readonly options: ConnectOptions<any>,
    protected readonly platform: Platform,
    private route: (known?: ConnectInfo) => Promise<Route>,
    info: ConnectInfo,
  ) {
    this.info = info;
    this.room = options.room ?? "";
    this.ticket = options.ticket ?? "";
  }

  // Implemented by the page's side.
  protected abstract setStatus(s: Status): void;
  protected abstract arrivedMessage(m: Message): void;
  protected abstract appliedState(result: ApplyResult | undefined): void;
  protected abstract wholeSnapshot(result: ApplyResult, at: number, bytes: number): void;
  protected abstract epochMoved(tick: number, by: number): void;
  protected abstract inputsReported(s: InputStatus): void;
  protected abstract setOverload(level: number): void;
  /** Called for a new connection: resets the counters of a single connection. */
  protected abstract restartView(): void;
  /** Called for another room, or for a new client id: discards all state of the one before. */
  protected abstract bind(served: Served): void;
  protected abstract reset(): void;
  protected abstract runHeld(): void;
  protected abstract failCalls(code: number, text: string): void;

  get status(): Status {
    return this.current.phase === "reconnecting" ? { ...this.current, leftMs: this.leftMs } : this.current;
  }

  /** Whether there is a connection. */
  protected get live(): boolean {
    return this.link !== undefined && (!this.rejoin || this.rejoin.joining);
  }

  private get leftMs(): number {
    return this.rejoin ? Math.max(0, this.rejoin.since + this.keepMs - this.platform.now()) : 0;
  }

  private get giveUpMs(): number {
    const r = this.options.reconnect;
    return (typeof r === "object" && r.giveUpMs) || 60_000;
  }

  // Entry.

  /**
   * Makes the first connection, or the next one after a break. A server may send the client to
   * another one: hops counts the servers before.
   */
  async open(timeoutMs: number, signal?: AbortSignal, to = this.moving?.to, hops = 0): Promise<Joined> {
    const { options, platform, moving } = this;
    this.moving = undefined;
    const end = platform.now() + timeoutMs;
    const { info, candidates } = moving ? routeOver(moving, to?.info ?? this.info) : await this.route(to?.info ?? this.home);
    const secret = to ? NONE : this.secret;
    const token = moving || to ? "" : await tokenOf(options.token, secret.length > 0);
    this.info = info;
    const own = options.schema ?? info.schema;
    return race(
      {
        candidates,
        platform,
        timeoutMs,
        hello: {
          schema: own.name,
          major: own.major,
          minor: own.minor,
          room: to ? "" : this.room,
          ticket: to ? to.ticket : this.ticket,
          spectate: options.spectate ?? false,
          params: options.params === undefined ? NONE : new TextEncoder().encode(JSON.stringify(options.params)),
          token,
          datagram: moving?.first ?? 0,
          build: "netloop-ts",
          ...(options.reconnect !== false && {
            resume: { token: secret, received: to ? 0 : this.received, kept: secret.length > 0, attempt: 0 },
          }),
        },
        nextAttempt: () => ++this.attempts,
        adapt: (tables) => this.adapt(tables),
        traffic: this.traffic,
      },
      signal,
    ).then((e) => {
      e.welcome.resumed &&= secret.length > 0;
      return { ...e, to };
    }, (error: NetloopError) => {
      if (error instanceof Elsewhere && error.moved.to && hops < MAX_HOPS) {
        return this.open(end - platform.now(), signal, targetOf(error.moved, info), hops + 1);
      }
      // Browsers hide why a connection was refused; the server's description states the reason.
      const { refused } = info;
      throw error.code === Code.Lost && refused ? new NetloopError(refused.code, refused.text) : error;
    });
  }

  private adapt(tables: Uint8Array): void {
    const { protobuf, schema } = this.options;
    this.dialedSchema = readSchema(tables, (name) => protobuf?.[name] ?? schema?.protobuf?.[name]);
    check(schema, this.dialedSchema);
  }

  /** Continues with a new connection: throws a NetloopError if the welcome is inconsistent. */
  enter(e: Joined): void {
    const { link, welcome: w } = e;
    const now = this.platform.now();
    const resumed = w.resumed && this.replica !== undefined;
    if (e.to) {
      this.home = e.to.info;
      this.ticket = e.to.ticket;
      this.leftRoom();
    }
    if (resumed && w.id !== this.id) {
      link.violated("server resumed the seat of another client");
      throw new NetloopError(Code.Protocol, "server resumed the seat of another client");
    }
    const known = this.instance.length > 0 && same(this.instance, w.instance);
    // A new join is to another room, even under the same name: the room may have been replaced.
    this.time.welcome(e.at, e.at - e.began, w, known, known && resumed);
    this.instance = w.instance;
    this.link = link;
    this.secret = w.secret;
    this.keepMs = w.keep;
    this.movable = w.moves;
    this.handles = w.handles;
    this.losses.restart(w.sendEvery);
    this.refusals = new Refusals();
    this.snapshots.restart();
    this.verification.restart();
    this.silence = { arrival: 0, step: now, duration: 0 };
    this.setOverload(0);
    this.restartView();
    const tick = this.time.line.tickAt(this.time.gameTime(now));
    if (resumed) {
      this.before = this.received;
      this.backlog!.unconfirmed = true;
      this.replica!.reconnect();
    } else this.join(w, tick);
    link.backlog = this.backlog;
    link.startReceipts(this.before);
  }

  /** Joins as a new client. */
  private join(w: Welcome, tick: number): void {
    const again = this.replica !== undefined;
    this.before = this.received = 0;
    this.backlog = this.secret.length > 0 ? new Backlog() : undefined;
    if (again) {
      this.replica!.reset(tick);
      this.appliedState(undefined);
      this.reset();
    }
    this.id = w.id;
    this.room = w.room;
    if (this.ticket.includes("@")) this.ticket = ""; // A ticket is used up; a code is not.
    this.minor = w.minor;
    this.served = this.dialedSchema!;
    this.replica = new Replica(this.served, tick);
    this.bind(this.served);
  }

  private accepted(received: number): void {
    if (this.backlog && !this.link!.resend(received)) return this.link!.violated("server acknowledged messages that were never sent");
    const { rejoin } = this;
    if (!rejoin) return;
    this.rejoin = undefined;
    if (!rejoin.anew) this.counts.resumes++;
    if (!rejoin.moves) this.options.log?.(`reconnected after ${rejoin.tries} attempts`);
    this.setStatus(rejoin.anew ? { ...CONNECTING, phase: "loading" } : this.next);
  }

  /** The status that follows reconnecting. */
  private next: Status = CONNECTING;

  protected become(s: Status): void {
    if (this.rejoin) this.next = s;
    else this.setStatus(s);
  }

  protected get present(): Status {
    return this.rejoin ? this.next : this.current;
  }

  // Reconnection.

  /** Ends a silent connection, and continues the attempts to reconnect. */
  protected checkSilence(now: number): void {
    if (this.live) {
      const { silence, link } = this;
      silence.duration += Math.min(now - silence.step, MAX_FRAME_MS);
      if (link!.lastArrival !== silence.arrival) silence.duration = 0;
      silence.step = now;
      silence.arrival = link!.lastArrival;
      const lostAfter = Math.min(Math.max(this.options.lostAfterMs ?? 5000, 1000), 10_000);
      if (silence.duration >= lostAfter) this.ended(Code.Timeout, `no packet from the server for ${lostAfter} ms`);
    }
    this.reconnect(now);
  }

  /** Begins the attempt that is due, or gives up. */
  private reconnect(now: number): void {
    const a = this.rejoin;
    if (!a) return;
    // A move over a connection that works is no attempt to reconnect.
    const moved = a.why.code === Code.Moved;
    const giveUp = moved ? MAX_MOVE_MS : this.giveUpMs;
    if (now - a.since >= giveUp) {
      if (moved) return this.finish(Code.Timeout, "room did not answer in time");
      const text = `connection is broken, and ${a.tries} attempts to reconnect in ${Math.round(now - a.since)} ms failed: ${a.why.text}`;
      return this.finish(Code.Lost, text);
    }
    if (!a.due(now)) return;
    const to = this.moving?.to;
    a.dial(
      now,
      giveUp,
      (limit, signal) => (to ? this.arrive(a, signal) : this.open(limit, signal)),
      (error) => {
        // The ticket of a move is unknown after a crash of the server: the client joins its last room again.
        const unknown = error.code === Code.Ticket && !a.moves && this.ticket.includes("@");
        if (!unknown) return this.finish(error.code, error.message);
        this.ticket = "";
        a.failed(this.platform.now(), { code: error.code, text: error.message });
      },
    );
    if (a.moves) this.setStatus({ ...CONNECTING, phase: "moving" });
    else this.setStatus({ ...CONNECTING, phase: "reconnecting", attempt: a.tries, leftMs: this.leftMs, ...a.why });
  }

  /**
   * Joins a room of another server. Until the game has admitted the client, each failure leads back
   * to the seat of before, if there is one.
   */
  private async arrive(a: Rejoin, signal: AbortSignal): Promise<Joined> {
    const { platform } = this;
    const end = platform.now() + TRAVEL_LIMIT;
    try {
      const e = await this.open(TRAVEL_LIMIT, signal);
      await decided(e.link, platform, end - platform.now(), signal);
      return e;
    } catch (error) {
      const { code, message } = failedMove(error as NetloopError);
      if (a.why.code === Code.Closing || this.secret.length === 0) this.finish(code, message);
      throw new NetloopError(Code.Lost, message);
    }
  }

  /** Takes over the connection of a successful attempt. */
  protected switchOver(): void {
    const a = this.rejoin;
    const e = a?.dialed;
    if (!a || !e) return;
    a.dialed = undefined;
    a.joining = true;
    a.anew ||= !e.welcome.resumed;
    this.next = e.welcome.resumed ? { ...this.next, closingAt: 0 } : { ...CONNECTING, phase: "loading" };
    try {
      this.enter(e);
    } catch (error) {
      this.finish(Code.Protocol, (error as Error).message);
    }
  }

  /** Handles the end of the connection: a break, or the server's close. */
  protected ended(code: number, text: string): void {
    if (this.closed) return;
    const moved = code === Code.Moved && text !== "";
    if (moved) {
      // The game moves the client to another room: it joins there as a new client, with this
      // ticket.
      this.ticket = text;
      this.leftRoom();
    }
    if (this.options.reconnect !== false && (moved || reconnects(code, this.rejoin !== undefined) || (this.travel && code === Code.Closing))) return this.broken(code, text);
    this.runHeld();
    this.finish(code, text);
  }

  private leftRoom(): void {
    this.endTravel();
    this.secret = NONE;
    this.failCalls(Code.Moved, "client has moved to another room");
  }

  /** Opens a connection to another server, to which the client then moves. A move before it ends. */
  private startTravel(moved: Moved): void {
    this.endTravel();
    const { platform } = this;
    const target = targetOf(moved, this.info);
    const abort = new AbortController();
    const conn = this.route(target.info).then(({ candidates }) => open({ candidates, platform, timeoutMs: TRAVEL_LIMIT }, abort.signal));
    const travel: Travel = { ...target, abort, conn, opened: false };
    this.travel = travel;
    conn.then(
      () => (travel.opened = true),
      (error) => {
        if (this.travel !== travel) return;
        this.travel = undefined;
        this.options.log?.(failedMove(error).message);
      },
    );
  }

  private endTravel(): void {
    this.travel?.abort.abort();
    discard(this.travel?.conn);
    this.travel = undefined;
  }

  private broken(code: number, text: string): void {
    const { travel } = this;
    this.travel = undefined;
    this.moving = travel ? { conn: travel.conn, first: 0, to: travel } : this.link?.moving;
    this.link?.close(code === Code.Moved ? code : Code.Timeout, text);
    const now = this.platform.now();
    if (this.rejoin) return this.rejoin.failed(now, { code, text });
    this.next = this.current;
    const { platform } = this;
    this.rejoin = new Rejoin(now, { code, text }, () => platform.now(), () => platform.random(), () => this.counts.drops++);
    if (this.moving) this.rejoin.moves = true;
    if (!this.moving || code !== Code.Moved) {
      this.counts.drops++;
      this.options.log?.(`connection is broken: ${text}`);
    }
    this.reconnect(now);
  }

  /** Ends the client. */
  protected finish(code: number, text: string): void {
    if (this.closed) return;
    this.closed = { code, text };
    this.rejoin?.stop();
    this.rejoin = undefined;
    this.link?.close(code === Code.Left ? Code.Left : Code.Unspecified, "");
    discard(this.moving?.conn);
    this.endTravel();
    this.verification.done(new NetloopError(code, text));
    this.failCalls(code, text);
    this.setStatus({ ...CONNECTING, phase: "closed", code, text });
  }

  // Received data.

  /** Handles the received data, in the order of arrival. */
  protected receive(): void {
    const { link } = this;
    if (!link || !this.live) return;
    for (const a of link.take()) {
      try {
        this.arrived(a, link);
      } catch (error) {
        // No bytes of the network may end the page's frame.
        this.counts.malformed++;
        this.options.log?.(`internal error: ${error}`);
        link.violated("malformed data");
      }
    }
    if (this.travel?.opened && !this.rejoin) this.broken(Code.Moved, "");
  }

  private arrived(a: Arrival, link: Link): void {
    switch (a.kind) {
      case Arrived.State:
        return this.apply(a.bytes, a.at, link);
      case Arrived.Record:
        return this.applyRecord(a.bytes, link);
      case Arrived.Message:
        if (this.backlog && a.number > 0) {
          this.received = this.before + a.number;
          link.received(this.received, a.size);
        }
        return this.arrivedMessage(a.message);
      case Arrived.Accepted:
        return this.accepted(a.value);
      case Arrived.Received:
        if (this.backlog && !this.backlog.confirm(a.value)) link.violated("server acknowledged messages that were never sent");
        return;
      case Arrived.Closing:
        return this.become({ ...this.present, closingAt: a.at + Math.min(a.value, MAX_CLOSING) / 1e6 });
      case Arrived.Time:
        return this.time.sync.sample(...a.times);
      case Arrived.Epoch:
        return this.epochMoved(a.epoch.tick, this.time.epochMoved(a.epoch));
      case Arrived.Overload:
        this.losses.period(a.sendEvery);
        return this.setOverload(a.level);
      case Arrived.Scale:
        return this.time.rescale(a.scale);
      case Arrived.Inputs:
        return this.inputsReported(a.status);
      case Arrived.Travel:
        return this.startTravel(a.moved);
      case Arrived.Gone:
        return this.ended(a.code, a.text);
    }
  }

  private apply(packet: Uint8Array, at: number, link: Link): void {
    const r = this.replica!.apply(packet);
    if (r.kind === "refused") {
      this.counts.malformed++;
      this.losses.refused();
      if (this.refusals.refused(this.platform.now())) {
        this.counts.fullStates++;
        this.options.log?.(`state packets were refused: ${r.why}`);
        link.requestFullState();
      }
      return;
    }
    this.losses.packet(r);
    if (r.kind !== "applied") {
      if (r.kind === "stale") this.counts.stale++;
      return;
    }
    this.counts.packets++;
    this.appliedState(r);
    const whole = this.snapshots.packet(r.tick, packet.length, at, r.whole);
    if (whole) {
      this.wholeSnapshot(r, whole.at, whole.bytes);
      this.progress(r);
    }
    if (r.digest === "equal") this.verification.done();
    else if (r.digest === "unequal") {
      this.counts.unequal++;
      this.counts.fullStates++;
      link.requestFullState();
      this.verification.done(new NetloopError(Code.Internal, "state differs from the server's"));
    }
  }

  private applyRecord(record: Uint8Array, link: Link): void {
    const r = this.replica!.applyLarge(record);
    if (r.kind === "refused") {
      // Later state depends on this record, and a stream's data cannot be requested again.
      this.counts.malformed++;
      return link.violated(r.why);
    }
    link.recordApplied(r.id);
    this.counts.records++;
    this.appliedState(undefined);
  }

  /** Updates the status from the first state. */
  private progress(r: ApplyResult): void {
    const now = this.present;
    if (now.phase !== "loading") return;
    if (r.left === 0) this.become({ ...CONNECTING, phase: "playing", closingAt: now.closingAt });
    else this.become({ ...now, objects: r.total, loaded: Math.min(r.total, Math.max(now.loaded, r.total - r.left)) });
  }
}

/** The route over the existing connection. */
function routeOver({ conn }: Moving, info: ConnectInfo): Route {
  return { info, candidates: [{ name: "connection", afterMs: 0, dial: async () => conn }] };
}

/** The error of a failed move to another server. */
function failedMove(error: NetloopError): NetloopError {
  return new NetloopError(error.code, `move to another server failed: ${error.message}`);
}

/**
 * The token of an attempt. A client that shows its resume secret needs none, unless its seat is
 * gone.
 */
async function tokenOf(token: ConnectOptions["token"], back: boolean): Promise<string> {
  if (typeof token !== "function") return token ?? "";
  try {
    return await token();
  } catch (error) {
    if (back) return "";
    throw new NetloopError(Code.Unauthenticated, `token: ${error instanceof Error ? error.message : error}`);
  }
}
