package room

import (
	"time"

	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

const (
	// maxFollowed limits the clients of a room with counted traffic.
	maxFollowed = 16
	// followTime is the time after a question for which a client's traffic is counted.
	followTime = 10 * time.Second
)

// Traffic has the bytes of one client since counting began, by class and by method.
type Traffic struct {
	Began uint64 // tick before the first counted one
	// Records has the bytes of object records by class, in the order of Schema.AllClasses, and at
	// the end those of despawns.
	Records []uint64
	Inputs  Data                // packets of inputs
	Methods []MethodTraffic     // by declaration; a method without a message is not listed
	byID    map[uint32]*[2]Data // by method id; 0: the method is not declared
}

// Data counts messages or packets, and their bytes without envelope.
type Data struct{ Count, Bytes uint64 }

func (d *Data) add(bytes int) { d.Count, d.Bytes = d.Count+1, d.Bytes+uint64(bytes) }

// MethodTraffic has the messages of a method that one client has sent and was sent, answers
// included.
type MethodTraffic struct {
	Method         *schema.Method // nil: the method is not declared
	Received, Sent Data           // from and to the client
}

// The directions of Traffic.byID.
const (
	fromClient = iota
	toClient
)

// follow counts the traffic of one client until a tick. A client that is not followed has none, and
// each message and snapshot of it costs a comparison to nil.
type follow struct {
	Traffic
	until  uint64
	before []uint64 // scratch of counting
}

// Follow returns a client's traffic, and counts it for followTime. The first call begins to count.
// It returns false if maxFollowed other clients are followed. It is a question: see Questions.
func (r *Room) Follow(c *Client) (t Traffic, ok bool) {
	now := r.in.Tick
	if c.followed() == nil {
		n := 0
		for _, other := range r.Clients() {
			if other.followed() != nil {
				n++
			}
		}
		if n >= maxFollowed {
			return t, false
		}
		c.follow = &follow{Traffic: Traffic{Began: now, byID: map[uint32]*[2]Data{}}}
		c.follow.Records = make([]uint64, 1+len(r.schema.AllClasses()))
		c.follow.before = make([]uint64, len(c.follow.Records))
	}
	c.follow.until = now + r.spec.ticksAfter(followTime)
	t = c.follow.Traffic
	t.Records, t.byID = append([]uint64{}, t.Records...), nil
	if d := c.follow.byID[0]; d != nil {
		t.Methods = append(t.Methods, MethodTraffic{nil, d[fromClient], d[toClient]})
	}
	for _, m := range r.schema.AllMethods() {
		if d := c.follow.byID[m.Queue.ID]; d != nil {
			t.Methods = append(t.Methods, MethodTraffic{m, d[fromClient], d[toClient]})
		}
	}
	return t, true
}

// followed returns the client's counters, or nil once followTime has passed since the last
// question.
func (c *Client) followed() *follow {
	if c.follow != nil && c.room.in.Tick > c.follow.until {
		c.follow = nil
	}
	return c.follow
}

// countRecords adds the bytes of the records that a snapshot has sent. recordBytes was called with
// f.before before the snapshot: the world counts the records of all clients together.
func (f *follow) countRecords(r *Room) {
	for i, before := range f.before {
		f.Records[i] -= before
	}
	r.recordBytes(f.before)
	for i, after := range f.before {
		f.Records[i] += after
	}
}

// recordBytes sets the bytes of all clients' records by class.
func (r *Room) recordBytes(dst []uint64) {
	classes := r.schema.AllClasses()
	for i, class := range classes {
		dst[i] = r.world.SpentOn(class)
	}
	dst[len(classes)] = r.world.SpentOn(nil)
}

// message counts a message of a method.
func (f *follow) message(method uint32, direction, bytes int) {
	d := f.byID[method]
	if d == nil {
		d = new([2]Data)
		f.byID[method] = d
	}
	d[direction].add(bytes)
}

// countArrival counts a message or a packet of inputs of a followed client.
func (c *Client) countArrival(a *transport.Arrival) {
	f := c.followed()
	switch {
	case f == nil:
	case a.Kind == transport.Inputs:
		f.Inputs.add(len(a.State))
	default:
		method := uint32(0) // Unknown ids share a counter: the client can choose them.
		if m, ok := c.room.schema.Method(a.Message.Method); ok {
			method = m.Queue.ID
		}
		f.message(method, fromClient, a.Size)
	}
}

// transmit sends a message over the client's connection.
func (c *Client) transmit(m transport.Message) {
	if f := c.followed(); f != nil {
		f.message(m.Method, toClient, len(m.Payload)+len(m.Text))
	}
	c.session.Send(m)
}
