// Connects a page to a server: fetches the server's description, races the transports, and waits
// until the game has admitted the client.

import { Code, NetloopError, type Client, type ConnectInfo, type ConnectOptions, type Platform, type Simulation } from "./api.js";
import { ClientImpl } from "./client.js";
import type { Route } from "./connection.js";
import { known } from "./names.js";
import type { Conn, Dial } from "./net/conn.js";
import { dialWebSocket } from "./net/websocket.js";
import { dialWebTransport } from "./net/webtransport.js";
import { ImpairedConn } from "./net/impaired.js";
import { decided, type Candidate } from "./session/race.js";
import type { Shape } from "./schema.js";

const TIMEOUT = 10_000;
/** The names of the options in ConnectOptions. */
export const OPTIONS = "url info schema room ticket spectate params token protobuf transports timeoutMs reconnect lostAfterMs signal pump simulate onError log platform";
/** The time that WebTransport has before WebSocket is tried as well. */
const HEAD_START = 500;

/**
 * Connects to a server, joins its room, and resolves once the game has admitted the client. It
 * rejects with a NetloopError that states why the server or the game refused the client, or how the
 * schemas of different builds differ. The client replaces a connection that breaks later.
 */
export function connect<G extends Shape = Shape>(options: ConnectOptions<G> = {}): Promise<Client<G>> {
  const platform = surroundings(options.platform);
  const ask = options.info ? async () => options.info! : () => infoOf(options.url ?? "/connect.json", platform);
  return join(options, platform, ask, (info) => candidatesOf(info, options, platform));
}

/** Connects over the caller's connections, as tests do. */
export async function join<G extends Shape>(
  options: ConnectOptions<G>,
  platform: Platform,
  ask: () => Promise<ConnectInfo>,
  candidates: (info: ConnectInfo) => readonly Candidate[],
): Promise<Client<G>> {
  for (const name of Object.keys(options)) known("option of connect", name, OPTIONS.split(" "));
  let simulation: Simulation = options.simulate ?? {};
  const impaired = (dial: Dial): Dial => {
    const impair = (c: Conn) => new ImpairedConn(c, platform, () => simulation);
    return (signal) => dial(signal).then(impair);
  };
  let info: ConnectInfo | undefined;
  const route = async (known?: ConnectInfo): Promise<Route> => {
    let found = known ?? info;
    try {
      if (!known) found = info = await ask(); // For each attempt: a restarted server has another certificate.
    } catch (error) {
      if (!found) throw error;
    }
    return { info: found!, candidates: candidates(found!).map((c) => ({ ...c, dial: impaired(c.dial) })) };
  };
  const deadline = platform.now() + (options.timeoutMs ?? TIMEOUT);
  const left = () => Math.max(deadline - platform.now(), 1);
  const { signal } = options;
  const { info: first } = await route();
  if (signal?.aborted) throw new NetloopError(Code.Left, "aborted");
  const client = new ClientImpl(options, platform, route, first, (how) => void (simulation = how));
  const entered = await client.open(left(), signal);
  client.enter(entered);
  await decided(entered.link, platform, left(), signal);
  client.begin();
  signal?.addEventListener("abort", () => client.close());
  return client as unknown as Client<G>;
}

function surroundings(own: Partial<Platform> = {}): Platform {
  const g = globalThis as any;
  return {
    WebTransport: g.WebTransport,
    WebSocket: g.WebSocket,
    fetch: g.fetch?.bind(g),
    now: () => performance.now(),
    setTimeout: (fn, ms) => setTimeout(fn, ms),
    clearTimeout: (t) => clearTimeout(t as any),
    random: () => Math.random(),
    ...own,
  };
}

/** Fetches the server's description. */
async function infoOf(url: string | URL, platform: Platform): Promise<ConnectInfo> {
  let info: ConnectInfo;
  try {
    const response = await platform.fetch(url, { cache: "no-store" });
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    info = (await response.json()) as ConnectInfo;
  } catch (error) {
    throw new NetloopError(Code.Lost, `${url} cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  if (typeof info?.address !== "string" || typeof info.schema?.name !== "string") {
    throw new NetloopError(Code.Protocol, `${url} does not describe a netloop server`);
  }
  return info;
}

function candidatesOf(info: ConnectInfo, options: ConnectOptions<any>, platform: Platform): Candidate[] {
  const wanted = options.transports ?? ["webtransport", "websocket"];
  const list: Candidate[] = [];
  if (wanted.includes("webtransport") && platform.WebTransport && info.address) {
    list.push({ name: "WebTransport", afterMs: 0, dial: (signal) => dialWebTransport(platform, info, signal) });
  }
  const { webSocket } = info;
  if (wanted.includes("websocket") && platform.WebSocket && webSocket) {
    list.push({ name: "WebSocket", afterMs: HEAD_START, dial: (signal) => dialWebSocket(platform, webSocket, signal) });
  }
  return list;
}
