package recording

import (
	"encoding/json"
	"fmt"
)

// Head is the head of a file.
type Head struct {
	Schema      string            // its name, for people
	Fingerprint []byte            // fingerprint of the schema
	Layout      uint64            `json:",string"` // layout of Tick
	Config      json.RawMessage   // configuration of the room, as its owner wrote it
	Seed        uint64            `json:",string"`
	Notes       map[string]string `json:",omitempty"`
	// Kept means that the file has the last ticks of a room with their states: see package history.
	// It has no ticks before, so it cannot be replayed.
	Kept bool `json:",omitempty"`
}

// Append appends the encoded head.
func (h *Head) Append(dst []byte) ([]byte, error) {
	b, err := json.Marshal(h)
	if err != nil {
		return dst, err
	}
	return append(dst, b...), nil
}

// ReadHead decodes the head of a recording. It rejects a head with another Layout than this
// program's: the recorded ticks have other fields, and would be decoded wrongly.
func ReadHead(b []byte) (Head, error) {
	var h Head
	if err := json.Unmarshal(b, &h); err != nil {
		return h, fmt.Errorf("%w: %w", ErrNotRecording, err)
	}
	if h.Layout != Layout() {
		return h, fmt.Errorf("%w: its ticks have other fields: replay it with the program that recorded it", ErrNotRecording)
	}
	return h, nil
}
