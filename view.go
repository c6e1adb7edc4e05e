package netloop

// View is what somebody sees who draws between two snapshots: the state Alpha of the way from the
// end of tick From to the end of tick To. A client's is [client.Client.Viewed], and travels with
// its inputs: [Tick.View] is what the server makes of it, and [Object.At] looks there. The zero
// View is none.
//
// [client.Client.Viewed]: https://pkg.go.dev/github.com/netloop/netloop/client#Client.Viewed
type View struct {
	From, To uint64
	Alpha    float64 // from 0 to below 1
}
