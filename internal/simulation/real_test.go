package simulation

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// storiesAtOnce is the number of stories in real time that run at once: they mostly wait.
const storiesAtOnce = 12

// TestRealStories plays the stories of seeds over QUIC, WebTransport, WebSockets and in the
// process, in real time. Such a story is not the same each time.
func TestRealStories(t *testing.T) {
	first, n := uint64(1), uint64(storiesAtOnce)
	if testing.Short() {
		n = 1 // It takes ten seconds.
	}
	if *count > 0 {
		first, n = *from, *count
	}
	var sealed atomic.Uint64
	before := runtime.NumGoroutine()
	began, slots := time.Now(), make(chan struct{}, storiesAtOnce)
	var all sync.WaitGroup
	for seed := first; seed < first+n; seed++ {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			sealed.Add(playReal(t, drawReal(seed)))
		})
	}
	all.Wait()
	t.Logf("%d stories in %v, with %d sealed records", n, time.Since(began).Round(time.Millisecond), sealed.Load())
	if n >= storiesAtOnce && sealed.Load() == 0 {
		t.Error("no datagram has travelled beside QUIC")
	}
	for by := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+2; time.Sleep(nap) {
		if time.Now().After(by) {
			t.Fatalf("%d goroutines run before the stories, and %d after them\n%s", before, runtime.NumGoroutine(), stacks())
		}
	}
}

// playReal plays a story in real time, and returns the number of its sealed records. If it fails it
// prints the story and its transcript.
func playReal(t *testing.T, s *Story) (sealed uint64) {
	t.Helper()
	p := newPlay(s)
	p.keep, p.real, p.make = true, true, p.realTime
	began := time.Now()
	p.run()
	w := p.w.(*realWorld)
	sealed = w.sum("netloop_records_total")
	w.close()
	if p.finding == nil {
		p.resources.over()
	}
	p.saves.release()
	w.unlock()
	if p.finding == nil {
		if testing.Verbose() {
			t.Logf("seed %d: %d events, %d bots, %v", s.Seed, len(s.Events), len(p.all), time.Since(began).Round(time.Millisecond))
		}
		return sealed
	}
	t.Errorf("seed %d: %s, at %v: %s\nrerun: make simulate REAL=1 SEEDS=1 FROM=%d\n%v", s.Seed, p.finding.Check, p.finding.At, p.finding.Text, s.Seed, s)
	for _, line := range p.lines {
		t.Log(line)
	}
	return sealed
}
