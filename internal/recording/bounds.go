package recording

import "github.com/netloop/netloop/internal/limits"

// Bounds returns the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Operation: {
		{
			Name: "a recorded tick", Default: limits.Bytes(MaxRecord),
			Counter: "recording/failed", Full: "the recording ends, the room does not",
		},
		{
			Name: "the head of a recording, with `Config.RecordNotes`", Default: limits.Bytes(MaxHead), Full: "New fails",
		},
		{
			Name: "recording of `--record`, waiting for the disk", Default: limits.Bytes(MaxPending),
			Counter: "recording/failed", Full: "the recording ends, the room does not",
		},
	}}
}
