import type { InputStatus, Message, TimeReply } from "../gen/netloop/v1/netloop_pb.js";
import type { Acknowledgement } from "../state/acks.js";

/** What a datagram of the server carries. Its arrays are views of the datagram's bytes. */
export interface ServerDatagram {
  number: number;
  timeReply: TimeReply | undefined;
  state: Uint8Array | undefined;
  messages: Message[];
  inputStatus: InputStatus | undefined;
  /** Fields of the other direction, and messages that are malformed: ignored and counted. */
  ignored: number;
}

/** What a datagram of the client carries. */
export interface ClientDatagram {
  number: number;
  acks?: Acknowledgement | undefined;
  timeRequestNs?: bigint | undefined;
  messages?: readonly Message[];
  inputs?: Uint8Array | undefined;
  /** The datagram is made at least so many bytes long. */
  padTo?: number;
}

/**
 * Reads a datagram of the server; undefined for one that docs/WIRE.md, "Datagrams", drops whole. It
 * does not know which numbers have been seen. What it returns is valid until the next call.
 */
export function decodeDatagram(_bytes: Uint8Array): ServerDatagram | undefined {
  return undefined;
}

/** Writes a datagram. Throws a RangeError if it is over 1 150 bytes. */
export function encodeDatagram(_datagram: ClientDatagram): Uint8Array {
  throw new RangeError("to be written");
}
