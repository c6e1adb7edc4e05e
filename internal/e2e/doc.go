// Package e2e plays netloop as a game does: through the public API, from a client's Send to the
// handler, and from an Edit to another client's watcher. It has only tests. A test of the
// internals of one package belongs in that package; the tests here need a server and its clients.
//
// Most tests run on virtual time with package netlooptest, where a second takes milliseconds and
// links can lose, delay and reorder packets. Tests that need real sockets use loopback
// (loopback_test.go).
//
// Each file has one subject and its name. Files of one subject have a common prefix:
//
//	adapt_*       clients of other builds on one server
//	client_*      a client's callbacks, statistics and systems
//	explain_*     reasons why a field was or was not sent to a client
//	grid_*        visibility by distance
//	message_*     messages: order, stages, sizes, budgets, messages with state
//	priority_*    the order of changes within a short budget
//	simulation_*  random worlds with all features at once, compared with a model
//	timescale_*   pauses and slow motion
//
// The game of most tests, and helpers of all tests, are in game_test.go.
package e2e
