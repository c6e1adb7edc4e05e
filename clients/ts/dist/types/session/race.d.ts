import { type Platform } from "../api.js";
import type { Conn, Dial } from "../net/conn.js";
import { type Hello, type Welcome } from "../wire/frames.js";
import { Link, type Traffic } from "./link.js";
import type { Target } from "./travel.js";
/** A conn in the race. */
export interface Candidate {
    name: string;
    dial: Dial;
    /** The delay after the start at which it is tried, unless all before it have failed earlier. */
    afterMs: number;
}
/** The connections to open. */
export interface OpenConfig {
    candidates: readonly Candidate[];
    timeoutMs: number;
    platform: Platform;
}
/** The parameters of an entry. */
export interface RaceConfig extends OpenConfig {
    hello: Hello;
    /** The number of an attempt: each candidate's hello has its own. */
    nextAttempt(): number;
    /** Matches the server's tables with the game's, or throws a NetloopError. */
    adapt(tables: Uint8Array): void;
    traffic: Traffic;
    /** Takes the first connection that is open, and ends the race without a hello. */
    opened?(conn: Conn): void;
}
/** The result of an entry. */
export interface Joined {
    link: Link;
    welcome: Welcome;
    /** The times at which the hello was sent and the welcome has arrived. */
    began: number;
    at: number;
    /** The room of another server that the client has joined by a ticket. */
    to?: Target;
}
/** Enters, or rejects with a NetloopError. An aborted signal closes all open connections. */
export declare function race(cfg: RaceConfig, signal?: AbortSignal): Promise<Joined>;
/** Waits until the game has admitted the client, and closes the connection otherwise. */
export declare function decided(link: Link, platform: Platform, timeoutMs: number, signal?: AbortSignal): Promise<void>;
/** Opens a connection without a hello: the first open one is used. */
export declare function open(cfg: OpenConfig, signal: AbortSignal): Promise<Conn>;
