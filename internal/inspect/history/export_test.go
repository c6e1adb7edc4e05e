package history

import (
	"bytes"
	"io"
	"time"

	"github.com/netloop/netloop/internal/recording"
)

// Made returns a recording of the same game with these ticks, in which no object is spawned.
func (r *Recording) Made(all ...*recording.Tick) (*Recording, error) {
	var ticks []keptTick
	for _, t := range all {
		record, err := recording.AppendTick(nil, t)
		if err != nil {
			return nil, err
		}
		ticks = append(ticks, keptTick{info: tickInfo{tick: t.Input.Tick, arrivals: countOf(t)}, record: record})
	}
	f, err := freeze(r.store.classes, nil, ticks)
	if err != nil {
		return nil, err
	}
	made := *r
	made.cfg.File = bytes.NewReader(f.records.Bytes())
	made.store, made.lanes = f.store, f.lanes
	return &made, nil
}

// Wait waits for the end of the replay.
func (r *Recording) Wait() { <-r.done }

// LimitTicks limits the ticks of a history.
func (c *Config) LimitTicks(n int) { c.maxTicks = n }

// States of a tick for tests: the objects, and the position.
func (r *Recording) StateAt(tick uint64) (*State, error) {
	position, err := r.asOf(tick)
	if err != nil {
		return nil, err
	}
	return r.store.state(position)
}

// Size returns the bytes of the temporary file, and the number of keyframes.
func (r *Recording) Size() (bytes int64, keyframes int) { return r.store.size, r.store.keys.len() }

// FileName returns the name that the temporary file had.
func (r *Recording) FileName() string { return r.store.file.(*tempFile).Name() }

// Freeze returns the kept ticks.
func (g *Ring) Freeze() (*Recording, error) { return g.freeze() }

// Restricted returns the recording for the role read.
func (r *Recording) Restricted() *Recording { return r.restricted() }

// Bytes returns the bytes of all kept ticks, and their limit.
func (s *Rings) Bytes() (kept, limit int64) { return s.bytes.Load(), s.limit }

// Release calls release, as a tick at a time of the server's clock does.
func (s *Rings) Release(now time.Duration) { s.release(now) }

// EndedFor is the time for which the ticks of an ended room are kept, and MaxCopies the limit of
// copies.
const EndedFor, MaxCopies = endedFor, maxCopies

// Limit changes the limit.
func (s *Rings) Limit(n int64) { s.limit = n }

// SlotObjects returns the objects in the order of ids.
func (s *State) SlotObjects() (list []*Object) {
	for _, o := range s.slots {
		if o != nil {
			list = append(list, o)
		}
	}
	return list
}

// SetHead sets the head of files of the ring.
func (g *Ring) SetHead(h recording.Head) { g.head = h }

// ExportTo writes the kept ticks as a file.
func (r *Recording) ExportTo(w io.Writer) error { return r.export(w) }
