package term

import (
	"context"
	"io"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/inspect"
)

// The shown room has its own name, or that of the default room once an overview has arrived.
func TestTheNameOfTheShownRoom(t *testing.T) {
	arena := &inspect.Overview{Room: "arena"}
	for _, c := range []struct {
		room     string
		overview *inspect.Overview
		want     string
	}{
		{"", nil, "(default)"}, {"", &inspect.Overview{}, "(default)"}, {"", arena, "arena"}, {"lobby", nil, "lobby"}, {"lobby", arena, "lobby"},
	} {
		if got := (&model{room: c.room, overview: c.overview}).roomName(); got != c.want {
			t.Errorf("the room %q with the overview %v is %q, want %q", c.room, c.overview, got, c.want)
		}
	}
}

// The columns of clients are left out from the highest rank on, the last one of a rank first.
func TestNarrowScreensLeaveOutColumns(t *testing.T) {
	table := clientTable()
	var gone []string
	was := table.visible(1000)
	for width := 300; width > 0; width-- {
		shown := table.visible(width)
		for _, i := range was {
			if !slices.Contains(shown, i) {
				gone = append(gone, table.columns[i].title)
			}
		}
		was = shown
	}
	want := []string{"loss", "joined", "margin ms", "address", "missed", "silent", "transport", "in flight"}
	if !slices.Equal(gone[:len(want)], want) {
		t.Errorf("left out are %q, want %q first", gone, want)
	}
}

// contexts counts streams, and those opened before the context of the last one had ended.
type contexts struct {
	scripted
	last         context.Context
	opened, kept int
}

func (c *contexts) Stream(ctx context.Context, page string, query url.Values) (io.ReadCloser, error) {
	if c.opened++; c.last != nil && c.last.Err() == nil {
		c.kept++
	}
	c.last = ctx
	return c.scripted.Stream(ctx, page, query)
}

// The context of a stream has ended before the next stream opens.
func TestAStreamIsReleasedBeforeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &contexts{scripted: scripted{streams: []string{tickOne, tickOne, tickOne}}}
		if fed(t, s, 10*time.Second, nil); s.opened != 3 || s.kept != 0 {
			t.Errorf("of %d streams %d were opened while the one before was kept", s.opened, s.kept)
		}
	})
}
