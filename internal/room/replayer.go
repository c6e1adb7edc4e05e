package room

import (
	"fmt"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room/seats"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// replayer is the source of a replayed room. A recorded fact that the room cannot process (a
// message that its schema cannot decode, a result of work that it never started) ends the replay.
type replayer struct {
	r        *Room
	tick     recording.Tick
	sessions map[connection]*transport.Session // sessions that have begun and not ended
	links    map[*transport.Session]*transport.Link
	arrived  transport.Arrival // the running arrival
	items    []rpcqueue.Item
	done     []result
	wrong    string // the first failure
}

// connection identifies a connection of a client.
type connection struct{ client, conn uint64 }

func newReplayer(r *Room) *replayer {
	f := &replayer{r: r, sessions: map[connection]*transport.Session{}, links: map[*transport.Session]*transport.Link{}}
	r.source, r.sent = f, new(outgoing)
	r.Async.recorded, r.Stats.unread = map[uint64]Work{}, true
	return f
}

func (*replayer) begin(*loop.Input)   {}
func (*replayer) end()                {}
func (*replayer) drain(time.Duration) {}
func (*replayer) unrecorded(string)   {}

func (f *replayer) prices() []rpcqueue.Price { return f.tick.Prices }

// fail stores the first reason why the replay cannot follow the recording.
func (f *replayer) fail(format string, a ...any) {
	if f.wrong == "" {
		f.wrong = fmt.Sprintf(format, a...)
	}
}

func (f *replayer) link(c *Client) transport.LinkFacts {
	for i := range f.tick.Links {
		if l := &f.tick.Links[i]; l.Client == c.id && l.Conn == c.conn {
			return l.Facts
		}
	}
	return c.link
}

func (f *replayer) arrivals(fn func(*transport.Arrival)) {
	for i := range f.tick.Arrivals {
		var ok bool
		if f.arrived, ok = f.arrival(&f.tick.Arrivals[i]); ok {
			fn(&f.arrived)
		}
	}
}

// arrival builds an arrival from its record. It reports false for arrivals without a session,
// because the inbox may hold data of a client after the end of its session.
func (f *replayer) arrival(rec *recording.Arrival) (transport.Arrival, bool) {
	conn := connection{rec.Client, rec.Conn}
	a := transport.Arrival{
		Kind: rec.Kind, Session: f.sessions[conn], At: rec.At, Message: rec.Message, Acks: rec.Acks, Closed: rec.Closed, Value: rec.Value, State: rec.State,
	}
	switch {
	case rec.Kind == transport.Joined:
		return a, f.joined(rec, &a)
	case a.Session == nil:
		return a, false
	case rec.Kind == transport.Gone:
		delete(f.sessions, conn)
		delete(f.links, a.Session)
		if a.Closed == nil {
			f.fail("client %d goes without a reason", rec.Client)
			return a, false
		}
	case rec.Decoded:
		f.decode(&a)
	}
	return a, true
}

// joined rebuilds the result of an admission.
func (f *replayer) joined(rec *recording.Arrival, a *transport.Arrival) bool {
	if a.Session != nil || rec.Entrance == nil {
		f.fail("client %d joins twice, or without a word", rec.Client)
		return false
	}
	e := &admitted{
		resumable: rec.Entrance.Resumable, received: rec.Entrance.Received, kept: rec.Entrance.Kept, travels: rec.Entrance.Travels, addr: rec.Entrance.Addr,
		evicts: rec.Entrance.Instead,
	}
	if len(rec.Entrance.Join) > 0 {
		e.join = new(Join)
		if err := f.r.game.ReadJoin(rec.Entrance.Join, e.join); err != nil {
			f.fail("the join of client %d: %v", rec.Client, err)
			return false
		}
	}
	e.seat = &seats.Seat{ID: rec.Client}
	if c, ok := f.r.clients.get(rec.Client); ok {
		e.seat = c.seat
	}
	f.r.Admission.seats.Replayed(e.seat, e.join)
	a.Decoded = e
	session, link := transport.NewSession(transport.SessionConfig{
		ID: rec.Client, Conn: rec.Conn, Inbox: f.r.Admission.inbox, Clock: f.r.clock.Now, Stats: f.r.cfg.Stats, Sent: f.r.sent.sender(rec.Client),
	})
	a.Session, f.sessions[connection{rec.Client, rec.Conn}], f.links[session] = session, session, link
	return true
}

// decode decodes a message that the recorded room could decode. If the schema does not have its
// method, or cannot decode it, the replay fails.
func (f *replayer) decode(a *transport.Arrival) {
	m, ok := f.r.schema.Method(a.Message.Method)
	if !ok {
		f.fail("a message of method %d, which the schema does not have", a.Message.Method)
		return
	}
	msg, err := m.In.Decode(a.Message.Payload)
	if err != nil {
		f.fail("a message %q: %v", m.Queue.Name, err)
		return
	}
	a.Method, a.Decoded = m, msg
}

func (f *replayer) posts() []rpcqueue.Item {
	f.items = f.items[:0]
	for i := range f.tick.Posts {
		rec := &f.tick.Posts[i]
		m, ok := f.r.schema.Method(rec.Method)
		if !ok {
			f.fail("a posted message of method %d, which the schema does not have", rec.Method)
			continue
		}
		msg := m.In.New()
		if err := recording.ReadValue(rec.Msg, msg); err != nil {
			f.fail("a posted %q: %v", m.Queue.Name, err)
			continue
		}
		it := rpcqueue.Item{Method: &m.Queue, Stage: loop.Stage(rec.Stage), Msg: msg}
		if rec.From != nil {
			it.Holds = &roomMessage{from: Sender(*rec.From), work: &f.r.Async} // It has no receipt.
		}
		f.items = append(f.items, it)
	}
	return f.items
}

func (f *replayer) results() []result {
	f.done = f.done[:0]
	for i := range f.tick.Results {
		rec := &f.tick.Results[i]
		if !f.r.Async.asked(rec.Work) {
			f.fail("the result of work %d, which nobody has asked for", rec.Work)
			continue
		}
		res, err := f.r.Async.replayed(rec, recordedError(rec))
		if err != nil {
			f.fail("the result of work %d: %v", rec.Work, err)
			continue
		}
		f.done = append(f.done, res)
	}
	return f.done
}

func (f *replayer) commands() (all []command) {
	for _, cmd := range f.tick.Commands {
		all = append(all, command{Command: cmd})
	}
	return all
}

func (f *replayer) vacate(*transport.Closed) bool { return false }

func (f *replayer) slot(c *Client) *transport.Slot {
	if slices.Contains(f.tick.Busy, c.id) {
		return nil
	}
	return c.slot()
}
