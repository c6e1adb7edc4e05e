import type { Carrier } from "../net/carrier.js";
import type { Acknowledgement } from "../state/acks.js";
import { type Epoch, type InputStatus, type Message, type TimeScale } from "../wire/frames.js";
import type { Backlog } from "./backlog.js";
/** What has arrived, in the order in which it came. */
export type Arrival = {
    kind: "state" | "record";
    at: number;
    bytes: Uint8Array;
} | {
    kind: "message";
    message: Message;
    size: number;
    number: number;
} | {
    kind: "accepted" | "received" | "closing";
    at: number;
    value: number;
} | {
    kind: "time";
    times: [number, number, number, number];
} | {
    kind: "epoch";
    epoch: Epoch;
} | {
    kind: "overload";
    level: number;
    sendEvery: number;
} | {
    kind: "scale";
    scale: TimeScale;
} | {
    kind: "inputs";
    status: InputStatus;
} | {
    kind: "gone";
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
export declare class Link {
    private carrier;
    private now;
    private later;
    private traffic;
    /** When anything sound arrived last. */
    heard: number;
    /** The end is under way or over. */
    ending: boolean;
    backlog: Backlog | undefined;
    private inbox;
    private inboxBytes;
    private duplicates;
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
    constructor(carrier: Carrier, now: () => number, later: (fn: () => void, ms: number) => void, traffic: Traffic);
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
    /** Puts in what may be lost. */
    private lose;
    private message;
    /** Takes a frame of the stream. */
    frame(frame: Uint8Array): void;
    private known;
    private count;
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
    requestTime(): void;
    giveInputs(packet: Uint8Array): void;
    /** Sends the datagrams that are due; with beat at least one, which repeats the acknowledgements. */
    flush(beat: boolean, acks: Acknowledgement | undefined): void;
    /** Sends the datagram of a time request that is due, between two flushes. */
    flushTime(acks: Acknowledgement | undefined): void;
    private send1;
}
