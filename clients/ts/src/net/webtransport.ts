// The preferred transport: QUIC on the game's own port, with datagrams that no lost packet delays.

import { Code, type ConnectInfo, type Platform } from "../api.js";
import { Base, type Conn } from "./conn.js";

type Readable = ReadableStream<Uint8Array>;
type Writable = WritableStream<Uint8Array>;

/** The used parts of WebTransport: older TypeScript libraries lack its types. */
interface Session {
  readonly ready: Promise<void>;
  readonly closed: Promise<{ closeCode?: number; reason?: string }>;
  readonly datagrams: { readonly readable: Readable; readonly writable?: Writable; createWritable?(): Writable; incomingHighWaterMark?: number };
  createBidirectionalStream(): Promise<{ readable: Readable; writable: Writable }>;
  close(info?: { closeCode?: number; reason?: string }): void;
}

/** The maximum number of datagrams that wait for a busy page: those of about a second. */
const MAX_ARRIVED = 128;
/** The maximum number of datagrams that wait for the browser: further ones would be sent too late. */
const MAX_WAITING = 8;

class WebTransportConn extends Base {
  readonly transport = "webtransport";
  private frames: WritableStreamDefaultWriter<Uint8Array>;
  private datagrams: WritableStreamDefaultWriter<Uint8Array>;
  private waiting = 0;

  constructor(
    private session: Session,
    stream: { readable: Readable; writable: Writable },
  ) {
    super();
    const d = session.datagrams;
    d.incomingHighWaterMark = MAX_ARRIVED; // The browser drops more than a few by default.
    this.frames = stream.writable.getWriter();
    this.datagrams = (d.createWritable ? d.createWritable() : d.writable!).getWriter();
    void this.read(stream.readable, (b) => this.tell(b.length, (e) => e.stream(b)));
    void this.read(d.readable, (b) => this.tell(b.length, (e) => e.datagram(b)));
    session.closed.then(
      (c) => this.end(c.closeCode || Code.Lost, c.closeCode ? (c.reason ?? "") : "WebTransport session was closed"),
      (error) => this.end(Code.Lost, `WebTransport session is broken: ${error?.message ?? error}`),
    );
    this.frames.closed.catch(() => {});
    this.datagrams.closed.catch(() => {});
  }

  /** Reads until the end, which the session reports. */
  private async read(from: Readable, take: (b: Uint8Array) => void): Promise<void> {
    try {
      const reader = from.getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        if (value.length > 0 && !this.ended) take(value);
      }
    } catch {
      // The session's end carries the reason.
    }
  }

  stream(bytes: Uint8Array): void {
    if (!this.ended) this.frames.write(bytes).catch(() => {});
  }

  datagram(bytes: Uint8Array): void {
    if (this.ended || this.waiting >= MAX_WAITING) return;
    this.waiting++;
    const sent = () => void this.waiting--;
    this.datagrams.write(bytes).then(sent, sent);
  }

  close(code: number, text: string): void {
    this.ended = true;
    try {
      this.session.close({ closeCode: code, reason: text });
    } catch {
      // The session is closed already.
    }
  }
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

/** Opens a WebTransport session and its stream. */
export async function dialWebTransport(platform: Platform, info: ConnectInfo, signal: AbortSignal): Promise<Conn> {
  const WebTransport = platform.WebTransport as { new (url: string, options: object): Session } | undefined;
  if (!WebTransport) throw new Error("WebTransport is not available");
  const hashes = info.certificateHashes ?? [];
  const session = new WebTransport(`https://${info.address}${info.path}`, {
    congestionControl: "low-latency",
    requireUnreliable: true,
    ...(hashes.length > 0 && { serverCertificateHashes: hashes.map((h) => ({ algorithm: "sha-256", value: bytesOf(h) })) }),
  });
  session.closed.catch(() => {});
  const leave = () => session.close();
  signal.addEventListener("abort", leave);
  try {
    await session.ready;
    signal.throwIfAborted();
    const stream = await session.createBidirectionalStream();
    signal.throwIfAborted();
    return new WebTransportConn(session, stream);
  } catch (error) {
    leave();
    throw error;
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
