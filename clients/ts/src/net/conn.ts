// A Conn transfers the bytes of a connection: one reliable stream, and datagrams that may be lost.
// docs/WIRE.md applies to all transports alike.

import type { Transport } from "../api.js";

/** The callbacks of a connection. It calls none of them before start, and none after closed. */
export interface ConnEvents {
  stream(bytes: Uint8Array): void;
  datagram(bytes: Uint8Array): void;
  /** Reports the end of the connection: with the code and text of the peer, or Code.Lost. */
  closed(code: number, text: string): void;
}

/** An open connection. */
export interface Conn {
  readonly transport: Transport;
  /** Enables the callbacks, and first delivers the data that arrived before. */
  start(events: ConnEvents): void;
  /** Sends bytes of the stream; the caller must not reuse them. */
  stream(bytes: Uint8Array): void;
  /** Sends a datagram, or drops it if the link is behind. The caller must not reuse the bytes. */
  datagram(bytes: Uint8Array): void;
  /** Ends the connection at once. */
  close(code: number, text: string): void;
}

/** Opens a connection, or rejects. A connection that opens after an abort is closed at once. */
export type Dial = (signal: AbortSignal) => Promise<Conn>;

/** The maximum number of bytes that wait for start. */
const MAX_EARLY = 512 << 10;

/** The base of all connections: buffers data that arrives before start. */
export abstract class Base implements Conn {
  abstract readonly transport: Transport;
  private events: ConnEvents | undefined;
  private early: ((e: ConnEvents) => void)[] = [];
  private bytes = 0;
  protected ended = false;

  start(events: ConnEvents): void {
    this.events = events;
    for (const tell of this.early.splice(0)) tell(events);
  }

  protected tell(size: number, fn: (e: ConnEvents) => void): void {
    if (this.events) fn(this.events);
    else if ((this.bytes += size) <= MAX_EARLY) this.early.push(fn);
  }

  protected end(code: number, text: string): void {
    if (this.ended) return;
    this.ended = true;
    this.tell(0, (e) => e.closed(code, text));
  }

  abstract stream(bytes: Uint8Array): void;
  abstract datagram(bytes: Uint8Array): void;
  abstract close(code: number, text: string): void;
}
