package room

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// recorder is the source of a room that is recorded: it collects all facts of the network, and
// writes a record after each tick.
type recorder struct {
	network
	out    *recording.Writer // nil: none
	keeper Keeper            // nil: none
	tick   recording.Tick
	buf    []byte // scratch: the record
}

// Keeper keeps the last ticks of a room. Keep is called after each tick, on the room's goroutine,
// with the tick and its record, both valid during the call.
type Keeper interface {
	Keep(r *Room, t *recording.Tick, record []byte)
}

// KeepTicks passes each tick to k. It is called before the first tick.
func (r *Room) KeepTicks(k Keeper) { r.recorder().keeper = k }

// recorder makes the room's source a recorder, if it is none, and returns it.
func (r *Room) recorder() *recorder {
	rec, ok := r.source.(*recorder)
	if !ok {
		rec = &recorder{network: network{r}}
		r.source = rec
	}
	return rec
}

// Head returns the head of a recording with the room's schema.
func (r *Room) Head(head recording.Head) recording.Head {
	head.Schema, head.Fingerprint, head.Layout = r.schema.Name, r.schema.Fingerprint(), recording.Layout()
	return head
}

// Record begins a recording of the room, before its first tick. The head describes how to open the
// room again; the room fills in its schema.
func (r *Room) Record(w io.Writer, head recording.Head) error {
	head = r.Head(head)
	b, err := head.Append(nil)
	if err != nil {
		return err
	}
	out, err := recording.NewWriter(w, b)
	if err != nil {
		return err
	}
	r.sent = new(outgoing)
	r.recorder().out = out
	return nil
}

func (f *recorder) begin(in *loop.Input) { f.tick.Input = *in }

func (f *recorder) prices() []rpcqueue.Price {
	all := f.network.prices()
	f.tick.Prices = append(f.tick.Prices, all...)
	return all
}

// link returns the facts of a client's link, and records them if they have changed since the last
// tick.
func (f *recorder) link(c *Client) transport.LinkFacts {
	facts := f.network.link(c)
	if facts != c.link {
		f.tick.Links = append(f.tick.Links, recording.Link{Client: c.id, Conn: c.conn, Facts: facts})
	}
	return facts
}

func (f *recorder) arrivals(fn func(*transport.Arrival)) {
	f.network.arrivals(func(a *transport.Arrival) {
		f.arrived(a)
		fn(a)
	})
}

// arrived records one arrival.
func (f *recorder) arrived(a *transport.Arrival) {
	rec := recording.Arrival{
		Kind: a.Kind, Client: a.Session.ID(), Conn: a.Session.Conn(), At: a.At, Message: a.Message, Acks: slices.Clone(a.Acks), Closed: a.Closed, Value: a.Value,
	}
	var err error
	switch {
	case a.Kind == transport.Inputs:
		rec.State = slices.Clone(a.State)
	case a.Kind == transport.Joined:
		rec.Entrance = f.entrance(rec.Client, a.Decoded.(*admitted))
	case a.Decoded != nil:
		rec.Decoded = true
		m := a.Method.(*schema.Method) // The method of a decoded message has this type.
		if rec.Message.Payload, err = m.In.Append(nil, a.Decoded); err != nil {
			f.unrecorded(fmt.Sprintf("a message %q: %v", m.Queue.Name, err))
		}
	}
	f.tick.Arrivals = append(f.tick.Arrivals, rec)
}

// entrance records how a client joined or resumed.
func (f *recorder) entrance(id uint64, e *admitted) *recording.Entrance {
	rec := &recording.Entrance{Resumable: e.resumable, Received: e.received, Kept: e.kept, Travels: e.travels, Addr: e.addr, Instead: e.evicts}
	if e.join == nil {
		return rec
	}
	var err error
	if rec.Join, err = f.r.game.AppendJoin(nil, e.join); err != nil {
		f.unrecorded(fmt.Sprintf("the claims of client %d: %v", id, err))
	}
	return rec
}

func (f *recorder) posts() []rpcqueue.Item {
	all := f.network.posts()
	for i := range all {
		b, err := recording.AppendValue(nil, all[i].Msg)
		if err != nil {
			f.unrecorded(fmt.Sprintf("a posted %q: %v", all[i].Method.Name, err))
		}
		f.tick.Posts = append(f.tick.Posts, recording.Post{
			Method: all[i].Method.ID, Stage: uint8(all[i].Stage), Msg: b, From: (*recording.Sender)(SenderOf(&all[i])),
		})
	}
	return all
}

func (f *recorder) results() []result {
	all := f.network.results()
	for i := range all {
		f.tick.Results = append(f.tick.Results, f.result(&all[i]))
	}
	return all
}

func (f *recorder) commands() []command {
	all := f.network.commands()
	for i := range all {
		f.tick.Commands = append(f.tick.Commands, all[i].Command)
	}
	return all
}

// result records the result of a piece of work.
func (f *recorder) result(res *result) recording.Result {
	rec := recording.Result{Work: res.work}
	var err error
	if rec.Value, err = recording.AppendValue(nil, res.value); err != nil {
		f.unrecorded(fmt.Sprintf("a result of Go: %v", err))
	}
	//nolint:errorlint // A wrapped refusal is recorded as another error.
	refusal, ok := res.err.(*transport.Refusal)
	switch {
	case ok && refusal.Code != 0:
		rec.Err, rec.Code = &recording.Error{Text: refusal.Text}, uint32(refusal.Code)
	case res.err != nil:
		if rec.Err, err = recording.NewError(res.err); err != nil {
			f.unrecorded(fmt.Sprintf("a result of Go: %v", err))
		}
	}
	return rec
}

// recordedError returns the error of a recorded piece of work.
func recordedError(rec *recording.Result) error {
	switch {
	case rec.Err == nil:
		return nil
	case rec.Code != 0:
		return &transport.Refusal{Code: transport.Code(rec.Code), Text: rec.Err.Text}
	}
	return rec.Err
}

func (f *recorder) slot(c *Client) *transport.Slot {
	slot := f.network.slot(c)
	if slot == nil {
		f.tick.Busy = append(f.tick.Busy, c.id)
	}
	return slot
}

func (f *recorder) drain(limit time.Duration) { f.tick.Drain, f.tick.DrainLimit = true, limit }

func (f *recorder) unrecorded(what string) {
	f.tick.Unrecorded = append(f.tick.Unrecorded, what)
}

// end writes the tick's record. A failure ends the recording, because a replay cannot continue
// after a missing tick.
func (f *recorder) end() {
	t := &f.tick
	if f.out != nil {
		t.State, t.Sent = f.r.world.StateDigest(), f.r.sent.take()
		t.Changes = f.r.world.AppendChangeDigests(t.Changes[:0])
	}
	var err error
	f.buf, err = recording.AppendTick(f.buf[:0], t)
	if f.keeper != nil {
		f.keeper.Keep(f.r, t, f.buf)
	}
	if f.out != nil {
		if err == nil {
			err = f.out.Write(f.buf)
		}
		if err != nil {
			f.fail(err)
		}
	}
	clear(t.Arrivals) // Release the messages.
	clear(t.Posts)
	clear(t.Results)
	*t = recording.Tick{
		Prices: t.Prices[:0], Links: t.Links[:0], Arrivals: t.Arrivals[:0], Posts: t.Posts[:0], Results: t.Results[:0], Busy: t.Busy[:0], Changes: t.Changes[:0],
	}
}

// fail ends the recording.
func (f *recorder) fail(err error) {
	f.r.metrics.Drops.Add(1, "recording", "failed")
	f.r.log.Error("the recording ends here", "tick", f.tick.Input.Tick, "error", err)
	f.out = nil
	f.r.sent.stop()
	if f.keeper == nil {
		f.r.source = f.network
	}
}
