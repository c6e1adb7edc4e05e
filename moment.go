package netloop

import (
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/state"
)

// Moment is a point between two snapshots: the state Alpha of the way from the end of tick From to
// the end of tick To. A client draws the game at a moment, client.Client.ViewMoment, and sends the
// moment with its inputs. [Tick.ViewMoment] returns the value that the server has accepted, and
// [Object.At] the state of an object at a moment. The zero Moment means no moment.
type Moment struct {
	From, To uint64
	Alpha    float64 // from 0 to below 1
}

// ViewMoment returns the client's view for [Object.At]: the moment that the player saw when it
// aimed. In the handler of [Input] it is the view of the handled input, for the client that sent
// the input. Elsewhere it is the view of the input that ran last. For a step without an input, the
// last view advances with time. Before the client's first input there is no view.
//
// The server accepts only plausible views: the client has both snapshots, one follows the other,
// they are not older than [RoomSpec] MaxRewind permits, and the view advances with time, within an
// eighth of a second in each second. It replaces any other view by the nearest plausible view, and
// counts it: see [LinkStats]. ViewMoment panics on a client.
func (t *Tick) ViewMoment(c *Client) Moment {
	t.server("Tick.ViewMoment")
	c.mustExist("Tick.ViewMoment")
	return Moment(c.e.View())
}

// At returns the state that the object had at a moment, from its history. It interpolates between
// the two snapshots by the tags lerp= of the fields (see [Lerp]), as a client does to draw the
// object. It reports false if the object did not exist yet, no longer exists, or if the history no
// longer has the moment: it has the changes of 128 ticks, and at most 384 KiB. So an object that
// has just despawned cannot be hit, even if a client still sees it. For the zero Moment At returns
// [Object.State].
//
// The state is the same for all clients: At does not consider whether a client sees the object,
// which fields it may read, or whether the newest changes have arrived at the client. Fields that
// are not sent are zero. Do not change slices and maps in the state. At allocates memory only once
// for each change of a string, a slice or a similar value. It panics on a client: use client.View
// there.
func (o *Object[S]) At(m Moment) (s S, ok bool) {
	switch {
	case !o.o.Original():
		panic("netloop: Object.At works on the server only. A client draws what client.View returns")
	case !o.o.Alive():
		return s, false
	case m == Moment{}:
		return o.State(), true
	}
	d, ok := o.o.At(state.Moment(m))
	if !ok {
		return s, false
	}
	if d.Base != nil {
		s = *(*S)(d.Base)
	}
	d.Write(unsafe.Pointer(&s))
	return s, true
}
