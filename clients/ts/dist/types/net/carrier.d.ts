import type { Transport } from "../api.js";
/** What a carrier tells. It calls none of them before start, and none after closed. */
export interface CarrierEvents {
    stream(bytes: Uint8Array): void;
    datagram(bytes: Uint8Array): void;
    /** The connection is gone: with the code and text of the peer, or Code.Lost. */
    closed(code: number, text: string): void;
}
/** A connection that is open. */
export interface Carrier {
    readonly transport: Transport;
    /** Begins to tell; what has come before is told now. */
    start(events: CarrierEvents): void;
    /** Sends bytes of the stream, which the caller does not use again. */
    stream(bytes: Uint8Array): void;
    /** Sends a datagram, or drops it if the link is behind. The caller does not use it again. */
    datagram(bytes: Uint8Array): void;
    /** Ends the connection at once. */
    close(code: number, text: string): void;
}
/** Opens a connection, or rejects. An aborted one is closed whenever it comes. */
export type Dial = (signal: AbortSignal) => Promise<Carrier>;
/** Keeps what comes before start: the base of all carriers. */
export declare abstract class Base implements Carrier {
    abstract readonly transport: Transport;
    private events;
    private early;
    private bytes;
    protected ended: boolean;
    start(events: CarrierEvents): void;
    protected tell(size: number, fn: (e: CarrierEvents) => void): void;
    protected end(code: number, text: string): void;
    abstract stream(bytes: Uint8Array): void;
    abstract datagram(bytes: Uint8Array): void;
    abstract close(code: number, text: string): void;
}
