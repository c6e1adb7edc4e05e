// A connection with impairments: latency and jitter each way, and lost datagrams. The stream
// keeps its order.

import type { Platform, Simulation, Transport } from "../api.js";
import type { Conn, ConnEvents } from "./conn.js";

export class ImpairedConn implements Conn {
  readonly transport: Transport;
  private until = { in: 0, out: 0 };

  constructor(
    private inner: Conn,
    private platform: Platform,
    private how: () => Simulation,
  ) {
    this.transport = inner.transport;
  }

  private later(fn: () => void, datagram: boolean, way: "in" | "out"): void {
    const { latencyMs = 0, jitterMs = 0, loss = 0 } = this.how();
    const p = this.platform;
    const now = p.now();
    if (datagram && loss > 0 && p.random() < loss) return;
    let at = now + latencyMs + jitterMs * p.random();
    if (!datagram) at = this.until[way] = Math.max(at, this.until[way]);
    if (at <= now) fn();
    else p.setTimeout(fn, at - now);
  }

  start(e: ConnEvents): void {
    this.inner.start({
      stream: (b) => this.later(() => e.stream(b), false, "in"),
      datagram: (b) => this.later(() => e.datagram(b), true, "in"),
      closed: (code, text) => this.later(() => e.closed(code, text), false, "in"),
    });
  }

  stream(b: Uint8Array): void {
    this.later(() => this.inner.stream(b), false, "out");
  }

  datagram(b: Uint8Array): void {
    this.later(() => this.inner.datagram(b), true, "out");
  }

  close(code: number, text: string): void {
    this.inner.close(code, text);
  }
}
