export declare class Backlog {
    private kept;
    private bytes;
    private confirmed;
    /** The server has not said yet where it goes on. */
    awaits: boolean;
    get length(): number;
    /** Keeps a frame, or reports that there is no room. */
    add(frame: Uint8Array): boolean;
    /** Lets go of what the server has; false for a number that makes no sense. */
    confirm(received: number): boolean;
    frames(): readonly Uint8Array[];
}
