/** What `acks` of the next datagram says: docs/WIRE.md, "Acknowledgements". */
export interface Acknowledgement {
    /** The highest packet that is acknowledged. */
    newest: number;
    /** Lengths of alternating runs from there downwards. */
    runs: readonly number[];
}
/** Remembers which packets are acknowledged, as far back as anybody is told. */
export declare class Acks {
    private packets;
    private readonly runs;
    private readonly said;
    clear(): void;
    add(id: number): void;
    /** What is to be said, undefined if there is nothing. */
    say(): Acknowledgement | undefined;
}
