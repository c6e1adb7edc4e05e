// One attempt to join a room: connections are raced, and the first one over which the server answers
// is used. The others are closed before the game sees them: the server's tables decide the race, and a
// server admits a client only after the client has accepted them.

import { Code, NetloopError, type Platform } from "../api.js";
import type { Conn, Dial } from "../net/conn.js";
import { Cutter, helloFrame, MAX_FRAME, MAX_HANDSHAKE, type Hello, type Welcome } from "../wire/frames.js";
import { Refusal } from "../wire/refusal.js";
import { Greeting, schemaAccepted } from "./greeting.js";
import { Link, type Traffic } from "./link.js";
import type { Target } from "./travel.js";

/** A conn in the race. */
export interface Candidate {
  name: string;
  dial: Dial;
  /** The delay after the start at which it is tried, unless all before it have failed earlier. */
  afterMs: number;
}

/** The connections to open. */
export interface OpenConfig {
  candidates: readonly Candidate[];
  timeoutMs: number;
  platform: Platform;
}

/** The parameters of an entry. */
export interface RaceConfig extends OpenConfig {
  hello: Hello;
  /** The number of an attempt: each candidate's hello has its own. */
  nextAttempt(): number;
  /** Matches the server's tables with the game's, or throws a NetloopError. */
  adapt(tables: Uint8Array): void;
  traffic: Traffic;
  /** Takes the first connection that is open, and ends the race without a hello. */
  opened?(conn: Conn): void;
}

/** The result of an entry. */
export interface Joined {
  link: Link;
  welcome: Welcome;
  /** The times at which the hello was sent and the welcome has arrived. */
  began: number;
  at: number;
  /** The room of another server that the client has joined by a ticket. */
  to?: Target;
}

/** Enters, or rejects with a NetloopError. An aborted signal closes all open connections. */
export function race(cfg: RaceConfig, signal?: AbortSignal): Promise<Joined> {
  return new Promise((resolve, reject) => new Race(cfg, signal, resolve, reject));
}

/** Waits until the game has admitted the client, and closes the connection otherwise. */
export function decided(link: Link, platform: Platform, timeoutMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = (code: number, text: string) => {
      link.close(Code.Left, "");
      reject(new NetloopError(code, text));
    };
    const timer = platform.setTimeout(() => giveUp(Code.Timeout, "server did not admit the client in time"), Math.max(timeoutMs, 1));
    signal?.addEventListener("abort", () => giveUp(Code.Left, "aborted"));
    link.onDecided((closed) => {
      platform.clearTimeout(timer);
      if (closed) reject(new NetloopError(closed.code, closed.text));
      else resolve();
    });
  });
}

/** Opens a connection without a hello: the first open one is used. */
export function open(cfg: OpenConfig, signal: AbortSignal): Promise<Conn> {
  return new Promise((resolve, reject) => new Race({ ...cfg, opened: resolve } as RaceConfig, signal, () => {}, reject));
}

class Race {
  private aborts = new Map<Candidate, AbortController>();
  private open = new Map<Candidate, Conn>();
  private failures: string[] = [];
  private timers: unknown[] = [];
  private started = 0;
  private winner: Candidate | undefined;
  private done = false;

  constructor(
    private cfg: RaceConfig,
    signal: AbortSignal | undefined,
    private resolve: (e: Joined) => void,
    private reject: (e: NetloopError) => void,
  ) {
    signal?.addEventListener("abort", () => this.fail(Code.Left, "aborted"));
    this.timer(() => this.fail(Code.Timeout, this.why("server did not answer in time")), cfg.timeoutMs);
    for (const c of cfg.candidates.slice(1)) this.timer(() => this.begin(c), c.afterMs);
    if (cfg.candidates.length > 0) this.begin(cfg.candidates[0]!);
    else this.fail(Code.Internal, "no transport is available");
  }

  private timer(fn: () => void, ms: number): void {
    this.timers.push(this.cfg.platform.setTimeout(fn, ms));
  }

  private why(text: string): string {
    return this.failures.length > 0 ? `${text} (${this.failures.join("; ")})` : text;
  }

  private begin(c: Candidate): void {
    if (this.done || this.winner || this.aborts.has(c)) return;
    this.started++;
    const abort = new AbortController();
    this.aborts.set(c, abort);
    c.dial(abort.signal).then(
      (conn) => {
        if (this.done || this.winner) return conn.close(Code.Left, "");
        this.open.set(c, conn);
        if (!this.cfg.opened) return this.greet(c, conn);
        this.select(c);
        this.finish();
        this.cfg.opened(conn);
      },
      (error: unknown) => this.failed(c, error instanceof Error ? error.message : String(error)),
    );
  }

  /** Handles a candidate that failed without an answer of the server. */
  private failed(c: Candidate, why: string): void {
    if (this.done) return;
    if (this.winner === c) return this.fail(Code.Lost, why);
    if (this.winner) return;
    this.open.delete(c);
    this.failures.push(`${c.name}: ${why}`);
    const next = this.cfg.candidates.find((other) => !this.aborts.has(other));
    if (next) this.begin(next);
    else if (this.failures.length === this.started) this.fail(Code.Lost, this.why("server is unreachable"));
  }

  /** Makes the candidate over which the server has answered the winner, and closes the others. */
  private select(c: Candidate): void {
    if (this.winner) return;
    this.winner = c;
    this.closeOthers(Code.Left, c);
  }

  private closeOthers(code: number, but?: Candidate): void {
    for (const [c, abort] of this.aborts) {
      if (c === but) continue;
      abort.abort();
      this.open.get(c)?.close(code, "");
    }
  }

  private finish(): void {
    this.done = true;
    for (const t of this.timers) this.cfg.platform.clearTimeout(t);
  }

  private fail(code: number, text: string, error = new NetloopError(code, text)): void {
    if (this.done) return;
    this.finish();
    // After a Timeout the server keeps a seat that it has resumed; Left would release it.
    this.closeOthers(code);
    this.reject(error);
  }

  private greet(c: Candidate, conn: Conn): void {
    const { hello, platform, traffic } = this.cfg;
    const now = () => platform.now();
    const began = now();
    const cutter = new Cutter();
    const greeting = new Greeting(hello.datagram > 0);
    let link: Link | undefined;
    const refuse = (code: number, text: string, error?: NetloopError) => {
      this.open.delete(c);
      conn.close(code, text);
      this.fail(code, text, error);
    };
    const frame = (f: Uint8Array): boolean => {
      if (link) {
        link.frame(f);
        return !link.ending;
      }
      this.select(c);
      if (this.winner !== c || this.done) return false;
      try {
        const { tables, welcome } = greeting.take(f);
        if (tables) {
          this.cfg.adapt(tables);
          traffic.bytesOut += schemaAccepted.length;
          conn.stream(schemaAccepted.slice());
        } else if (welcome) {
          link = new Link(conn, now, (fn, ms) => platform.setTimeout(fn, ms), traffic, hello.datagram || 1, welcome.datagram || 1);
          this.finish();
          this.resolve({ link, welcome, began, at: now() });
        }
        return true;
      } catch (e) {
        if (e instanceof NetloopError) refuse(e.code, e.message, e);
        else refuse(Code.Protocol, `malformed answer: ${e instanceof Refusal ? e.why : e}`);
        return false;
      }
    };
    const limit = () => (link ? MAX_FRAME : MAX_HANDSHAKE);
    conn.start({
      stream: (b) => {
        traffic.bytesIn += b.length;
        if (this.done && !link) return;
        if (cutter.take(b, limit, frame)) return;
        if (link) link.violated("frame is too long");
        else refuse(Code.Protocol, "frame is too long");
      },
      datagram: (b) => {
        traffic.bytesIn += b.length;
        link?.datagram(b);
      },
      closed: (code, text) => {
        if (link) link.closed(code, text);
        else if (code === Code.Lost) this.failed(c, text);
        else {
          this.select(c);
          if (this.winner === c) this.fail(code, text);
        }
      },
    });
    const { resume } = hello;
    const bytes = helloFrame(resume ? { ...hello, resume: { ...resume, attempt: this.cfg.nextAttempt() } } : hello);
    traffic.bytesOut += bytes.length;
    conn.stream(bytes);
  }
}
