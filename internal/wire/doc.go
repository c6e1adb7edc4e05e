// Package wire holds the byte-level primitives of the state packet and of plain messages.
//
// Writing is append-style: every helper takes a destination and returns it longer, so the
// caller owns all memory. Reading goes through [Reader], which is bounded by the bytes that
// it was given and keeps its first error: a decoder reads everything that it expects and
// looks at the error once, at the end. Nothing here panics on any input.
//
// Ticks are uint64 in the process and 32 bits on the wire; [WidenTick] brings them back.
package wire
