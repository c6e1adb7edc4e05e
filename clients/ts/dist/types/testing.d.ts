import type { Frame } from "./api.js";
import type { Schema, Shape } from "./schema.js";
/** The file of netlooptest.Vectors, as JSON.parse returns it. */
export interface Vectors {
    class: string;
    fields: string;
    rate: number[];
    fixedRate: number[];
    cases: {
        step: number;
        state?: object;
        input: object;
        want: object;
        spawns?: {
            class: string;
            state: object;
        }[];
    }[];
}
/**
 * Runs the cases of a class, and throws an Error that lists the cases and fields in which the step
 * function differs from the server's. It compares states as the wire carries them: a difference
 * below a field's quantum is none. The step calls spawn for each object that its page spawns, if
 * netlooptest.SpawnVectors has written the cases. Protobuf messages are not supported, neither in
 * states nor in inputs.
 */
export declare function runVectors<G extends Shape, K extends keyof G["classes"] & string>(schema: Schema<G>, name: K, vectors: Vectors, step: (state: G["classes"][K], input: G["input"], frame: Frame, spawn: <C extends keyof G["classes"] & string>(name: C, state: G["classes"][C]) => void) => void): void;
