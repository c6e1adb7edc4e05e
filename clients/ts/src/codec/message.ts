import type { MessageType } from "./schema.js";

/**
 * Encodes a message. Fields that the value lacks are zero, and what the type lacks is left out;
 * quantised values are rounded and clamped. Throws a RangeError for what the type cannot hold
 * otherwise, with the path of the field.
 */
export function encodeMessage(_type: MessageType, _value: unknown): Uint8Array {
  throw new RangeError("to be written");
}

/** Decodes a message. Undefined for bytes that are no such message: never throws. */
export function decodeMessage(_type: MessageType, _bytes: Uint8Array): unknown {
  return undefined;
}
