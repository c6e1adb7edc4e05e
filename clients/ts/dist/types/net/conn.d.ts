import type { Transport } from "../api.js";
/** The callbacks of a connection. It calls none of them before start, and none after closed. */
export interface ConnEvents {
    stream(bytes: Uint8Array): void;
    datagram(bytes: Uint8Array): void;
    /** Reports the end of the connection: with the code and text of the peer, or Code.Lost. */
    closed(code: number, text: string): void;
}
/** An open connection. */
export interface Conn {
    readonly transport: Transport;
    /** Enables the callbacks, and first delivers the data that arrived before. */
    start(events: ConnEvents): void;
    /** Sends bytes of the stream; the caller must not reuse them. */
    stream(bytes: Uint8Array): void;
    /** Sends a datagram, or drops it if the link is behind. The caller must not reuse the bytes. */
    datagram(bytes: Uint8Array): void;
    /** Ends the connection at once. */
    close(code: number, text: string): void;
}
/** Opens a connection, or rejects. A connection that opens after an abort is closed at once. */
export type Dial = (signal: AbortSignal) => Promise<Conn>;
/** The base of all connections: buffers data that arrives before start. */
export declare abstract class Base implements Conn {
    abstract readonly transport: Transport;
    private events;
    private early;
    private bytes;
    protected ended: boolean;
    start(events: ConnEvents): void;
    protected tell(size: number, fn: (e: ConnEvents) => void): void;
    protected end(code: number, text: string): void;
    abstract stream(bytes: Uint8Array): void;
    abstract datagram(bytes: Uint8Array): void;
    abstract close(code: number, text: string): void;
}
