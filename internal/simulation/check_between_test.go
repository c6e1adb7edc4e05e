package simulation

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
)

// between checks messages between rooms and to the program. The documents: the comments of
// RPC.SendRoom, SendServer and HandleServer.
//
//   - A message runs once, at its stage, after the earlier ones of its sender, or its sender is
//     told that it does not run and a metric counts it.
//   - Later no message is under way.
type between struct {
	p       *play
	talks   map[talkKey]*talkFacts
	last    map[talkLine]uint64
	crashes bool
}

// program is the receiver of messages to the program; no room has that name.
const program = "the program"

type talkKey struct {
	from roomKey
	seq  uint64
	to   string
}

// talkLine identifies messages that keep their order.
type talkLine struct {
	from, to roomKey
	stage    netloop.Stage
}

type talkFacts struct {
	ran  int
	told bool
	lost bool // by a crash
	at   time.Duration
}

func newBetween(p *play) between {
	return between{p: p, talks: map[talkKey]*talkFacts{}, last: map[talkLine]uint64{}}
}

func (b *between) sent(k talkKey) {
	if b.p.w != nil {
		b.talks[k] = &talkFacts{at: b.p.w.Now()}
	}
}

// ran notes a message that runs in a room, or in the program. The key of the program has only a
// name.
func (b *between) ran(in roomKey, at netloop.Stage, from *netloop.Sender, m talk) {
	sender := roomKey{inc: m.Room}
	if from != nil {
		sender.name = from.Room
	}
	t := b.talks[talkKey{sender, m.Seq, in.name}]
	if t == nil {
		if b.p.w != nil {
			b.p.fail("between", "room %q gets message %d of room %q, which did not send it", in.name, m.Seq, sender.name)
		}
		return
	}
	line := talkLine{sender, in, m.Stage}
	if t.ran++; t.ran > 1 || b.last[line] >= m.Seq || in.name != program && at != m.Stage {
		b.p.fail("between", "room %q runs message %d of room %q for the %d. time, at %v and not %v, after %d", in.name, m.Seq, sender.name, t.ran, at, m.Stage, b.last[line])
	}
	b.last[line] = m.Seq
}

// told notes the result that a sender is told.
func (b *between) told(k talkKey, err error) {
	t := b.talks[k]
	if t == nil {
		return // A replay.
	}
	if t.told || (err == nil) != (t.ran == 1) {
		b.p.fail("between", "room %q has run message %d of %q %d times, and its sender is told %v", k.to, k.seq, k.from.name, t.ran, err)
	}
	t.told = true
}

// crashed forgets the messages under way.
func (b *between) crashed() {
	b.crashes = true
	for _, t := range b.talks {
		t.lost = true
	}
}

// rest looks for messages without a result.
func (b *between) rest() {
	for k, t := range b.talks {
		if _, to := b.p.rooms.byName[k.to]; !t.told && !t.lost && to && b.p.rooms.of(k.from) != nil {
			b.p.fail("between", "message %d of room %q to room %q of %v is under way for ever", k.seq, k.from.name, k.to, t.at)
		}
	}
}

// over compares the metric with the messages that did not run.
func (b *between) over() {
	lost := 0
	for _, t := range b.talks {
		if t.ran == 0 {
			lost++
		}
	}
	if counted := b.drops(); !b.crashes && counted < lost {
		b.p.fail("between", "%d messages between rooms did not run, and %d are counted", lost, counted)
	}
}

var dropsLine = regexp.MustCompile(`(?m)^netloop_queue_drops_total\{[^}]*queue="(?:room_message|async)"[^}]*\} (\d+)$`)

// drops returns the number of messages between rooms that the metric counts.
func (b *between) drops() (n int) {
	rec := httptest.NewRecorder()
	m := bridge.Netloop.Server(b.p.server).Room.Metrics()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	all, _ := io.ReadAll(rec.Body) // A buffer.
	for _, found := range dropsLine.FindAllSubmatch(all, -1) {
		one, _ := strconv.Atoi(string(found[1]))
		n += one
	}
	return n
}
