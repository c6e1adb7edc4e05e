// Package rpcqueue holds the messages of a room or a client between the moment
// at which they arrive and the stage at which they run.
package rpcqueue
