// A carrier moves the bytes of a connection: one reliable stream, and datagrams that may be lost.
// docs/WIRE.md is the same on all of them.

import type { Transport } from "../api.js";

/** What a carrier tells. It calls none of them before start, and none after closed. */
export interface CarrierEvents {
  stream(bytes: Uint8Array): void;
  datagram(bytes: Uint8Array): void;
  /** The connection is gone: with the code and text of the peer, or Code.Lost. */
  closed(code: number, text: string): void;
}

/** A connection that is open. */
export interface Carrier {
  readonly transport: Transport;
  /** Begins to tell; what has come before is told now. */
  start(events: CarrierEvents): void;
  /** Sends bytes of the stream, which the caller does not use again. */
  stream(bytes: Uint8Array): void;
  /** Sends a datagram, or drops it if the link is behind. The caller does not use it again. */
  datagram(bytes: Uint8Array): void;
  /** Ends the connection at once. */
  close(code: number, text: string): void;
}

/** Opens a connection, or rejects. An aborted one is closed whenever it comes. */
export type Dial = (signal: AbortSignal) => Promise<Carrier>;

/** What comes before start waits, up to so many bytes. */
const MAX_EARLY = 512 << 10;

/** Keeps what comes before start: the base of all carriers. */
export abstract class Base implements Carrier {
  abstract readonly transport: Transport;
  private events: CarrierEvents | undefined;
  private early: ((e: CarrierEvents) => void)[] = [];
  private bytes = 0;
  protected ended = false;

  start(events: CarrierEvents): void {
    this.events = events;
    for (const tell of this.early.splice(0)) tell(events);
  }

  protected tell(size: number, fn: (e: CarrierEvents) => void): void {
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
