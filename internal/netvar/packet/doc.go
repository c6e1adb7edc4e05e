// Package packet is the layout of state packets: a header, then records of objects. The sender
// (package netvar) and the receiver (package replica) write and read it with the same code.
//
// The byte layout is normative in docs/WIRE.md and repeated above its writer (record.go).
package packet
