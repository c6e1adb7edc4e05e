import type { Conn } from "../net/conn.js";
import type { Acknowledgement } from "../state/acks.js";
import { type Epoch, type InputStatus, type Message, type Moved, type TimeScale } from "../wire/frames.js";
import type { Backlog } from "./backlog.js";
import type { Target } from "./travel.js";
/** The kinds of received data. */
export declare const enum Arrived {
    State = 0,
    Record = 1,
    Message = 2,
    Accepted = 3,
    Received = 4,
    Closing = 5,
    Time = 6,
    Epoch = 7,
    Overload = 8,
    Scale = 9,
    Inputs = 10,
    Travel = 11,
    Gone = 12
}
/** Received data, in the order of arrival. */
export type Arrival = {
    kind: Arrived.State | Arrived.Record;
    at: number;
    bytes: Uint8Array;
} | {
    kind: Arrived.Message;
    message: Message;
    size: number;
    number: number;
} | {
    kind: Arrived.Accepted | Arrived.Received | Arrived.Closing;
    at: number;
    value: number;
} | {
    kind: Arrived.Time;
    times: [number, number, number, number];
} | {
    kind: Arrived.Epoch;
    epoch: Epoch;
} | {
    kind: Arrived.Overload;
    level: number;
    sendEvery: number;
} | {
    kind: Arrived.Scale;
    scale: TimeScale;
} | {
    kind: Arrived.Inputs;
    status: InputStatus;
} | {
    kind: Arrived.Travel;
    moved: Moved;
} | {
    kind: Arrived.Gone;
    code: number;
    text: string;
};
/** The counters of all connections together. */
export interface Traffic {
    bytesIn: number;
    bytesOut: number;
    datagramsIn: number;
    datagramsOut: number;
    /** Datagrams and messages that were invalid or duplicates, or that found no room. */
    dropped: number;
}
/** The parts of an outgoing message. */
export interface Outgoing {
    method: number;
    stage: number;
    call: number;
    payload: Uint8Array;
    reliable: boolean;
}
/**
 * The connection over which a moving client continues, and the number of its first datagram in the
 * other room; 0 on a new connection, to another server.
 */
export interface Moving {
    conn: Conn | Promise<Conn>;
    first: number;
    to?: Target;
}
export declare class Link {
    private conn;
    private now;
    private later;
    private traffic;
    private firstIn;
    /** The time at which the last valid data arrived. */
    lastArrival: number;
    /** The connection is closing or closed. */
    ending: boolean;
    backlog: Backlog | undefined;
    /**
     * Set when the server has sent the client on to another room: the client joins it over this
     * connection.
     */
    moving: Moving | undefined;
    private inbox;
    private inboxBytes;
    private seen;
    private messages;
    private number;
    private unreliable;
    private unreliableBytes;
    private requestDue;
    private reportFrom;
    private receipted;
    private unreceiptedBytes;
    private decided;
    private out;
    /** The last fields of the next datagram: the newest inputs, and a report. */
    private tail;
    constructor(conn: Conn, now: () => number, later: (fn: () => void, ms: number) => void, traffic: Traffic, 
    /** The numbers of the first datagrams: of those to send, and of those to accept. */
    first?: number, firstIn?: number);
    /**
     * Calls fn once the game has decided on the client: without an argument if it is admitted, else
     * with the end.
     */
    onDecided(fn: (closed?: {
        code: number;
        text: string;
    }) => void): void;
    private decide;
    get transport(): import("../api.js").Transport;
    /** Removes and returns the data that has arrived. */
    take(): Arrival[];
    private push;
    /**
     * Queues data that may not be lost. If there is no room for it, because the page has not stepped
     * for long, the connection counts as broken: the next one sends the data again.
     */
    private pushOrBreak;
    datagram(b: Uint8Array): void;
    /** Runs take, and counts invalid data, which affects no other data. */
    private tryTo;
    private open;
    /** Queues data that may be lost. */
    private pushOrDrop;
    private message;
    /** Takes a frame of the stream. */
    frame(frame: Uint8Array): void;
    private receiveFrame;
    /** Handles the end of the connection. */
    closed(code: number, text: string): void;
    private endedBy;
    /** Ends a connection after a violation of the protocol by the server. */
    violated(text: string): void;
    private break;
    private pushEnd;
    /** Sends a close frame, after all other data, and ends the connection. */
    close(code: number, text: string): void;
    /** Ends the connection without a close frame. */
    cut(): void;
    private raw;
    private control;
    /**
     * Sends a message: a reliable one at once, another with the next flush. False: the message can
     * never be sent.
     */
    send(m: Outgoing): boolean;
    private queue;
    /**
     * Takes the number of messages that the server has received, and sends the missing ones. False:
     * the number is impossible.
     */
    resend(received: number): boolean;
    /** Sets the number of reliable messages that were acknowledged on earlier connections. */
    startReceipts(received: number): void;
    /**
     * Records that reliable messages up to a number were handled. The server gets a receipt from time
     * to time.
     */
    received(messages: number, size: number): void;
    recordApplied(record: number): void;
    requestDigest(snapshots: number): void;
    requestFullState(): void;
    /** Asks the room to move the client to the room of a ticket. */
    move(ticket: string): void;
    requestTime(): void;
    setInputs(packet: Uint8Array): void;
    /**
     * Sends the datagrams that are due; with beat at least one, which repeats the acknowledgements.
     * wrong is the number of mispredictions since the join.
     */
    flush(beat: boolean, acks: Acknowledgement | undefined, wrong: number): void;
    /** Sends the datagram of a due time request, between two flushes. */
    flushTime(acks: Acknowledgement | undefined): void;
    private sendDatagram;
}
