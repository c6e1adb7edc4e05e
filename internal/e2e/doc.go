// Package e2e plays netloop as a game does: through the public API, from a client's Send to the
// handler, and from an Edit to what another client is told. It has tests alone. A test that looks
// into one package stands in that package; what stands here needs a server and its clients.
//
// Most tests run on virtual time over package netlooptest, where a second takes milliseconds and a
// link is as bad as the test wants it. Those that need real sockets serve on loopback
// (loopback_test.go).
//
// Each file has one subject and bears its name, and files of one subject begin alike:
//
//	adapt_*       clients of other builds on one server
//	client_*      a client's callbacks, figures and systems
//	explain_*     why a field was sent to a client, or was not
//	grid_*        what is shown because it is near
//	message_*     messages: order, stages, sizes, budgets, those that wait for their object
//	priority_*    what goes first when not all fits
//	simulation_*  random worlds with everything at once, compared with a model
//	timescale_*   pauses and slow motion
//
// The game that most tests play, and what all tests share, stands in game_test.go.
package e2e
