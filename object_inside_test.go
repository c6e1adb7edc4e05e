package netloop

import (
	"context"
	"strings"
	"testing"
)

// spawned returns an object of a room, and the room.
func spawned(tb testing.TB, c Config) (*Room, *Object[hiddenState]) {
	s, err := New(c, new(judgedGame))
	if err != nil {
		tb.Fatal(err)
	}
	var o *Object[hiddenState]
	if err := s.room.e.Inspect(func() { o = hiddenOnes.Spawn(&s.room.tick, hiddenState{N: 7}) }); err != nil {
		tb.Fatal(err)
	}
	return s.room, o
}

// With CheckEdits, State panics in work given to Go and nowhere else.
func TestStateIsForTheRoomsGoroutine(t *testing.T) {
	for checked, want := range map[bool]string{true: "Object.State: this goroutine is not the room's", false: ""} {
		r, o := spawned(t, Config{CheckEdits: checked})
		var got error
		delivered := false
		if err := r.e.Inspect(func() {
			Go(&r.tick, func(context.Context) (int32, error) { return o.State().N, nil }, func(_ *Tick, _ int32, err error) { got, delivered = err, true })
		}); err != nil {
			t.Fatal(err)
		}
		if o.State().N != 7 {
			t.Errorf("beside the work the state is %+v", o.State())
		}
		for n := uint64(1); !delivered; n++ {
			if err := r.e.Step(r.e.Timeline().Input(n)); err != nil {
				t.Fatal(err)
			}
		}
		if (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("with CheckEdits %v: %v, want %q", checked, got, want)
		}
	}
}

func BenchmarkState(b *testing.B) {
	for name, checked := range map[string]bool{"plain": false, "checked": true} {
		b.Run(name, func(b *testing.B) {
			_, o := spawned(b, Config{CheckEdits: checked})
			b.ReportAllocs()
			for b.Loop() {
				_ = o.State()
			}
		})
	}
}
