export declare const PROTOCOL = 1;
export declare const MAX_FRAME: number;
export declare const MAX_HANDSHAKE: number;
export declare const MAX_PAYLOAD: number;
export declare const MAX_DATAGRAM = 1150;
export declare const MAX_DATAGRAM_PAYLOAD: number;
export declare const MAX_TABLES: number;
export declare const MAX_PARTS = 16;
/** The fields of a frame. */
export declare const enum Kind {
    None = 0,
    Hello = 1,
    Welcome = 2,
    Refused = 3,
    Message = 4,
    Epoch = 5,
    DigestRequest = 6,
    Close = 7,
    Overload = 8,
    SchemaPart = 9,
    SchemaAccepted = 10,
    State = 11,
    StateApplied = 12,
    TimeScale = 13,
    Accepted = 14,
    MessagesReceived = 15,
    Closing = 16,
    Move = 17,
    Moved = 18
}
/** The only known field of a frame, or Kind.None if there is none. */
export declare function parseFrame(frame: Uint8Array): {
    kind: Kind;
    body: Uint8Array;
};
/** Cuts a stream into frames. A frame that arrives in one piece is not copied. */
export declare class Cutter {
    private rest;
    /** Takes bytes of the stream and passes on their frames; false: a frame exceeds its limit. */
    take(bytes: Uint8Array, limit: () => number, frame: (f: Uint8Array) => boolean): boolean;
    private keep;
}
/** A frame of one field, with its length before it. */
export declare function frameOf(kind: Kind, body: Uint8Array): Uint8Array;
/** A frame with a number as its only content. */
export declare function countFrame(kind: Kind, n: number): Uint8Array;
/** A client's first message. */
export interface Hello {
    schema: string;
    major: number;
    minor: number;
    room: string;
    params: Uint8Array;
    token: string;
    build: string;
    resume?: Resume;
    ticket: string;
    spectate: boolean;
    /** Of a moving client: the number of its first datagram in the other room; else 0. */
    datagram: number;
}
/** The state from which a client resumes. */
export interface Resume {
    token: Uint8Array;
    received: number;
    kept: boolean;
    attempt: number;
}
export declare function helloFrame(h: Hello): Uint8Array;
export declare function closeFrame(code: number, text: string): Uint8Array;
export declare function moveFrame(ticket: string): Uint8Array;
/** The room to which a client moves: its ticket, and the addresses of its server if that is another one. */
export interface Moved {
    ticket: string;
    to?: Address[];
}
/** The address of a server for one carrier, with the SHA-256 hashes of unsigned certificates. */
export interface Address {
    carrier: string;
    addr: string;
    hashes: Uint8Array[];
}
export declare function parseMoved(body: Uint8Array): Moved;
/** The move of `refused`, or undefined. */
export declare function parseRefusedMove(body: Uint8Array): Moved | undefined;
export declare function digestFrame(snapshots: number, full: boolean): Uint8Array;
/** A number of ticks or steps per second, as a rational. */
export interface Rate {
    num: number;
    den: number;
}
/** The time at which a tick is due, in ms of the server's clock. */
export interface Epoch {
    tick: number;
    at: number;
}
/** A line of scaled time, in ms. */
export interface TimeScale {
    num: number;
    den: number;
    tick: number;
    at: number;
}
/** The server's answer to an admitted client. Times are ms. */
export interface Welcome {
    protocol: number;
    minor: number;
    id: number;
    instance: Uint8Array;
    room: string;
    tickRate: Rate;
    fixedRate: Rate;
    sendEvery: number;
    epoch: Epoch;
    server: number;
    scale?: TimeScale;
    secret: Uint8Array;
    keep: number;
    resumed: boolean;
    /** To a moving client: the number of the server's first datagram in the other room. */
    datagram: number;
    /** Whether the client may ask to move. */
    moves: boolean;
    /**
     * A bit for each method that the room's game handles; empty if the server does not report them.
     */
    handles: Uint8Array;
}
export declare function parseWelcome(body: Uint8Array): Welcome;
export declare function parseEpoch(body: Uint8Array): Epoch;
/** A line of scaled time, if its speed is valid. */
export declare function parseTimeScale(body: Uint8Array): TimeScale;
/** A level of overload from 0 to 3, and the number of ticks between snapshots. */
export declare function parseOverload(body: Uint8Array): {
    level: number;
    sendEvery: number;
};
export declare function parseCount(body: Uint8Array): number;
/** A code and a text, of `close` and of `refused`. */
export declare function parseClose(body: Uint8Array): {
    code: number;
    text: string;
};
export declare function parsePart(body: Uint8Array): {
    size: number;
    data: Uint8Array;
};
/** One RPC, one question or one answer. */
export interface Message {
    method: number;
    stage: number;
    call: number;
    reply: boolean;
    code: number;
    text: string;
    payload: Uint8Array;
    tick: number;
    reliable: boolean;
}
export declare function parseMessage(body: Uint8Array, reliable: boolean): Message;
export declare function encodeMessage(m: {
    method: number;
    stage: number;
    call: number;
    payload: Uint8Array;
}): Uint8Array;
/** The fields of a datagram. */
export declare const enum Field {
    Number = 1,
    Acks = 2,
    TimeRequest = 3,
    TimeReply = 4,
    State = 5,
    Messages = 6,
    Padding = 7,
    Inputs = 8,
    InputStatus = 9,
    Mispredicted = 10
}
export declare const DATAGRAM: number[];
/** The three times of a time reply. */
export declare function parseTimes(body: Uint8Array): [number, number, number];
/** The server's report on the inputs. */
export interface InputStatus {
    newest: number;
    before: number;
    early: number;
    missed: number;
    /** The generation of the inputs, modulo 4. */
    generation: number;
}
export declare function parseInputStatus(body: Uint8Array): InputStatus;
