import { type Client, type ConnectInfo, type ConnectOptions, type Platform } from "./api.js";
import type { Contender } from "./session/entry.js";
import type { Shape } from "./schema.js";
/** The names of ConnectOptions. */
export declare const OPTIONS = "url info schema room ticket spectate params token protobuf transports timeoutMs reconnect lostAfterMs pump simulate onError log platform";
/**
 * Connects to a server, joins its room, and resolves once the game has let the client in. A
 * NetloopError says why the server or the game did not, or in what a server of another build does
 * not fit. A connection that breaks later the client makes anew.
 */
export declare function connect<G extends Shape = Shape>(options?: ConnectOptions<G>): Promise<Client<G>>;
/** Connects over carriers of the caller's own, as tests do. */
export declare function join<G extends Shape>(options: ConnectOptions<G>, platform: Platform, ask: () => Promise<ConnectInfo>, contenders: (info: ConnectInfo) => readonly Contender[]): Promise<Client<G>>;
