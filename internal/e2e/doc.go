// Package e2e plays netloop as a game does: through the public API, from a client's Send to the
// handler and from an Edit to the other client's screen. It has tests alone. What a test says of
// one function stands beside that function; what stands here needs a room and its clients.
//
// Most of it runs on virtual time over package netlooptest, where a second costs milliseconds and
// links are as bad as one wants. What needs real sockets runs on loopback (quic_test.go,
// server_test.go, supervise_test.go).
//
// Files are named by their subject, what belongs to one begins alike:
//
//	adapt_*       clients of other builds on one server
//	client_*      a client's callbacks, systems and figures
//	explain_*     why a field was sent to a client, or was not
//	field_*       the types of fields and their tags
//	message_*     messages: order, stages, sizes, prices, those that wait for their object
//	simulation_*  random worlds with everything at once, held against a model
//	timescale_*   pauses and slow motion
//
// game_test.go has the game that most of them play, and the helpers that all share.
package e2e
