package panicguard

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// bench is a guard with its log and counts for the test.
type bench struct {
	Guard
	log    bytes.Buffer
	counts map[string]int
	now    time.Duration
}

func newBench() *bench {
	b := &bench{counts: map[string]int{}}
	b.Log = slog.New(slog.NewTextHandler(&b.log, nil))
	b.Now = func() time.Duration { return b.now }
	b.Count = func(name string) { b.counts[name]++ }
	return b
}

func (b *bench) call(at *Func, fn func()) (failed error) {
	defer b.Recover(at, func(err error) { failed = err })
	fn()
	return nil
}

// lines empties the log and returns how many lines it had.
func (b *bench) lines() int {
	n := strings.Count(b.log.String(), "\n")
	b.log.Reset()
	return n
}

func TestAPanicIsCountedToldAndHandedOver(t *testing.T) {
	b := newBench()
	at := &Func{Name: "OnThing", Class: "ship", Effect: "it is lost"}
	if err := b.call(at, func() {}); err != nil || b.log.Len() != 0 || len(b.counts) != 0 {
		t.Fatalf("without a panic: %v, %q, %v", err, b.log.String(), b.counts)
	}
	err := b.call(at, func() { panic("ouch") })
	if err == nil || err.Error() != "OnThing panicked: ouch" || b.counts["OnThing"] != 1 {
		t.Errorf("it became %v, counted %v", err, b.counts)
	}
	for _, want := range []string{`msg="a hook panicked"`, "hook=OnThing", "of=ship", `so="it is lost"`, "panic=ouch", "TestAPanicIsCounted", "unlogged_before=0"} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, b.log.String())
		}
	}
	func() {
		defer b.Recover(at, nil)
		panic("again")
	}()
	if b.counts["OnThing"] != 2 {
		t.Errorf("without a function for it: counted %v", b.counts)
	}
}

func TestAFunctionIsLoggedOnceInTenSeconds(t *testing.T) {
	b := newBench()
	at := &Func{Kind: Handler, Name: "buy"}
	for range 5 {
		b.Panicked(at, "ouch", []byte("the stack"), "from", 7)
		b.Failed(at, errors.New("no"), "from", 7)
	}
	text := b.log.String()
	if n := b.lines(); n != 2 || !strings.Contains(text, `msg="a handler panicked" method=buy from=7 panic=ouch stack="the stack" unlogged_before=0`) ||
		!strings.Contains(text, `msg="a handler failed" method=buy from=7 error=no unlogged_before=0`) {
		t.Errorf("told of in %d lines:\n%s", n, text)
	}
	for _, other := range []*Func{{Kind: Hook, Name: "buy"}, {Kind: Handler, Name: "sell"}, {Kind: Handler, Name: "buy", Class: "ship"}} {
		b.Panicked(other, "ouch", nil)
		if n := b.lines(); n != 1 {
			t.Errorf("%v is another place: %d lines", *other, n)
		}
	}
	b.now = 10*time.Second - 1
	b.Panicked(at, "ouch", nil)
	if n := b.lines(); n != 0 {
		t.Errorf("told of %d times before the time was over", n)
	}
	b.now = 10 * time.Second
	b.Panicked(at, "ouch", nil)
	if text := b.log.String(); b.lines() != 1 || !strings.Contains(text, "unlogged_before=5") {
		t.Errorf("afterwards: %s", text)
	}
	b.Panicked(at, "ouch", nil)
	b.now = 20 * time.Second
	b.Panicked(at, "ouch", nil)
	if text := b.log.String(); b.lines() != 1 || !strings.Contains(text, "unlogged_before=1") {
		t.Errorf("what was told of is counted again: %s", text)
	}
	if b.counts["buy"] != 5+2+4 {
		t.Errorf("counted %v", b.counts)
	}
}

// Functions on goroutines other than the room's share a guard.
func TestAGuardServesManyGoroutines(t *testing.T) {
	b := newBench()
	b.Count = func(string) {}
	done := make(chan error)
	for range 4 {
		go func() { done <- b.call(&Func{Name: "OnAdmit"}, func() { panic("ouch") }) }()
	}
	for range 4 {
		if err := <-done; err == nil {
			t.Error("a panic is no error")
		}
	}
	if n := b.lines(); n != 1 {
		t.Errorf("told of in %d lines", n)
	}
}

func TestWithoutAPanicAGuardAllocatesNothing(t *testing.T) {
	b := newBench()
	sum, name := 0, "ship"
	n := testing.AllocsPerRun(100, func() {
		func() {
			defer b.Recover(&Func{Name: "OnThing", Class: name, Effect: "it is lost"}, func(error) { sum = 0 })
			sum++
		}()
	})
	if n != 0 || sum == 0 {
		t.Errorf("%v allocations, %d calls", n, sum)
	}
}

func BenchmarkGuardedCall(b *testing.B) {
	g, sum := newBench(), 0
	call := func() {
		defer g.Recover(&Func{Name: "OnThing", Class: "ship"}, nil)
		sum++
	}
	for b.Loop() {
		call()
	}
}
