// Package admin is the HTTP listener for operators: metrics, health, readiness and the
// exact account of ticks. It is plain HTTP, for loopback or, with tokens, for a private
// network; nothing on it changes the server.
//
// The flow:
//
//	Listen(config)   binds the port, so that a port in use is an error at start
//	Serve(ctx)       answers until ctx ends, then waits briefly for answers under way
//
//	connection ─▶ pool     full? the one that has been quiet for longest is closed
//	request    ─▶ access   by our name? with a token that is good for it? not too many at once?
//	           ─▶ page     what its function in Config returns
//
// The functions are called on HTTP goroutines, at most maxConns at once. Probes need no
// token and wait for nobody: /healthz and /readyz say little, and an orchestrator that gets
// no answer ends the game.
package admin
