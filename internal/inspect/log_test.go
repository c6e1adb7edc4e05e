package inspect

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// A kept line has the attributes of its logger, groups included, and the other handler gets it too.
func TestALineIsKeptAndPassedOn(t *testing.T) {
	var out bytes.Buffer
	var l Log
	log := slog.New(l.Tee(slog.NewTextHandler(&out, nil)))
	log.Debug("below the level")
	slog.New(l.Tee(slog.DiscardHandler)).Info("kept all the same")
	log.With("room", "lobby").WithGroup("by").With("client", 3).Warn("late", "ticks", 7, slog.Group("at", "x", 1))
	if h := l.Tee(slog.DiscardHandler); h.WithGroup("") != h {
		t.Error("a group without a name is a group")
	}
	log.WithGroup("").Info(strings.Repeat("x", 2*maxLogText), "", "no key", slog.Group("", "y", 2))
	lines := l.After(0)
	if len(lines) != 3 || lines[0].Text != "kept all the same" {
		t.Fatalf("%d lines", len(lines))
	}
	lines = lines[1:]
	if got, want := fmt.Sprintf("%d %s %s %s", lines[0].Number, lines[0].Level, lines[0].Text, lines[0].Attrs), "2 WARN late [[room lobby] [by.client 3] [by.ticks 7] [by.at.x 1]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := lines[1]; len(got.Text) != maxLogText+len("…") || fmt.Sprint(got.Attrs) != "[[y 2]]" {
		t.Errorf("%d bytes, %v", len(got.Text), got.Attrs)
	}
	if text := out.String(); !strings.Contains(text, "room=lobby by.client=3 by.ticks=7 by.at.x=1") || strings.Count(text, "\n") != 2 {
		t.Errorf("the other handler: %s", text)
	}
}

// A text is cut behind its limit.
func TestTextsAreCutBehindTheirLimit(t *testing.T) {
	most := strings.Repeat("x", maxLogText)
	if cut(most) != most || cut(most+"x") != most+"…" {
		t.Errorf("%d and %d bytes", len(cut(most)), len(cut(most+"x")))
	}
}

// A line that is being written, or that a later line has replaced, is left out.
func TestALogLeavesOutLinesInChange(t *testing.T) {
	var l Log
	for range 2 {
		l.keep(LogLine{})
	}
	l.next.Add(1) // A writer has the number 3, and has not stored its line.
	l.keep(LogLine{})
	l.lines[1].Store(&LogLine{Number: 1 + LogLines}) // A writer that is ahead.
	if lines := l.After(0); len(lines) != 2 || lines[0].Number != 2 || lines[1].Number != 4 {
		t.Errorf("%+v", lines)
	}
}

// A log keeps its newest lines, and returns those that a reader has not seen.
func TestALogKeepsItsNewestLines(t *testing.T) {
	var l Log
	log := slog.New(l.Tee(slog.NewTextHandler(&bytes.Buffer{}, nil)))
	if len(l.After(0)) != 0 {
		t.Error("an empty log has lines")
	}
	for i := range 3 * LogLines / 2 {
		log.Info(fmt.Sprint(i + 1))
	}
	lines := l.After(0)
	if len(lines) != LogLines || lines[0].Text != fmt.Sprint(LogLines/2+1) || lines[LogLines-1].Text != fmt.Sprint(3*LogLines/2) {
		t.Errorf("%d lines from %s", len(lines), lines[0].Text)
	}
	if lines = l.After(3*LogLines/2 - 2); len(lines) != 2 {
		t.Errorf("%d lines", len(lines))
	}
	many := make([]any, 4*maxLogAttrs)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	log.With(many...).Info("many", many...)
	if lines = l.After(3 * LogLines / 2); len(lines[0].Attrs) != maxLogAttrs {
		t.Errorf("%d attributes", len(lines[0].Attrs))
	}
}
