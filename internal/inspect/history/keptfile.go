package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
)

// The kept ticks of a room as a file. The file is a recording with Kept in its head, and its
// records are values of package recording:
//
//	keptLane*, as one record │ keptTick │ keptTick │ …
//
// The frame of the first keptTick has all objects as added.
// The file has the states, so a reader needs the schema of the game, and no replay.

// keptLane is a client.
type keptLane struct {
	id       uint64
	subject  string
	from, to uint64
}

// export writes kept ticks as a file.
func (r *Recording) export(w io.Writer) error {
	head, err := r.head.Append(nil)
	if err != nil {
		return err
	}
	out, err := recording.NewWriter(w, head)
	if err != nil {
		return err
	}
	var all []keptLane
	for i := range r.lanes.clients.len() {
		l := *r.lanes.clients.at(i)
		all = append(all, keptLane{l.id, l.subject, l.from, l.to.Load()})
	}
	if err := writeValue(out, &all); err != nil {
		return err
	}
	records := recording.NewReaderAt(r.cfg.File, r.store.ticks.at(0).record)
	return r.store.each(0, r.store.ticks.len(), func(position int, frame []byte) (bool, error) {
		record, err := records.Next()
		if err != nil {
			return false, err
		}
		return true, writeValue(out, &keptTick{*r.store.ticks.at(position), frame, record})
	})
}

func writeValue(out *recording.Writer, v any) error {
	b, err := recording.AppendValue(nil, v)
	if err != nil {
		return err
	}
	return out.Write(b)
}

// maxKeptFile bounds the ticks of a file, in bytes, because they are read into memory: twice those
// of the rings of a server.
const maxKeptFile = 2 * maxKept

// openKept opens a file of kept ticks, up to its last whole tick.
func openKept(cfg Config, head recording.Head, in *recording.Reader, of *room.Room) (*Recording, error) {
	var all []keptLane
	if err := readValue(in, &all); err != nil {
		return nil, err
	}
	ticks, ended := readKept(in)
	if len(ticks) == 0 {
		return nil, ended
	}
	f, err := freeze(of.Schema().Classes().Classes(), nil, ticks)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		joined := &lane{id: l.id, subject: l.subject, from: l.from}
		joined.to.Store(l.to)
		f.lanes.add(joined)
	}
	rec := f.recording(cfg.Name, of.Schema(), of.Spec())
	rec.head = head
	out := Outcome{State: Kept, Tick: rec.store.ticks.at(len(ticks) - 1).tick, Text: fmt.Sprintf("the last %d ticks of a running room", len(ticks))}
	switch {
	case errors.Is(ended, recording.ErrTruncated):
		out.State, out.Text = Truncated, ended.Error()
	case !errors.Is(ended, io.EOF):
		out.State, out.Text = Damaged, ended.Error()
	}
	rec.progress.outcome.Store(&out)
	return rec, nil
}

// readKept reads ticks, and returns the error after the last one: io.EOF at the end of the file.
func readKept(in *recording.Reader) (ticks []keptTick, err error) {
	for size := int64(0); ; {
		var t keptTick
		if err := readValue(in, &t); err != nil {
			return ticks, err
		}
		if size += t.bytes(); size > maxKeptFile {
			return ticks, fmt.Errorf("a file of kept ticks has %d bytes at most: %w", maxKeptFile, errLimit)
		}
		if n := len(ticks); n > 0 && t.info.tick <= ticks[n-1].info.tick {
			return ticks, fmt.Errorf("%w after tick %d: the next tick is %d", recording.ErrCorrupt, ticks[n-1].info.tick, t.info.tick)
		}
		ticks = append(ticks, t)
	}
}

func readValue(in *recording.Reader, v any) error {
	b, err := in.Next()
	if err != nil {
		return err
	}
	return recording.ReadValue(bytes.Clone(b), v)
}

// recording returns the kept ticks as a recording without a replay.
func (f *frozen) recording(name string, s *schema.Schema, spec room.Spec) *Recording {
	done := make(chan struct{})
	close(done) // There is no replay.
	rec := &Recording{
		cfg:    Config{Name: name, File: bytes.NewReader(f.records.Bytes()), Size: int64(f.records.Len())},
		schema: s, spec: spec, store: f.store, lanes: f.lanes, progress: new(progress), cancel: func() {}, done: done,
	}
	rec.progress.read.Store(rec.cfg.Size)
	return rec
}
