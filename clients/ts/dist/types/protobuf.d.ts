import type { ProtobufCodec } from "./api.js";
/** The functions of @bufbuild/protobuf that usingProtobuf needs. */
export interface ProtobufRuntime {
    create(schema: any, init?: any): any;
    toBinary(schema: any, message: any): Uint8Array;
    fromBinary(schema: any, bytes: Uint8Array): any;
}
/**
 * Lets the client read and write protobuf messages with the code that protoc-gen-es makes. The
 * page brings the runtime, so that one which needs no protobuf does not load any:
 *
 *     import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
 *     connect({ protobuf: usingProtobuf({ create, fromBinary, toBinary }, SaySchema, SaidSchema) })
 */
export declare function usingProtobuf(runtime: ProtobufRuntime, ...schemas: {
    readonly typeName: string;
}[]): Record<string, ProtobufCodec>;
