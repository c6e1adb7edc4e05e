// Keeps reliable messages beyond the connection that they were sent over: messages that the server
// has not acknowledged are kept, and the next connection sends them first. Messages are numbered
// from 1 over all connections; the numbers are not sent.

const MAX_BYTES = 128 << 10;

export class Backlog {
  private stored: Uint8Array[] = [];
  private bytes = 0;
  private confirmed = 0;
  /** The server has not yet sent the number of messages that it has received. */
  unconfirmed = false;

  get length(): number {
    return this.stored.length;
  }

  /** Stores a frame, or reports that there is no room. */
  add(frame: Uint8Array): boolean {
    if (this.bytes + frame.length > MAX_BYTES) return false;
    this.stored.push(frame);
    this.bytes += frame.length;
    return true;
  }

  /** Drops the frames that the server has received; false for an impossible number. */
  confirm(received: number): boolean {
    const n = received - this.confirmed;
    if (n < 0 || n > this.stored.length) return false;
    for (const frame of this.stored.splice(0, n)) this.bytes -= frame.length;
    this.confirmed = received;
    return true;
  }

  frames(): readonly Uint8Array[] {
    return this.stored;
  }
}
