// A client with the test as its server: transports in memory, and a clock that only the test advances.

import type { Client, ConnectInfo, ConnectOptions, Platform } from "../src/api.js";
import { join } from "../src/connect.js";
import { MemoryConn } from "../src/net/memory.js";
import type { Candidate } from "../src/session/race.js";
import { Cutter, frameOf, Kind, MAX_HANDSHAKE, parseFrame } from "../src/wire/frames.js";
import { Walker, Writer } from "../src/wire/protobuf.js";
import { example } from "./page.js";

export const NS = 1e6;

/** A clock and timers that the test controls. */
export class Clock {
  at = 1000;
  private timers: { at: number; fn: () => void }[] = [];

  readonly platform: Platform = {
    WebTransport: undefined,
    WebSocket: undefined,
    fetch: () => Promise.reject(new Error("there is no network")),
    now: () => this.at,
    setTimeout: (fn, ms) => {
      const timer = { at: this.at + ms, fn };
      this.timers.push(timer);
      return timer;
    },
    clearTimeout: (timer) => {
      this.timers = this.timers.filter((t) => t !== timer);
    },
    random: () => 0.5,
  };

  /** Advances the clock, and runs the due timers. */
  pass(ms: number): void {
    const end = this.at + ms;
    for (;;) {
      const next = this.timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.timers = this.timers.filter((t) => t !== next);
      this.at = Math.max(this.at, next.at);
      next.fn();
    }
    this.at = end;
  }
}

/** Lets promises settle. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

/** An address of another server. */
export interface To {
  carrier: string;
  addr: string;
  hashes?: Uint8Array[];
}

function moveOf(ticket: string, to?: readonly To[]): Uint8Array {
  const all = new Writer();
  for (const { carrier, addr, hashes } of to ?? []) {
    const a = new Writer().text(1, carrier).text(2, addr).text(3, "name.example");
    for (const h of hashes ?? []) a.sized(4, h);
    all.sized(1, a.done());
  }
  const m = new Writer().text(1, ticket);
  return (to ? m.sized(2, all.done()) : m).done();
}

/** The frames that a server writes. */
export const say = {
  tables: (tables: Uint8Array) => frameOf(Kind.SchemaPart, new Writer().number(1, tables.length).body(2, tables).done()),
  refused: (code: number, text: string) => frameOf(Kind.Refused, new Writer().number(1, code).text(2, text).done()),
  accepted: (received = 0) => frameOf(Kind.Accepted, new Writer().number(1, received).done()),
  received: (n: number) => frameOf(Kind.MessagesReceived, new Writer().number(1, n).done()),
  close: (code: number, text: string) => frameOf(Kind.Close, new Writer().number(1, code).text(2, text).done()),
  moved: (ticket: string, to?: readonly To[]) => frameOf(Kind.Moved, moveOf(ticket, to)),
  refusedMove: (ticket: string, to: readonly To[]) => frameOf(Kind.Refused, new Writer().number(1, 22).text(2, "elsewhere").sized(3, moveOf(ticket, to)).done()),
  epoch: (tick: number, at: number) => frameOf(Kind.Epoch, new Writer().number(1, tick).number(2, Math.round(at * NS)).done()),
  message: (m: { method: number; stage?: number; call?: number; reply?: boolean; code?: number; text?: string; payload?: Uint8Array; tick?: number }) =>
    frameOf(Kind.Message, messageOf(m)),
  welcome: (w: { id?: number; instance?: string; secret?: string; resumed?: boolean; keepMs?: number; server?: number; datagram?: number; epoch?: { tick: number; at: number }; handles?: Uint8Array; rate?: number }) =>
    frameOf(
      Kind.Welcome,
      new Writer()
        .number(1, 1)
        .number(3, w.id ?? 7)
        .text(4, w.instance ?? "one")
        .text(5, "lobby")
        .body(6, new Writer().number(1, w.rate ?? 60).number(2, 1).done())
        .body(7, new Writer().number(1, w.rate ?? 60).number(2, 1).done())
        .number(8, 1)
        .body(9, new Writer().number(1, w.epoch?.tick ?? 300).number(2, Math.round((w.epoch?.at ?? 5000) * NS)).done())
        .number(10, Math.round((w.server ?? 5000) * NS))
        .text(13, w.secret ?? "")
        .number(14, (w.keepMs ?? 0) * NS)
        .number(15, w.resumed ?? false)
        .number(16, w.datagram ?? 0)
        .number(18, true)
        .body(19, w.handles ?? new Uint8Array(0))
        .done(),
    ),
};

export function messageOf(m: Parameters<typeof say.message>[0]): Uint8Array {
  return new Writer()
    .number(1, m.method)
    .number(2, m.stage ?? 0)
    .number(3, m.call ?? 0)
    .number(4, m.reply ?? false)
    .number(5, m.code ?? 0)
    .text(6, m.text ?? "")
    .body(7, m.payload ?? new Uint8Array(0))
    .number(8, m.tick ?? 0)
    .done();
}

/** A state packet without records. */
export function emptyPacket(tick: number, id: number): Uint8Array {
  const w = new Writer();
  w.raw(Uint8Array.of(3, 7 << 5, 0, 1, tick & 255, (tick >> 8) & 255, (tick >> 16) & 255, 0));
  w.uvarint(id);
  w.raw(Uint8Array.of(1));
  return w.done();
}

/** The fields of a message, by their numbers: numbers or bytes, the last of several. */
export function fields(b: Uint8Array): Record<number, number | Uint8Array> {
  const all: Record<number, number | Uint8Array> = {};
  const w = new Walker(b, Array(32).fill(3));
  while (w.next()) all[w.num] = w.body.length > 0 && (b[w.start] & 7) === 2 ? w.body.slice() : (b[w.start] & 7) === 2 ? new Uint8Array(0) : w.value;
  return all;
}

/** The server's end of a connection. */
export class Peer {
  /** The frames that the client has sent, as kinds and bodies. */
  frames: { kind: Kind; body: Uint8Array }[] = [];
  datagrams: Uint8Array[] = [];
  closed: { code: number; text: string } | undefined;
  private cutter = new Cutter();
  private number = 0;

  constructor(
    readonly client: MemoryConn,
    readonly server: MemoryConn,
    /** The description of the server that the client has dialed. */
    readonly info: ConnectInfo,
  ) {
    server.start({
      stream: (b) => {
        this.cutter.take(b, () => MAX_HANDSHAKE, (f) => {
          this.frames.push(parseFrame(f)!);
          return true;
        });
      },
      datagram: (b) => this.datagrams.push(b),
      closed: (code, text) => (this.closed = { code, text }),
    });
  }

  /** Reads the data that the client has sent. */
  hear(): this {
    this.client.deliver();
    return this;
  }

  send(...frames: Uint8Array[]): void {
    for (const f of frames) this.server.stream(f);
    this.server.deliver();
  }

  /** Sends a datagram with a number of its own. */
  datagram(fill: (w: Writer) => void, number = ++this.number): void {
    const w = new Writer().number(1, number);
    fill(w);
    this.server.datagram(w.done());
    this.server.deliver();
  }

  state(tick: number, id: number): void {
    this.datagram((w) => w.sized(5, emptyPacket(tick, id)));
  }

  kinds(): Kind[] {
    return this.frames.map((f) => f.kind);
  }

  last(kind: Kind): Record<number, number | Uint8Array> | undefined {
    const all = this.frames.filter((f) => f.kind === kind);
    return all.length > 0 ? fields(all[all.length - 1].body) : undefined;
  }
}

/** The tables of the page: a class "pos" with X, and an RPC "hop" with N. */
export function pageTables(): Uint8Array {
  const part = example("frame-schema-part");
  return part.slice(part.length - 48);
}

export class Rig {
  readonly clock = new Clock();
  /** The server's ends, in the order of the dials. */
  readonly peers: Peer[] = [];
  errors: string[] = [];
  client!: Client<any>;
  /** Decides on a dial: the connection opens when the promise is settled. */
  reach: (info: ConnectInfo, name: string) => Promise<void> = async () => {};

  constructor(private names: readonly string[] = ["memory"]) {}

  get peer(): Peer {
    return this.peers[this.peers.length - 1];
  }

  readonly info: ConnectInfo = { address: "", path: "", schema: { name: "wire", major: 3, minor: 0 } };

  /** Begins to connect. */
  dial(options: ConnectOptions<any> = {}): Promise<Client<any>> {
    const candidates = (info: ConnectInfo) => this.names.map(
      (name, i): Candidate => ({
        name,
        afterMs: i * 500,
        dial: async () => {
          await this.reach(info, name);
          const [client, server] = MemoryConn.pair();
          this.peers.push(new Peer(client, server, info));
          return client;
        },
      }),
    );
    const onError = (error: unknown, where: string) => this.errors.push(`${where}: ${error}`);
    return join({ pump: false, onError, ...options }, this.clock.platform, async () => this.info, candidates);
  }

  /** Greets the client over its newest connection, up to the welcome. */
  async greet(welcome: Parameters<typeof say.welcome>[0] = {}, tables = pageTables()): Promise<void> {
    await settle();
    this.peer.hear().send(say.tables(tables));
    this.peer.hear().send(say.welcome(welcome));
    await settle();
  }

  /** Connects, and plays on from the first snapshot. */
  async play(options: ConnectOptions<any> = {}, welcome: Parameters<typeof say.welcome>[0] = {}, tables = pageTables()): Promise<Client<any>> {
    const dialled = this.dial(options);
    await this.greet(welcome, tables);
    this.peer.send(say.accepted());
    this.client = await dialled;
    this.peer.state(300, 1);
    this.step();
    return this.client;
  }

  /** Steps a frame, and passes the sent data to the server. */
  step(ms = 16, times = 1): void {
    for (let i = 0; i < times; i++) {
      this.clock.pass(ms);
      this.client.step();
      this.peer.hear();
    }
  }
}
