import type { Dial } from "../net/conn.js";
import { type Hello, type Welcome } from "../wire/frames.js";
import { Link, type Traffic } from "./link.js";
/** A conn in the race. */
export interface Candidate {
    name: string;
    dial: Dial;
    /** The delay after the start at which it is tried, unless all before it have failed earlier. */
    afterMs: number;
}
/** The parameters of an entry. */
export interface RaceConfig {
    candidates: readonly Candidate[];
    hello: Hello;
    /** The number of an attempt: each candidate's hello has its own. */
    nextAttempt(): number;
    /** Matches the server's tables with the game's, or throws a NetloopError. */
    adapt(tables: Uint8Array): void;
    timeoutMs: number;
    now(): number;
    setTimeout(fn: () => void, ms: number): unknown;
    clearTimeout(timer: unknown): void;
    traffic: Traffic;
}
/** The result of an entry. */
export interface Joined {
    link: Link;
    welcome: Welcome;
    /** The time at which the hello was sent. */
    began: number;
}
/** Enters, or rejects with a NetloopError. An aborted signal closes all open connections. */
export declare function race(cfg: RaceConfig, signal?: AbortSignal): Promise<Joined>;
