package netlooptest

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/net/memnet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Audit fails the test when a client is sent a field of an object that it may not read. It decodes
// all state that the server sends to the client, from the bytes on the link and whether they arrive
// or not, and asks the test's own function, never the server's rules: the function's result at the
// end of a tick holds for the snapshot of that tick. The function is called in every tick in which
// the client is in the room, for every object of the class and each of its fields, by their names
// in Go: "Ammo", "Pos.X", "Spot[1]". It must change no state. to is the server's record of the
// client: the client's own [client.Client.ID] is 0 until it has been told that it is connected, and
// by then it has been sent state.
//
//	alice := w.Join("alice", nil, netlooptest.Link{})
//	mayRead := func(
//		t *netloop.Tick, to *netloop.Client, s *netloop.Object[Ship], field string,
//	) bool {
//		return field != "Ammo" || s.Owner() == to.ID()
//	}
//	netlooptest.Audit(w, alice, ships, mayRead)
//
// So it also finds rules that should have been evaluated again: a missing Invalidate. For an object
// that the client may not see at all, the function must return false for each field.
//
// A field counts as sent with each record that contains it, and with each record after which the
// client has a value other than zero for it. Any number of classes may be audited for a client,
// each from right after Join on: a call after the next Step fails. Messages are not examined.
func Audit[S any](w *World, c *client.Client, k *netloop.Class[S], may func(t *netloop.Tick, to *netloop.Client, o *netloop.Object[S], field string) bool) {
	w.tb.Helper()
	class := bridge.Netloop.Class(k)
	a := w.auditOf(c)
	if table := a.table.Classes(); class.State.Index() < 0 || class.State.Index() >= len(table) || table[class.State.Index()] != class.State {
		w.tb.Fatalf("netlooptest: Audit: class %q is not of the server's schema", k.Name())
	}
	permissions := map[state.ID][]permission{}
	a.classes[class.State] = permissions
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
			if past := permissions[o.ID()]; len(past) == 0 || !slices.Equal(past[len(past)-1].may, fields) {
				permissions[o.ID()] = append(past, permission{t.Number(), fields})
			}
		}
	})
}

// audit registers a function that runs at each snapshot, of this server and of the next ones after
// [World.Restart].
func (w *World) audit(ask func()) {
	w.audits = append(w.audits, ask)
	w.server.Room.OnSnapshot(ask)
}

// fieldName returns the name of leaf i.
func fieldName(c *state.Class, i int) string { return c.FieldName(1 + i) }

// permission is the set of fields of an object that a client may read from a tick on.
type permission struct {
	tick uint64
	may  []bool
}

// audit decodes the data that is sent to one client. It decodes also the packets that the link
// loses, so it has each baseline that the client can have acknowledged.
type audit struct {
	w       *World
	label   string
	addr    string // the client's address at the server
	id      uint64 // the client's id, once the server has sent it; it is kept over reconnects
	table   *state.Table
	replica *replica.Replica
	classes map[*state.Class]map[state.ID][]permission
	leaks   int
}

// maxLeaks bounds the number of leaks of one client that are reported one by one.
const maxLeaks = 10

// auditOf returns the audit of a client. The first call makes it.
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
	s.audit = &audit{w: w, label: fmt.Sprintf("client %d of the world", 1+slices.Index(w.clients, s)),
		table: table, replica: replica.New(table), classes: map[*state.Class]map[state.ID][]permission{}}
	s.audit.tap(s.conn)
	return s.audit
}

// tap decodes the data that the server sends over a new connection of the client.
func (a *audit) tap(c *memnet.Conn) {
	a.addr = c.Remote()
	var stream []byte // the bytes of an incomplete frame
	c.SetTap(func(b []byte, datagram bool) {
		if datagram {
			a.readDatagram(b)
			return
		}
		stream = a.readStream(append(stream, b...))
	})
}

// onServer returns the server's record of the client, or nil while the client is not in the room.
func (a *audit) onServer(t *netloop.Tick) *netloop.Client {
	for c := range t.Clients() {
		if c.Join().Addr == a.addr || uint64(c.ID()) == a.id {
			return c
		}
	}
	return nil
}

// forget drops the state that another server has sent.
func (a *audit) forget() {
	a.id = 0
	for _, permissions := range a.classes {
		clear(permissions)
	}
}

// readDatagram decodes the state in a datagram of the server.
func (a *audit) readDatagram(b []byte) {
	var d netloopv1.Datagram
	if err := proto.Unmarshal(b, &d); err != nil {
		a.failed("a datagram", err)
		return
	}
	if len(d.GetState()) > 0 {
		_, err := a.replica.Apply(d.GetState())
		a.failed("a packet of state", err)
	}
	a.replica.Events() // The events are not needed.
}

// readStream decodes the state in whole frames, and returns the remaining bytes.
func (a *audit) readStream(b []byte) (rest []byte) {
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

// welcome resets the decoder for a new session, or continues a resumed one.
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
		a.w.tb.Errorf("netlooptest: Audit: %s to %s cannot be read: %v", what, a.label, err)
	}
}

// look checks the permissions of one record.
func (a *audit) look(r *replica.Carried) {
	permissions, ok := a.classes[r.Class]
	if !ok {
		return
	}
	may := permissionAt(permissions[r.ID], r.Tick)
	for i := range r.Class.Leaves() {
		if !r.Tells(i) || may != nil && may[i] {
			continue
		}
		if a.leaks++; a.leaks > maxLeaks {
			return
		}
		a.w.tb.Errorf("netlooptest: Audit: at tick %d %s is sent field %s of %s %v, which it may not read", r.Tick, a.label, fieldName(r.Class, i), r.Class.Name(), r.ID)
	}
}

// permissionAt returns the permission for a tick; nil if there is none.
func permissionAt(permissions []permission, tick uint64) []bool {
	for _, p := range slices.Backward(permissions) {
		if p.tick <= tick {
			return p.may
		}
	}
	return nil
}
