package history_test

import (
	"bytes"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/inspect/history"
)

// benchLengths calls fn with recordings of the arena with 20 players: of a minute, and of an hour,
// which takes half an hour to record, with NETLOOP_VERIFY=1.
func benchLengths(b *testing.B, fn func(b *testing.B, file []byte, ticks uint64)) {
	const minute = 60 * 60
	for _, l := range []struct {
		name  string
		ticks int
	}{{"a minute", minute}, {"an hour", 60 * minute}} {
		b.Run(l.name, func(b *testing.B) {
			if l.ticks > minute && os.Getenv("NETLOOP_VERIFY") == "" {
				b.Skip("recording an hour takes half an hour: NETLOOP_VERIFY=1 does it")
			}
			if benchFiles[l.ticks] == nil {
				benchFiles[l.ticks] = recordArena(b, 7, l.ticks, 20)
			}
			fn(b, benchFiles[l.ticks], uint64(l.ticks))
		})
	}
}

// benchFiles has the recordings of benchLengths by their ticks.
var benchFiles = map[int][]byte{}

// BenchmarkOpen measures the time from the command until the first state is shown, and in another
// run until the replay has ended.
func BenchmarkOpen(b *testing.B) {
	benchLengths(b, func(b *testing.B, file []byte, ticks uint64) {
		for name, at := range map[string]uint64{"first state": 1, "last state": ticks} {
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					r, err := history.Open(history.Config{Name: "test.rec", File: bytes.NewReader(file), Size: int64(len(file)), Replay: replayOf(newArena), Temp: b.TempDir()})
					if err != nil {
						b.Fatal(err)
					}
					if at == ticks {
						r.Wait()
					}
					for shown := false; !shown; runtime.Gosched() {
						_, err := r.State(at, "", 0)
						shown = err == nil
					}
					b.StopTimer()
					if err := r.Close(); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			})
		}
	})
}

// BenchmarkStep measures a step to a tick of a whole recording: its state, and the changes since
// the tick before. Each step is to a tick far from the last one. ms-at-most is the longest step.
func BenchmarkStep(b *testing.B) {
	benchLengths(b, func(b *testing.B, file []byte, ticks uint64) {
		r := opened(b, file)
		most := time.Duration(0)
		for at := uint64(2); b.Loop(); at = 2 + (at+99_991)%(ticks-2) {
			began := time.Now()
			if _, err := r.State(at, "", 0); err != nil {
				b.Fatal(err)
			}
			if _, err := r.Diff(at, at-1); err != nil {
				b.Fatal(err)
			}
			most = max(most, time.Since(began))
		}
		b.ReportMetric(float64(most.Microseconds())/1000, "ms-at-most")
	})
}
