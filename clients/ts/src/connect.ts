import type { Client, ConnectOptions } from "./api.js";
import { Code, NetloopError } from "./api.js";
import type { Shape } from "./schema.js";

/**
 * Connects to a server, joins its room, and resolves once the game has let the client in. A
 * NetloopError says why the server or the game did not, or in what a server of another build does
 * not fit. A connection that breaks later the client makes anew.
 */
export function connect<G extends Shape = Shape>(options: ConnectOptions<G> = {}): Promise<Client<G>> {
  return Promise.reject(new NetloopError(Code.Internal, `no transport for ${options.url ?? "this page"}`));
}
