package netloop

// View is the moment that a client draws between two snapshots: the state Alpha of the way from the
// end of tick From to the end of tick To. A client's view is [client.Client.Viewed], and is sent
// with its inputs: [Tick.View] returns the server's accepted value, and [Object.At] the state at
// that moment. The zero View is none.
//
// [client.Client.Viewed]: https://pkg.go.dev/github.com/netloop/netloop/client#Client.Viewed
type View struct {
	From, To uint64
	Alpha    float64 // from 0 to below 1
}
