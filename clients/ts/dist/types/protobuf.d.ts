import type { ProtobufCodec } from "./schema.js";
/** A field of a protobuf message. */
export interface ProtobufField {
    readonly no: number;
    readonly name: string;
    /** As protobuf names it: "string", "sint32", "message", "enum" and so on. */
    readonly kind: string;
    readonly repeated: boolean;
    /** The field may be unset. */
    readonly optional: boolean;
    /** The full name of the message, of a field that is one. */
    readonly of: string;
}
/** The fields of messages, by their full names. */
type Tables = Readonly<Record<string, readonly ProtobufField[]>>;
/** Codecs of messages, by their full names. */
export declare function protobufCodecs(tables: Tables): Record<string, ProtobufCodec>;
export {};
