import type { Dial } from "../net/carrier.js";
import { type Hello, type Welcome } from "../wire/frames.js";
import { Link, type Traffic } from "./link.js";
/** A carrier that may win. */
export interface Contender {
    name: string;
    dial: Dial;
    /** So long after the start it is tried, or once all before it have failed. */
    afterMs: number;
}
/** What an entry needs. */
export interface EntryConfig {
    contenders: readonly Contender[];
    hello: Hello;
    /** The number of an attempt: each contender's hello has its own. */
    nextAttempt(): number;
    /** Matches the server's tables with the game's, or throws a NetloopError. */
    adapt(tables: Uint8Array): void;
    timeoutMs: number;
    now(): number;
    setTimeout(fn: () => void, ms: number): unknown;
    clearTimeout(timer: unknown): void;
    traffic: Traffic;
}
/** What an entry brings back. */
export interface Entered {
    link: Link;
    welcome: Welcome;
    /** When the hello left. */
    began: number;
}
/** Enters, or rejects with a NetloopError. An aborted signal closes what is open. */
export declare function enter(cfg: EntryConfig, signal?: AbortSignal): Promise<Entered>;
