/** The field `acks` of the next datagram: docs/WIRE.md, "Acknowledgements". */
export interface Acknowledgement {
    /** The highest acknowledged packet. */
    newest: number;
    /** Lengths of alternating runs from there downwards. */
    runs: readonly number[];
}
/** Records the acknowledged packets, as far back as acknowledgements reach. */
export declare class Acks {
    private packets;
    private readonly runs;
    private readonly result;
    clear(): void;
    add(id: number): void;
    /** The acknowledgement to send, undefined if there is none. */
    next(): Acknowledgement | undefined;
}
