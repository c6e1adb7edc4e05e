package netloop

// Moment is a point between two snapshots: the state Alpha of the way from the end of tick From to
// the end of tick To. A client shows its game at one moment, client.Client.ViewMoment, and sends it
// with its inputs: [Tick.ViewMoment] returns the server's accepted value, and [Object.At] the state
// of an object then. The zero Moment is none.
type Moment struct {
	From, To uint64
	Alpha    float64 // from 0 to below 1
}
