// A connection without a network, for tests: two ends, each of which delivers its sent data to the
// other on the test's command.

import { Code } from "../api.js";
import { Base } from "./conn.js";

export class MemoryConn extends Base {
  readonly transport = "memory";
  peer!: MemoryConn;
  private queue: (() => void)[] = [];
  /** The code and text with which this end was closed. */
  closedWith: { code: number; text: string } | undefined;

  /** Both ends of a connection. */
  static pair(): [MemoryConn, MemoryConn] {
    const a = new MemoryConn();
    const b = new MemoryConn();
    a.peer = b;
    b.peer = a;
    return [a, b];
  }

  stream(bytes: Uint8Array): void {
    this.queue.push(() => this.peer.tell(bytes.length, (e) => e.stream(bytes)));
  }

  datagram(bytes: Uint8Array): void {
    this.queue.push(() => this.peer.tell(bytes.length, (e) => e.datagram(bytes)));
  }

  close(code: number, text: string): void {
    if (this.closedWith) return;
    this.closedWith = { code, text };
    this.ended = true;
    this.queue.push(() => this.peer.end(code, text));
  }

  /** Delivers the data that this end has sent. */
  deliver(): void {
    for (const fn of this.queue.splice(0)) fn();
  }

  /** Breaks the connection without a close frame. */
  cut(): void {
    this.queue = [];
    this.end(Code.Lost, "cut");
    this.peer.end(Code.Lost, "cut");
  }
}
