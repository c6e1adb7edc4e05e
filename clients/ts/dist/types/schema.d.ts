/** The types of a game: its classes, messages and input, by their names on the wire. */
export interface Shape {
    classes: Record<string, any>;
    rpcs: Record<string, any>;
    calls: Record<string, {
        question: any;
        answer: any;
    }>;
    input: any;
}
/** How a number is interpolated between two versions; rotations need no declaration. */
export type Lerp = "none" | "linear" | "angle" | "degrees";
/** Type texts by the names of the fields, as docs/WIRE.md writes them, such as "float32 quant=1/32". */
export type Fields = Record<string, string>;
/** The declarations of a class. Paths are as in "Pos.X"; an element of an array is "Legs.0". */
export interface ClassSchema {
    readonly fields: Fields;
    readonly lerp?: Record<string, Lerp>;
    /** A change of one of these leaves moves the whole object without interpolation. */
    readonly teleport?: readonly string[];
    /** Clients may predict the objects that they own. */
    readonly predicted?: boolean;
    /** The field by which an object of spawn is matched. */
    readonly born?: string;
}
/** A message or a call, by the type texts of its contents. */
export interface MethodSchema {
    /** The stages that it allows, its default first. */
    readonly stages: readonly number[];
    readonly message: string;
    readonly answer?: string;
    /** The timeout of a call's answer. */
    readonly timeoutMs?: number;
}
/** The codec of a protobuf message. */
export interface ProtobufCodec<T = any> {
    decode(bytes: Uint8Array): T;
    encode(message: T): Uint8Array;
}
/** The schema with which the page was built. The type is that of the game. */
export interface Schema<G extends Shape = Shape> {
    readonly name: string;
    readonly major: number;
    readonly minor: number;
    readonly classes: Readonly<Record<keyof G["classes"] & string, ClassSchema>>;
    readonly methods: Readonly<Record<string, MethodSchema>>;
    /** The type text of the input. */
    readonly input?: string;
    /** The codecs of protobuf messages, by their full names. */
    readonly protobuf?: Readonly<Record<string, ProtobufCodec>>;
    /** Carries the types, for the compiler only. */
    readonly shape?: G;
}
