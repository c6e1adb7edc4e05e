import type { Frame } from "../gen/netloop/v1/netloop_pb.js";

/** What breaks a rule of docs/WIRE.md about the stream: the client closes with CODE_PROTOCOL. */
export class ProtocolError extends Error {
  override name = "ProtocolError";
}

/** Cuts the bytes of the stream into frames (docs/WIRE.md, "Frames"). */
export class FrameReader {
  /** Takes the next bytes of the stream, any cut. */
  push(_bytes: Uint8Array): void {
    throw new ProtocolError("to be written");
  }

  /**
   * The next whole frame, or undefined. A frame without a known field has no kind: it is skipped
   * and counted by the caller. Throws a ProtocolError on a violation.
   */
  next(): Frame | undefined {
    return undefined;
  }
}

/** A frame behind its length. Throws a RangeError if it is over its limit. */
export function encodeFrame(_frame: Frame): Uint8Array {
  throw new RangeError("to be written");
}
