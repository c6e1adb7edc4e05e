// The transport for browsers without WebTransport and networks without UDP: one TCP connection, on
// which datagrams are messages that are dropped rather than queued when the socket is behind.

import { Code, type Platform } from "../api.js";
import { Base, type Conn } from "./conn.js";

const SUBPROTOCOL = "netloop.1";
const STREAM = 0;
const DATAGRAM = 1;
/** With more bytes than this in the socket's buffer, a datagram would arrive too late. */
const BEHIND = 8 << 10;
/** WebSocket close codes from here on carry netloop's codes. */
const OWN = 4000;

class WebSocketConn extends Base {
  readonly transport = "websocket";

  constructor(private socket: WebSocket) {
    super();
    socket.onmessage = (m) => this.message(m.data);
    socket.onclose = (e) => {
      const own = e.code >= OWN && e.code < OWN + 1000;
      const reason = e.reason && `: ${e.reason}`;
      if (own) this.end(e.code - OWN, e.reason);
      else this.end(Code.Lost, `WebSocket was closed (${e.code}${reason})`);
    };
  }

  private message(data: unknown): void {
    if (!(data instanceof ArrayBuffer) || data.byteLength === 0) return;
    const b = new Uint8Array(data);
    const body = b.subarray(1);
    if (b[0] === STREAM) this.tell(body.length, (e) => e.stream(body));
    else if (b[0] === DATAGRAM) this.tell(body.length, (e) => e.datagram(body));
  }

  private send(kind: number, bytes: Uint8Array): void {
    if (this.ended || this.socket.readyState !== 1) return;
    const b = new Uint8Array(bytes.length + 1);
    b[0] = kind;
    b.set(bytes, 1);
    this.socket.send(b);
  }

  stream(bytes: Uint8Array): void {
    this.send(STREAM, bytes);
  }

  datagram(bytes: Uint8Array): void {
    if (this.socket.bufferedAmount <= BEHIND) this.send(DATAGRAM, bytes);
  }

  close(code: number, text: string): void {
    this.ended = true;
    // A reason has at most 123 bytes; the frame before carries the whole text.
    this.socket.close(OWN + Math.min(code, 999), text.replace(/[^\x20-\x7e]/g, "?").slice(0, 123));
  }
}

/** Opens a WebSocket. */
export function dialWebSocket(platform: Platform, url: string, signal: AbortSignal): Promise<Conn> {
  return new Promise((resolve, reject) => {
    const WebSocket = platform.WebSocket as { new (url: string, protocols: string): WebSocket } | undefined;
    if (!WebSocket) throw new Error("WebSocket is not available");
    const socket = new WebSocket(url, SUBPROTOCOL);
    socket.binaryType = "arraybuffer";
    const leave = () => {
      socket.onopen = socket.onclose = null;
      socket.close();
      reject(new Error("aborted"));
    };
    if (signal.aborted) return leave();
    signal.addEventListener("abort", leave);
    // Node reports only an error, browsers report an error and a close without further information.
    socket.onerror = socket.onclose = () => {
      signal.removeEventListener("abort", leave);
      reject(new Error("connection failed"));
    };
    socket.onopen = () => {
      signal.removeEventListener("abort", leave);
      resolve(new WebSocketConn(socket));
    };
  });
}
