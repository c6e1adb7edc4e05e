package simulation

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/recording"
)

// alter replays the beginning of a recording with changes. The documents: NewReplay, Replay.Look
// and Divergence of netloop.
//
//   - A change of the state between two ticks ends the replay at the next tick, with the names of
//     the object and the field.
//   - A damaged file ends the replay with an error, and never with a panic.
func (r *replicas) alter(one *recorded, n uint64) {
	rng := rand.New(rand.NewPCG(n, 293))
	r.diverge(one, 10+rng.IntN(100))
	var records [][]byte
	file, head, err := recording.NewReader(bytes.NewReader(one.Bytes()))
	for err == nil {
		var b []byte
		if b, err = file.Next(); err == nil {
			records = append(records, bytes.Clone(b))
		}
	}
	if len(records) < 3 {
		return
	}
	for range 8 {
		r.damage(one.name, head, records[:min(len(records), 120)], rng)
	}
	r.again(one.Bytes()[:rng.IntN(one.Len())], 120)
}

// diverge changes an object after some ticks.
func (r *replicas) diverge(one *recorded, after int) {
	shadow := newPlay(r.p.story)
	shadow.shadow = true
	again, err := netloop.NewReplay(netloop.Config{}, shadow.game(), bytes.NewReader(one.Bytes()))
	for i := 0; err == nil && i < after; i++ {
		_, err = again.Step()
	}
	if err != nil {
		return // It ends earlier, or cannot be replayed.
	}
	var edited *typed[pawn]
	changed := ""
	err = again.Look(func(t *netloop.Tick) {
		for _, f := range shadow.rooms.byName {
			for _, it := range f.gameRoom.items {
				if p, ok := it.(*typed[pawn]); ok && p.alive() && changed == "" {
					p.o.Edit(t).N += 1000
					edited, changed = p, p.o.Ref().String()
				}
			}
		}
	})
	if err != nil || changed == "" {
		return
	}
	_, err = again.Step()
	var differs *netloop.Divergence
	var unrecorded *netloop.NotReplayable
	switch {
	case errors.Is(err, io.EOF), errors.As(err, &unrecorded):
	case err == nil && !edited.alive(): // It was despawned before the next snapshot.
	case !errors.As(err, &differs) || !strings.Contains(err.Error(), "pawn.N") || !strings.Contains(err.Error(), changed):
		r.p.fail("recordings", "pawn.N of %s was changed in the replay of room %q, which ends with %v", changed, one.name, err)
	}
}

// edit changes a field of a record, as another version of the game would have recorded it.
func edit(b []byte, rng *rand.Rand) []byte {
	var t recording.Tick
	if recording.ReadTick(b, &t) != nil {
		return b
	}
	if n := len(t.Arrivals); n > 0 {
		a := &t.Arrivals[rng.IntN(n)]
		switch rng.IntN(6) {
		case 0:
			a.Message.Method += 1000
		case 1:
			a.Message.Payload = []byte{0xff, 0xff, 0xff, 0xff}
		case 2:
			a.Closed, a.Entrance = nil, nil
		case 3:
			t.Arrivals = append(t.Arrivals, *a)
		case 4:
			if a.Entrance != nil {
				a.Entrance.Join = []byte{0xff, 0xff, 0xff}
			}
		default:
			a.Client++
		}
	}
	if n := len(t.Posts); n > 0 {
		if p := &t.Posts[rng.IntN(n)]; rng.IntN(2) == 0 {
			p.Method += 1000
		} else {
			p.Msg = []byte{0xff, 0xff, 0xff}
		}
	}
	if n := len(t.Results); n > 0 {
		if r := &t.Results[rng.IntN(n)]; rng.IntN(2) == 0 {
			r.Work += 1000
		} else {
			r.Value = []byte{0xff, 0xff}
		}
	}
	switch rng.IntN(8) {
	case 0:
		t.Input.Tick += 2
	case 1:
		t.Sent++
	case 2:
		t.Drain = true
	}
	if out, err := recording.AppendTick(nil, &t); err == nil {
		return out
	}
	return b
}

// damage changes a record, or its bytes.
func (r *replicas) damage(name string, head []byte, records [][]byte, rng *rand.Rand) {
	var file bytes.Buffer
	w, err := recording.NewWriter(&file, head)
	at := 1 + rng.IntN(len(records)-1)
	for i, b := range records {
		if b = bytes.Clone(b); i == at && rng.IntN(2) == 0 {
			b = edit(b, rng)
		} else if i == at && len(b) > 0 {
			for range 1 + rng.IntN(3) {
				b[rng.IntN(len(b))] = byte(rng.Uint64())
			}
		}
		if err == nil {
			err = w.Write(b)
		}
	}
	if err != nil {
		r.p.fail("recordings", "a changed recording of room %q cannot be written: %v", name, err)
	}
	r.again(file.Bytes(), at+3)
}

// again replays some ticks of a file, which may be damaged.
func (r *replicas) again(file []byte, ticks int) {
	shadow := newPlay(r.p.story)
	shadow.shadow = true
	again, err := netloop.NewReplay(netloop.Config{}, shadow.game(), bytes.NewReader(file))
	for i := 0; err == nil && i < ticks; i++ {
		_, err = again.Step()
	}
}
