// A move to another server: the client opens a connection to that server while it plays on, and
// leaves its room when the connection is open. docs/WIRE.md has the rules.

import { Code, type ConnectInfo } from "../api.js";
import type { Conn } from "../net/conn.js";
import type { Moved } from "../wire/frames.js";

/** The time limit of opening the connection, and then of the other room's welcome. */
export const TRAVEL_LIMIT = 5000;
/** A client is sent to at most this many servers in a sequence. */
export const MAX_HOPS = 3;

/** A room of another server: the ticket of a seat, and the description of the server. */
export interface Target {
  ticket: string;
  info: ConnectInfo;
}

/** A connection to another server that is being opened, or is open. */
export interface Travel extends Target {
  conn: Promise<Conn>;
  opened: boolean;
  abort: AbortController;
}

/**
 * The target of a move, by the first address of each carrier that a page can use. An address
 * without a scheme or a path has those of the server before.
 */
export function targetOf({ ticket, to }: Moved, here: ConnectInfo): Target {
  const [direct, socket] = ["webtransport", "websocket"].map((carrier) => to?.find((a) => a.carrier === carrier));
  const [, address, path] = /^(?:https:\/\/)?([^/]*)(.*)/.exec(direct?.addr ?? "")!;
  const url = socket?.addr;
  const scheme = (here.webSocket ?? "wss:").split("//")[0];
  const info: ConnectInfo = {
    ...here,
    address: address!,
    path: path || here.path,
    certificateHashes: direct?.hashes.map((h) => btoa(String.fromCharCode(...h))),
    webSocket: url && (url.includes("://") ? url : `${scheme}//${url}${here.path}`),
    refused: undefined,
  };
  return { ticket, info };
}

/** Closes a connection that is not used, also one that is still being opened. */
export function discard(conn: Conn | Promise<Conn> | undefined): void {
  void Promise.resolve(conn).then((c) => c?.close(Code.Left, ""), () => {});
}
