package netlooptest

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/net/memnet"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Audit fails the test when a client is sent a field of an object that it may not read. It decodes
// all state that the server sends to the client, from the bytes on the link and whether they arrive
// or not, and asks the test's own function, never the server's rules: what the function says at the
// end of a tick holds for the snapshot of that tick. It is asked in every tick in which the client
// is in the room, for every object of the class and each of its fields, by their names in Go:
// "Ammo", "Pos.X", "Spot[1]". It must change nothing. to is the client as the server knows it: its
// own [client.Client.ID] is 0 until it has heard that it is connected, and by then it has been sent
// state.
//
//	alice := w.Join("alice", nil, netlooptest.Link{})
//	mayRead := func(
//		t *netloop.Tick, to *netloop.Client, s *netloop.Object[Ship], field string,
//	) bool {
//		return field != "Ammo" || s.Owner() == to.ID()
//	}
//	netlooptest.Audit(w, alice, ships, mayRead)
//
// So it also finds rules that should have been asked again: an Invalidate that was forgotten. An
// object that the client may not see at all is one of which it may read no field.
//
// A field appears in a record that has it, and in one after which it is not zero. Of a client any
// number of classes may be audited, each from right after Join on: a call after the next Step
// fails. Messages are not looked at.
func Audit[S any](w *World, c *client.Client, k *netloop.Class[S], may func(t *netloop.Tick, to *netloop.Client, o *netloop.Object[S], field string) bool) {
	w.tb.Helper()
	class := bridge.Netloop.Class(k)
	a := w.auditOf(c)
	if table := a.table.Classes(); class.State.Index() < 0 || class.State.Index() >= len(table) || table[class.State.Index()] != class.State {
		w.tb.Fatalf("netlooptest: Audit: class %q is not of the server's schema", k.Name())
	}
	rulings := map[netvar.ID][]ruling{}
	a.classes[class.State] = rulings
	w.audit(func() {
		t := w.server.Tick.(*netloop.Tick)
		to := a.onServer(t)
		if to == nil {
			return
		}
		for o := range w.server.Room.World().All(class.State) {
			fields := make([]bool, class.State.Leaves())
			for i := range fields {
				fields[i] = may(t, to, class.Wrap(o).(*netloop.Object[S]), fieldName(class.State, i))
			}
			if past := rulings[o.ID()]; len(past) == 0 || !slices.Equal(past[len(past)-1].may, fields) {
				rulings[o.ID()] = append(past, ruling{t.Number(), fields})
			}
		}
	})
}

// audit lets the world ask at each snapshot, whichever server makes it.
func (w *World) audit(ask func()) {
	w.audits = append(w.audits, ask)
	w.server.Room.OnSnapshot(ask)
}

// fieldName is the name of leaf i.
func fieldName(c *netvar.Class, i int) string { return c.FieldName(1 + i) }

// ruling says which fields of an object may be read from a tick on.
type ruling struct {
	tick uint64
	may  []bool
}

// audit reads along what one client is sent. It loses nothing, so every baseline that the client
// can have acknowledged is among what it stores.
type audit struct {
	w       *World
	who     string
	addr    string // by which the server knows the client
	id      uint64 // likewise, once it has said so; a client that is back has kept it
	table   *netvar.Table
	replica *netvar.Replica
	classes map[*netvar.Class]map[netvar.ID][]ruling
	leaks   int
}

// maxLeaks bounds how many leaks of one client are reported one by one.
const maxLeaks = 10

// auditOf returns the audit of a client, which begins with the first call.
func (w *World) auditOf(c *client.Client) *audit {
	w.tb.Helper()
	s := w.seat(c)
	if s.audit != nil {
		return s.audit
	}
	if _, down := s.conn.Counts(); down.Sent > 0 {
		w.tb.Fatalf("netlooptest: Audit belongs right after Join: the client has been sent something already")
	}
	table := bridge.Netloop.Schema(w.server.Schema).Classes()
	s.audit = &audit{w: w, who: fmt.Sprintf("client %d of the world", 1+slices.Index(w.clients, s)),
		table: table, replica: netvar.NewReplica(table), classes: map[*netvar.Class]map[netvar.ID][]ruling{}}
	s.audit.tap(s.conn)
	return s.audit
}

// tap listens to another connection of the client.
func (a *audit) tap(c *memnet.Conn) {
	a.addr = c.Remote()
	var stream []byte // not a whole frame yet
	c.SetTap(func(b []byte, datagram bool) {
		if datagram {
			a.takeDatagram(b)
			return
		}
		stream = a.takeStream(append(stream, b...))
	})
}

// onServer returns the client as the server knows it, and nil while it is not in the room.
func (a *audit) onServer(t *netloop.Tick) *netloop.Client {
	for c := range t.Clients() {
		if c.Join().Addr == a.addr || uint64(c.ID()) == a.id {
			return c
		}
	}
	return nil
}

// forget lets go of what was known of another server.
func (a *audit) forget() {
	a.id = 0
	for _, rulings := range a.classes {
		clear(rulings)
	}
}

// takeDatagram decodes the state in a datagram of the server.
func (a *audit) takeDatagram(b []byte) {
	var d netloopv1.Datagram
	if err := proto.Unmarshal(b, &d); err != nil {
		a.failed("a datagram", err)
		return
	}
	if len(d.GetState()) > 0 {
		_, err := a.replica.Apply(d.GetState())
		a.failed("a packet of state", err)
	}
	a.replica.Events() // Nobody wants to hear of them.
}

// takeStream decodes the state in whole frames, and returns what is left.
func (a *audit) takeStream(b []byte) (rest []byte) {
	for {
		frame, rest, err := transport.CutFrame(b, max(transport.MaxFrame, transport.MaxHandshake))
		if err != nil || frame == nil {
			a.failed("the stream", err)
			return rest
		}
		var f netloopv1.Frame
		if err := proto.Unmarshal(frame, &f); err != nil {
			a.failed("a frame", err)
			return nil
		}
		if w := f.GetWelcome(); w != nil {
			a.welcome(w)
		}
		if state := f.GetState(); len(state) > 0 {
			_, err := a.replica.ApplyLarge(state)
			a.failed("a record of state", err)
		}
		b = rest
	}
}

// welcome begins with what a connection brings: all anew, or what comes after the one before.
func (a *audit) welcome(w *netloopv1.Welcome) {
	a.id = w.GetClientId()
	if w.GetResumed() {
		a.replica.Resume()
		return
	}
	a.replica.Adapt(nil)
	a.replica.Inspect(a.look)
}

func (a *audit) failed(what string, err error) {
	if err != nil {
		a.w.tb.Errorf("netlooptest: Audit: %s to %s cannot be read: %v", what, a.who, err)
	}
}

// look judges one record.
func (a *audit) look(r *netvar.Carried) {
	rulings, ok := a.classes[r.Class]
	if !ok {
		return
	}
	may := rulingAt(rulings[r.ID], r.Tick)
	for i := range r.Class.Leaves() {
		if !r.Tells(i) || may != nil && may[i] {
			continue
		}
		if a.leaks++; a.leaks > maxLeaks {
			return
		}
		a.w.tb.Errorf("netlooptest: Audit: at tick %d %s is sent field %s of %s %v, which it may not read", r.Tick, a.who, fieldName(r.Class, i), r.Class.Name(), r.ID)
	}
}

// rulingAt is the ruling that holds at a tick; nil if there is none.
func rulingAt(rulings []ruling, tick uint64) []bool {
	for i := len(rulings) - 1; i >= 0; i-- {
		if rulings[i].tick <= tick {
			return rulings[i].may
		}
	}
	return nil
}
