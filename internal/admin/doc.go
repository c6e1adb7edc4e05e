// Package admin is the HTTP listener for operators: metrics, health, readiness and the
// exact account of ticks. It is plain HTTP and meant for loopback or a private network;
// nothing on it changes the server.
//
// The flow:
//
//	Listen(config)   binds the port, so that a port in use is an error at start
//	Serve(ctx)       answers until ctx ends, then waits briefly for answers under way
//
// A page answers from what its function in Config returns. The functions are called on
// HTTP goroutines, at most maxConns at once, and must not wait for a room.
package admin
