package logging

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run logs with a fresh logger and returns the output after Close.
func run(t interface{ Fatal(...any) }, cfg Config, log func(*slog.Logger)) string {
	var out bytes.Buffer
	cfg.Out = &out
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	log(l.Slog())
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// One entry is one line of printable characters, for any content.
func TestTextCannotForgeLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		message, key, value := rapid.String().Draw(t, "message"), rapid.String().Draw(t, "key"), rapid.String().Draw(t, "value")
		if rapid.Bool().Draw(t, "broken") {
			message = string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		}
		got := run(t, Config{}, func(l *slog.Logger) { l.With(key, value).Info(message, key, value) })
		line, ok := strings.CutSuffix(got, "\n")
		if !ok {
			t.Fatalf("no line end: %q", got)
		}
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Fatalf("%U in %q", r, line)
			}
		}
	})
}

func TestTextContainsAllFields(t *testing.T) {
	got := run(t, Config{Format: "text"}, func(l *slog.Logger) {
		l.Warn("chat\nFAKE \x1b[31mred\xff\u202e", "from", 7)
	})
	want := ` WARN chat\nFAKE \x1b[31mred\xff\u202e {"from": 7}` + "\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want it to end in %q", got, want)
	}
}

func TestJSONIsOneObjectPerEntry(t *testing.T) {
	got := run(t, Config{Format: "json"}, func(l *slog.Logger) {
		l.Error("a\nb", "took", 3*time.Millisecond, slog.Group("room", "tick", 9))
	})
	var entry struct {
		Level, Msg, Took, Time string
		Room                   struct{ Tick int }
	}
	if err := json.Unmarshal([]byte(got), &entry); err != nil {
		t.Fatalf("%v in %q", err, got)
	}
	if entry.Level != "error" || entry.Msg != "a\nb" || entry.Took != "3ms" || entry.Room.Tick != 9 {
		t.Errorf("got %+v from %s", entry, got)
	}
	if strings.Count(got, "\n") != 1 || strings.Contains(got, "stack") {
		t.Errorf("want one line without a stack: %q", got)
	}
}

func TestLevels(t *testing.T) {
	var out bytes.Buffer
	l, err := New(Config{Level: "warn", Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	l.Slog().Info("one")
	if err := l.SetLevel("debug"); err != nil {
		t.Fatal(err)
	}
	l.Slog().Debug("two")
	if err := l.SetLevel("loud"); err == nil || !strings.Contains(err.Error(), "log-level") {
		t.Errorf("got %v, want an error that names the key", err)
	}
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, "one") || !strings.Contains(s, "DEBUG two") {
		t.Errorf("got %q", s)
	}
	for _, cfg := range []Config{{Level: "loud"}, {Format: "xml"}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

// blockedOutput is an output that blocks until it is opened.
type blockedOutput struct {
	open chan struct{}
	mu   sync.Mutex
	bytes.Buffer
}

func (b *blockedOutput) Write(p []byte) (int, error) {
	<-b.open
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// With a blocked output, logging continues without waiting, memory is bounded, and every line is
// either written or counted as dropped.
func TestBlockedOutputNeverBlocksTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &blockedOutput{open: make(chan struct{})}
		l, err := New(Config{Out: out, MaxPending: 2000})
		if err != nil {
			t.Fatal(err)
		}
		const lines = 1000
		log := l.Slog()
		for range lines {
			log.Info("line") // would deadlock the bubble if it waited
		}
		dropped := l.Dropped()
		if dropped == 0 {
			t.Error("nothing was dropped")
		}
		if l.zap.Sync() != nil {
			t.Error("Sync must not fail")
		}
		close(out.open)
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		written := uint64(strings.Count(out.String(), " INFO line\n"))
		if written+dropped != lines {
			t.Errorf("%d written + %d dropped, want %d", written, dropped, lines)
		}
		if !strings.Contains(out.String(), "log lines were dropped") {
			t.Error("no line reports the missing ones")
		}
		log.Info("after close")
		if l.Dropped() != dropped+1 {
			t.Error("a line after Close must count as dropped")
		}
	})
}

func TestCloseReturnsWhenItsContextEnds(t *testing.T) {
	out := &blockedOutput{open: make(chan struct{})}
	l, err := New(Config{Out: out})
	if err != nil {
		t.Fatal(err)
	}
	l.Slog().Info("stuck")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(out.open)
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

type brokenOutput struct{}

func (brokenOutput) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Lines that the output refuses, or that are longer than the buffer, are counted.
func TestFailingOutputCounts(t *testing.T) {
	for _, cfg := range []Config{{Out: brokenOutput{}}, {Out: io.Discard, MaxPending: 1}} {
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			l.Slog().Info("lost")
		}
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if l.Dropped() != 10 {
			t.Errorf("%d dropped with %+v, want 10", l.Dropped(), cfg)
		}
	}
}

func BenchmarkInfo(b *testing.B) {
	l, err := New(Config{Format: "json", Out: io.Discard})
	if err != nil {
		b.Fatal(err)
	}
	log := l.Slog().With("room", "")
	b.ReportAllocs()
	for b.Loop() {
		log.Info("message", "tick", 12345)
	}
	_ = l.Close(context.Background())
}
