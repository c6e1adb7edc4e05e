export declare class Backlog {
    private stored;
    private bytes;
    private confirmed;
    /** The server has not yet sent the number of messages that it has received. */
    unconfirmed: boolean;
    get length(): number;
    /** Stores a frame, or reports that there is no room. */
    add(frame: Uint8Array): boolean;
    /** Drops the frames that the server has received; false for an impossible number. */
    confirm(received: number): boolean;
    frames(): readonly Uint8Array[];
}
