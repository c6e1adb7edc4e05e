// Package admin is the HTTP listener for operators: metrics, health, readiness and tick statistics.
// It is plain HTTP, for loopback or, with tokens, for a private network.
//
// The flow:
//
//	Listen(config)   binds the port, so that a port in use is an error at start
//	Serve(ctx)       answers until ctx ends, then waits briefly for answers under way
//
//	connection ─▶ limit    full? closes the longest idle one
//	request    ─▶ access   host of this machine? sufficient token? fewer than maxPages?
//	           ─▶ page     the result of its function in Config
//
// The functions are called on HTTP goroutines, at most maxConns at once. Probes (/healthz and
// /readyz) need no token, do not wait and have short answers, because an orchestrator that gets no
// answer kills the game.
package admin
