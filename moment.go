package netloop

import (
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/state"
)

// Moment is a point between two snapshots: the state Alpha of the way from the end of tick From to
// the end of tick To. A client shows its game at one moment, client.Client.ViewMoment, and sends it
// with its inputs: [Tick.ViewMoment] returns the server's accepted value, and [Object.At] the state
// of an object then. The zero Moment is none.
type Moment struct {
	From, To uint64
	Alpha    float64 // from 0 to below 1
}

// ViewMoment returns the client's view at the time of the input that is handled now, for
// [Object.At]: the moment at which the player aimed. In the handler of [Input] it is exact, for the
// client that sent the input. Elsewhere it is the view of the input that ran last. For a step whose
// input is missed, the view advances with time, as it does for all clients. Without any input there
// is no view.
//
// The client's claim is limited to plausible views: the client has both snapshots, one follows the
// other, they are not older than [RoomSpec] MaxRewind allows, and the view advances with time, give
// or take an eighth of a second in each second. Any other view is replaced by the nearest plausible
// one and counted, see [LinkStats]. It panics on a client.
func (t *Tick) ViewMoment(c *Client) Moment {
	t.server("Tick.ViewMoment")
	c.mustExist("Tick.ViewMoment")
	return Moment(c.e.View())
}

// At returns the state that the object had at a moment, out of its history: between the two
// snapshots by the tags lerp= of its fields (see [Lerp]), as a client draws it. It reports false if
// the object did not exist yet, does not exist any more, or has had more changes since than are
// kept (those of 128 ticks, and 384 KiB); an object that has just despawned cannot be hit any more,
// even if a client still sees it. For the zero Moment it returns [Object.State]: the present.
//
// The state is the same for all clients: At does not consider whether a client sees the object,
// which fields it may read, or whether the newest changes have arrived there. Fields that are not
// sent are zero. Slices and maps in it must not be changed. At allocates only once for each change
// of a string, a slice or the like. It panics on a client, where there is client.View.
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
