// A client's bookkeeping of received state, beside the state itself.

import { Code, NetloopError } from "../api.js";
import type { Link } from "./link.js";

/** Decides when a client that refuses state packets asks for the full state. */
export class Refusals {
  private count = 0;
  private from = 0;
  private wait = 0;

  /** Records a refused packet, and reports whether to ask. */
  refused(now: number): boolean {
    if (++this.count < 3 || now < this.from) return false;
    const wait = now - this.from > 60_000 ? 1000 : Math.max(2 * this.wait, 1000);
    this.wait = Math.min(wait, 60_000);
    this.count = 0;
    this.from = now + this.wait;
    return true;
  }
}

const VERIFY_TIMEOUT = 10_000;
/** A server may ignore a client that asks more than once a second. */
const VERIFY_AGAIN = 1250;
const VERIFY_DIGESTS = 60;

/** A comparison of the client's state with the server's, under way. */
export class Verification {
  private waiting: { resolve: () => void; reject: (e: NetloopError) => void }[] = [];
  private deadline = 0;
  private next = 0;

  ask(now: number): Promise<void> {
    if (this.waiting.length === 0) this.deadline = now + VERIFY_TIMEOUT;
    return new Promise((resolve, reject) => this.waiting.push({ resolve, reject }));
  }

  /** Repeats the question to the server, or gives up. */
  step(now: number, link: Link): void {
    if (this.waiting.length === 0) return;
    if (now >= this.deadline) this.done(new NetloopError(Code.Timeout, "no digest could be compared in time"));
    else if (now >= this.next) {
      this.next = now + VERIFY_AGAIN;
      link.requestDigest(VERIFY_DIGESTS);
    }
  }

  restart(): void {
    this.next = 0;
  }

  done(error?: NetloopError): void {
    for (const w of this.waiting.splice(0)) {
      if (error) w.reject(error);
      else w.resolve();
    }
  }
}

/**
 * The snapshot that is arriving, packet by packet, and the number of snapshots in the last second.
 */
export class Snapshots {
  complete = 0;
  private tick = 0;
  private bytes = 0;
  private at = 0;
  private recent: number[] = [];

  /** Takes a packet; returns the arrival and size of the snapshot that it completes. */
  packet(tick: number, bytes: number, at: number, complete: boolean): { at: number; bytes: number } | undefined {
    if (tick !== this.tick) {
      this.tick = tick;
      this.bytes = this.at = 0;
    }
    this.bytes += bytes;
    this.at = Math.max(this.at, at);
    if (!complete) return undefined;
    this.complete++;
    this.recent.push(at);
    this.rate(at);
    return { at: this.at, bytes: this.bytes };
  }

  /** The number of snapshots in the last second. */
  rate(now: number): number {
    while (this.recent.length > 0 && (now - this.recent[0]! > 1000 || this.recent.length > 1000)) this.recent.shift();
    return this.recent.length;
  }

  restart(): void {
    this.tick = 0;
  }
}
