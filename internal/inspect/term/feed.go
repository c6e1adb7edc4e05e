package term

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/slowtick"
)

// Server is the admin listener of a running server.
type Server interface {
	// Stream opens a page that never ends. Reading from it fails after a long silence of the
	// server, or when ctx ends.
	Stream(ctx context.Context, page string, query url.Values) (io.ReadCloser, error)
	// Ask returns the content of a page.
	Ask(ctx context.Context, method, page string, query url.Values) ([]byte, error)
	// Now returns the time since some fixed point.
	Now() time.Duration
}

// The messages to the model: events of the stream with the time of their arrival, the state of the
// stream, and notes.
type (
	overviewEvent struct {
		at time.Duration
		inspect.Overview
	}
	valuesEvent struct {
		at     time.Duration
		values map[string][]metrics.Value
	}
	clientsEvent struct {
		at time.Duration
		inspect.Clients
	}
	roomsEvent struct{ directory.Page }
	ticksEvent struct{ slowtick.Report }
	worstEvent struct{ slowtick.Report }

	// link is the state of the stream, as a text.
	link struct {
		text string
		up   bool
	}
	// note is a line that is shown for some seconds: the outcome of an action, or the error of a
	// topic.
	note struct {
		text  string
		wrong bool
	}
)

// The pauses between attempts to connect.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 2 * time.Second
)

// maxEvent bounds an event of the stream, in bytes: 600 ticks with all their systems are 4 MiB.
const maxEvent = 16 << 20

// feed reads the server's stream.
type feed struct {
	server Server
	send   func(tea.Msg)

	mu   sync.Mutex
	room string
	stop context.CancelFunc // ends the open stream
}

// follow reads the ticks and clients of another room from now on; "" is the default room.
func (f *feed) follow(room string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = room
	if f.stop != nil {
		f.stop()
	}
}

// next returns the context and the room of the next stream.
func (f *feed) next(ctx context.Context) (context.Context, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop != nil {
		f.stop()
	}
	ctx, f.stop = context.WithCancel(ctx)
	return ctx, f.room
}

// run reads one stream after another and sends their events to the model, until ctx ends.
func (f *feed) run(ctx context.Context) {
	for wait := firstPause; ctx.Err() == nil; {
		one, room := f.next(ctx)
		open, err := f.stream(one, room)
		if one.Err() != nil { // Another room was chosen, or ctx ended.
			continue
		}
		if open {
			wait = firstPause
		}
		f.send(link{text: err.Error()})
		clock.Sleep(one, wait)
		wait = min(2*wait, lastPause)
	}
}

// stream reads one stream to its end, and reports whether it was opened.
func (f *feed) stream(ctx context.Context, room string) (open bool, err error) {
	query := inRoom(room)
	query["topic"] = []string{"overview", "rooms", "metrics", "ticks", "clients"}
	query["prefix"] = []string{"clients", "transport_bytes"}
	body, err := f.server.Stream(ctx, "api/stream", query)
	if err != nil {
		return false, fmt.Errorf("%w: trying again", err)
	}
	defer func() { _ = body.Close() }() // Close of a reader loses no data.
	f.send(link{text: "live", up: true})
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	topic := ""
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			topic = name
		} else if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			msg, err := decode(topic, data, f.server.Now())
			if err != nil {
				return true, fmt.Errorf("the server is of another version: %s: %w", topic, err)
			}
			f.send(msg)
		}
	}
	if lines.Err() != nil {
		return true, errors.New("the server does not answer: trying again")
	}
	return true, errors.New("the server has closed the stream: trying again")
}

// inRoom returns the query for a page about a room.
func inRoom(room string) url.Values {
	if room == "" {
		return url.Values{}
	}
	return url.Values{"room": {room}}
}

// decode returns the message for an event, nil for an unknown topic.
func decode(topic string, data []byte, at time.Duration) (msg tea.Msg, err error) {
	switch topic {
	case "overview":
		m := overviewEvent{at: at}
		err = json.Unmarshal(data, &m.Overview)
		if err == nil && (len(m.Windows) < 3 || m.Budget <= 0) {
			err = errors.New("it has no windows")
		}
		msg = m
	case "metrics":
		m := valuesEvent{at: at}
		err = json.Unmarshal(data, &m.values)
		msg = m
	case "clients":
		m := clientsEvent{at: at}
		err = json.Unmarshal(data, &m.Clients)
		msg = m
	case "rooms":
		m := roomsEvent{}
		err = json.Unmarshal(data, &m.Page)
		msg = m
	case "ticks":
		m := ticksEvent{}
		err = json.Unmarshal(data, &m.Report)
		msg = m
	case "trouble":
		var t struct{ Topic, Text string }
		err = json.Unmarshal(data, &t)
		msg = note{t.Topic + ": " + t.Text, true}
	}
	return msg, err
}

// worst requests the slowest ticks of a room.
func (f *feed) worst(ctx context.Context, room string) tea.Msg {
	body, err := f.server.Ask(ctx, http.MethodGet, "ticks/slow", inRoom(room))
	m := worstEvent{}
	if err == nil {
		err = json.Unmarshal(body, &m.Report)
	}
	if err != nil {
		return nil // The stream reports the same error.
	}
	return m
}

// kick removes a client.
func (f *feed) kick(ctx context.Context, room string, client uint64) tea.Msg {
	query := inRoom(room)
	query.Set("client", strconv.FormatUint(client, 10))
	body, err := f.server.Ask(ctx, http.MethodPost, "api/clients/kick", query)
	if err != nil {
		return note{err.Error(), true}
	}
	return note{text: strings.TrimSpace(string(body))}
}
