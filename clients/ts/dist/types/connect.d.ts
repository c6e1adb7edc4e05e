import { type Client, type ConnectInfo, type ConnectOptions, type Platform } from "./api.js";
import { type Candidate } from "./session/race.js";
import type { Shape } from "./schema.js";
/** The names of the options in ConnectOptions. */
export declare const OPTIONS = "url info schema room ticket spectate params token protobuf transports timeoutMs reconnect lostAfterMs signal pump simulate onError log platform";
/**
 * Connects to a server, joins its room, and resolves once the game has admitted the client. It
 * rejects with a NetloopError that states why the server or the game refused the client, or how the
 * schemas of different builds differ. The client replaces a connection that breaks later.
 */
export declare function connect<G extends Shape = Shape>(options?: ConnectOptions<G>): Promise<Client<G>>;
/** Connects over the caller's connections, as tests do. */
export declare function join<G extends Shape>(options: ConnectOptions<G>, platform: Platform, ask: () => Promise<ConnectInfo>, candidates: (info: ConnectInfo) => readonly Candidate[]): Promise<Client<G>>;
