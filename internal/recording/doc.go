// Package recording defines the file of a room's recorded ticks, and the encoding of its values.
//
//	file    magic, version │ head │ record │ record │ …     Writer, Reader (file.go)
//	head    JSON: the configuration of the room
//	record  one tick: its inputs and their results           Tick (tick.go)
//	value   any Go value, exactly                            AppendValue (value.go)
//
// Each part has a length and a checksum. A file that is cut off, because the process ended, is
// valid up to its last whole record.
package recording
