// Package wire holds the byte-level primitives of the state packet and of plain messages.
//
// Writing is append-style: every helper takes a destination and returns it longer, so the caller
// owns all memory. [Reader] never reads beyond its input and keeps its first error: a decoder reads
// all fields and checks the error once, at the end. No function panics on any input.
//
// Ticks are uint64 in the process and 32 bits on the wire; [WidenTick] converts them back.
package wire
