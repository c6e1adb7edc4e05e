import { type ConnectInfo } from "../api.js";
import type { Conn } from "../net/conn.js";
import type { Moved } from "../wire/frames.js";
/** The time limit of opening the connection, and then of the other room's welcome. */
export declare const TRAVEL_LIMIT = 5000;
/** A client is sent to at most this many servers in a sequence. */
export declare const MAX_HOPS = 3;
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
export declare function targetOf({ ticket, to }: Moved, here: ConnectInfo): Target;
/** Closes a connection that is not used, also one that is still being opened. */
export declare function discard(conn: Conn | Promise<Conn> | undefined): void;
