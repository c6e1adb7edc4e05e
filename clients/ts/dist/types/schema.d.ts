/** The types of a game: its classes, messages and input, by the names that they have on the wire. */
export interface Shape {
    classes: Record<string, any>;
    rpcs: Record<string, any>;
    calls: Record<string, {
        question: any;
        answer: any;
    }>;
    input: any;
}
/** How a number is drawn between two versions; rotations need no word. */
export type Lerp = "none" | "linear" | "angle" | "degrees";
/** Type texts by the names of the fields, as docs/WIRE.md writes them, such as "float32 quant=1/32". */
export type Fields = Record<string, string>;
/** What is known of a class beside its fields. Paths are as in "Pos.X"; an element of an array is "Legs.0". */
export interface ClassSchema {
    readonly fields: Fields;
    readonly lerp?: Record<string, Lerp>;
    /** A change of one of these leaves says that the whole object is elsewhere. */
    readonly teleport?: readonly string[];
    /** Clients may predict the objects that they own. */
    readonly predicted?: boolean;
    /** The field by which an object of spawn is known again. */
    readonly born?: string;
}
/** A message or a call, by the type texts of what it carries. */
export interface MethodSchema {
    /** The stages that it allows, its default first. */
    readonly stages: readonly number[];
    readonly message: string;
    readonly answer?: string;
    /** For how long a call waits for its answer. */
    readonly timeoutMs?: number;
}
/** How a protobuf message is read and written. */
export interface ProtobufCodec<T = any> {
    decode(bytes: Uint8Array): T;
    encode(message: T): Uint8Array;
}
/** What the page was built with. The type is that of the game. */
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
    /** What the types are, for the compiler alone. */
    readonly shape?: G;
}
