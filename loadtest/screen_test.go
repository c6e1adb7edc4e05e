package loadtest

import (
	"fmt"
	"strings"
	"testing"
)

func TestAFileKeepsEveryLine(t *testing.T) {
	var b strings.Builder
	s := newScreen(&b, false)
	s.progress("one")
	s.progress("two")
	if want := "one\ntwo\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestQuietPrintsOnlyNotes(t *testing.T) {
	var b strings.Builder
	s := newScreen(&b, true)
	s.progress("one")
	s.note("two")
	if want := "two\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestNotesAreBounded(t *testing.T) {
	var b strings.Builder
	s := newScreen(&b, false)
	for i := range 1000 {
		s.logger().Error("a handler panicked", "n", fmt.Sprint(i))
	}
	if n := strings.Count(b.String(), "\n"); n != maxNotes || !strings.HasSuffix(b.String(), "left out\n") {
		t.Errorf("%d lines, the last one %q", n, b.String()[max(0, b.Len()-40):])
	}
}
