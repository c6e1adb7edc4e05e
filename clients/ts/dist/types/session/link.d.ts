import type { Carrier } from "../net/carrier.js";
import type { Acknowledgement } from "../state/acks.js";
import { type Epoch, type InputStatus, type Message, type TimeScale } from "../wire/frames.js";
import type { Backlog } from "./backlog.js";
/** The kinds of what arrives. */
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
    Gone = 11
}
/** What has arrived, in the order in which it came. */
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
    kind: Arrived.Gone;
    code: number;
    text: string;
};
/** What connections count, over all of them. */
export interface Traffic {
    bytesIn: number;
    bytesOut: number;
    datagramsIn: number;
    datagramsOut: number;
    /** What made no sense, came twice, or found no room. */
    dropped: number;
}
/** What a message that is sent consists of. */
export interface Outgoing {
    method: number;
    stage: number;
    call: number;
    payload: Uint8Array;
    reliable: boolean;
}
/** Where a client goes on, and the number of its first datagram there. */
export interface Onward {
    carrier: Carrier;
    first: number;
}
export declare class Link {
    private carrier;
    private now;
    private later;
    private traffic;
    private firstIn;
    /** When anything sound arrived last. */
    heard: number;
    /** The end is under way or over. */
    ending: boolean;
    backlog: Backlog | undefined;
    /** The server has sent the client on to another room: it goes there over this carrier. */
    onward: Onward | undefined;
    private inbox;
    private inboxBytes;
    private seen;
    private messages;
    private number;
    private unreliable;
    private unreliableBytes;
    private requestDue;
    private inputs;
    private told;
    private toldBytes;
    private decided;
    private out;
    constructor(carrier: Carrier, now: () => number, later: (fn: () => void, ms: number) => void, traffic: Traffic, 
    /** The numbers of the first datagrams that leave, and that count. */
    first?: number, firstIn?: number);
    /** Calls fn once it is known whether the game takes the client in: with nothing, or with the end. */
    onDecided(fn: (closed?: {
        code: number;
        text: string;
    }) => void): void;
    private decide;
    get transport(): import("../api.js").Transport;
    /** What has arrived since it was last asked. */
    take(): Arrival[];
    private push;
    /**
     * Puts in what may not be lost. Without room for it, because nobody has stepped for long, the
     * connection counts as broken: the next one carries what was not taken.
     */
    private must;
    datagram(b: Uint8Array): void;
    /** Takes what breaks the rules and harms nobody: it is counted. */
    private orDrop;
    private open;
    /** Puts in what may be lost. */
    private lose;
    private message;
    /** Takes a frame of the stream. */
    frame(frame: Uint8Array): void;
    private known;
    /** The carrier has ended. */
    closed(code: number, text: string): void;
    private gone;
    /** Ends a connection whose server breaks the protocol. */
    violated(text: string): void;
    private break;
    private last;
    /** Says goodbye, behind all that was sent, and ends the connection. */
    close(code: number, text: string): void;
    /** Ends it without a word. */
    cut(): void;
    private raw;
    private control;
    /** Sends a message: a reliable one at once, another with the next flush. False: it can never leave. */
    send(m: Outgoing): boolean;
    private queue;
    /** Takes which messages the server has had, and sends those that it lacks. False: that makes no sense. */
    resend(received: number): boolean;
    /** From which number of reliable messages on the server has to be told. */
    startReceipts(received: number): void;
    /** Notes that reliable messages up to a number have been taken. The server is told from time to time. */
    received(messages: number, size: number): void;
    recordApplied(record: number): void;
    requestDigest(snapshots: number): void;
    requestFullState(): void;
    /** Asks the room to let the client go on to that of a ticket. */
    move(ticket: string): void;
    requestTime(): void;
    giveInputs(packet: Uint8Array): void;
    /** Sends the datagrams that are due; with beat at least one, which repeats the acknowledgements. */
    flush(beat: boolean, acks: Acknowledgement | undefined): void;
    /** Sends the datagram of a time request that is due, between two flushes. */
    flushTime(acks: Acknowledgement | undefined): void;
    private send1;
}
