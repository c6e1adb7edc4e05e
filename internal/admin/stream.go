package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/connlimit"
)

// streamPath is the path of the live data.
const streamPath = "/api/stream"

const (
	// maxStreams bounds the open streams. Each is a tab of a browser, or a terminal.
	maxStreams = 16
	// maxTopics bounds the topics of a stream: a page shows a few at a time.
	maxTopics = 8
	// streamPeriod is the time between two rounds of events.
	streamPeriod = 250 * time.Millisecond
	// streamBuffer is the size of the kernel's buffer for unread events, in bytes. streamWait is
	// the time after which a stream with a full buffer is closed.
	streamBuffer = 64 << 10
	streamWait   = 5 * time.Second
)

// Topic is a kind of live data.
type Topic struct {
	// Page is the path of the page with the content of the events.
	Page string
	// Rounds is the number of stream periods (250 ms) from one event to the next, at least 1.
	Rounds int
	// Next returns the data of the next event, or nil if there is no new data. query is the query
	// of the stream. The topic stores its position in last, which is 0 for the first event.
	Next func(ctx context.Context, query url.Values, last *uint64) (any, error)
}

// streams are the open streams of a listener.
type streams struct {
	cfg     Config
	places  chan struct{}
	closing chan struct{}
}

func newStreams(cfg Config) *streams {
	return &streams{cfg: cfg, places: make(chan struct{}, maxStreams), closing: make(chan struct{})}
}

// close ends all streams. It is called once.
func (s *streams) close() { close(s.closing) }

// stream returns the handler of the live data, for clients with the role read.
func (a *access) stream(s *streams) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn := connlimit.FromContext(r.Context())
		defer conn.Busy()()
		r, ok := a.admit(w, r, reader)
		if !ok {
			return
		}
		select {
		case s.places <- struct{}{}:
			defer func() { <-s.places }()
		default:
			a.counts.Busy.Add(1)
			busy(w, fmt.Sprintf("%d streams are open, which is the limit: close a tab of the inspector", maxStreams))
			return
		}
		query := r.URL.Query()
		subscribed, err := s.subscribe(query["topic"])
		if err != nil {
			refuse(w, err)
			return
		}
		if tcp, ok := conn.Conn.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(streamBuffer / 2) // Linux takes twice the size.
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		s.serve(ctx, w, query, subscribed)
	}
}

// subscription is one topic of a stream.
type subscription struct {
	Topic
	name string
	last uint64 // position in the topic
	text string // text of the last error, which is sent only once
}

// subscribe returns the topics of a stream, or a *Refusal.
func (s *streams) subscribe(names []string) ([]*subscription, error) {
	var all []*subscription
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		topic, ok := s.cfg.Topics[name]
		if !ok {
			return nil, Refuse(http.StatusNotFound, "there is no topic %.40q", name)
		}
		all = append(all, &subscription{Topic: topic, name: name})
	}
	if len(all) == 0 || len(all) > maxTopics {
		return nil, Refuse(http.StatusBadRequest, "topic: give 1 to %d topics, such as topic=overview", maxTopics)
	}
	return all, nil
}

// serve sends events until the client disconnects, stops reading, or the listener closes.
func (s *streams) serve(ctx context.Context, w http.ResponseWriter, query url.Values, all []*subscription) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // A proxy such as nginx forwards each event at once.
	out := http.NewResponseController(w)
	// Remove the deadline for reading the request: it would end the stream.
	_ = out.SetReadDeadline(time.Time{})
	tick := time.NewTicker(streamPeriod)
	defer tick.Stop()
	for round := 0; ; round++ {
		var b bytes.Buffer
		for _, t := range all {
			if round%t.Rounds == 0 {
				t.append(ctx, &b, query)
			}
		}
		if b.Len() == 0 && round%int(streamWait/streamPeriod) == 0 {
			// Without this line a client that has vanished would never be detected.
			b.WriteString(": still here\n\n")
		}
		if b.Len() > 0 && !s.write(w, out, b.Bytes()) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-s.closing:
			return
		}
	}
}

// write sends events, and reports whether the client has accepted them.
func (s *streams) write(w http.ResponseWriter, out *http.ResponseController, b []byte) bool {
	_ = out.SetWriteDeadline(time.Now().Add(streamWait))
	_, err := w.Write(b)
	if err == nil {
		err = out.Flush()
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		s.cfg.Counts.Slow.Add(1)
	}
	return err == nil
}

// append appends the topic's next event, if there is new data.
func (t *subscription) append(ctx context.Context, b *bytes.Buffer, query url.Values) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	v, err := t.Next(ctx, query, &t.last)
	if err != nil {
		if err.Error() != t.text {
			t.text = err.Error()
			line, _ := json.Marshal(struct { // Strings can be encoded.
				Topic string `json:"topic"`
				Text  string `json:"text"`
			}{t.name, strings.ToValidUTF8(t.text, "?")})
			fmt.Fprintf(b, "event: trouble\ndata: %s\n\n", line)
		}
		return
	}
	t.text = ""
	if v == nil {
		return
	}
	line, err := json.Marshal(v)
	if err != nil {
		s, _ := json.Marshal(err.Error())
		fmt.Fprintf(b, "event: trouble\ndata: {\"topic\":%q,\"text\":%s}\n\n", t.name, s)
		return
	}
	fmt.Fprintf(b, "event: %s\ndata: %s\n\n", t.name, line)
}
