// What makes reliable messages outlive the connection that they were sent over: those that the
// server has not said to have are kept, and the next connection carries them first. Messages are
// numbered from 1 over all connections; the numbers do not travel.

const MAX_BYTES = 128 << 10;

export class Backlog {
  private kept: Uint8Array[] = [];
  private bytes = 0;
  private confirmed = 0;
  /** The server has not said yet where it goes on. */
  awaits = false;

  get length(): number {
    return this.kept.length;
  }

  /** Keeps a frame, or reports that there is no room. */
  add(frame: Uint8Array): boolean {
    if (this.bytes + frame.length > MAX_BYTES) return false;
    this.kept.push(frame);
    this.bytes += frame.length;
    return true;
  }

  /** Lets go of what the server has; false for a number that makes no sense. */
  confirm(received: number): boolean {
    const n = received - this.confirmed;
    if (n < 0 || n > this.kept.length) return false;
    for (const frame of this.kept.splice(0, n)) this.bytes -= frame.length;
    this.confirmed = received;
    return true;
  }

  frames(): readonly Uint8Array[] {
    return this.kept;
  }
}
