// Package recording holds the file that the ticks of a room are recorded in, and the
// encoding of what stands in it.
//
//	file    magic, version │ head │ record │ record │ …     Writer, Reader (file.go)
//	head    JSON: what the room was opened with
//	record  one tick: what entered it and what came of it    Tick (tick.go)
//	value   any Go value, exactly                            AppendValue (value.go)
//
// Every part has a length and a checksum. A file that breaks off, because the process
// did, is good up to its last whole record.
package recording
