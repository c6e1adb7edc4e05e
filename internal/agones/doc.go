// Package agones connects a game server with Agones, which runs game servers on Kubernetes, through
// the REST API of the Agones sidecar on the same machine. It needs no SDK.
//
//	server ── Health ──▶ POST /health          while ticks run, and only by that
//	server ── Ready ───▶ POST /ready           once; and when the server is empty again
//	server ── Load ────▶ POST /allocate        while it has clients or reserved seats
//	               └───▶ PATCH counters, list  hints for the allocator and the autoscaler
//	sidecar ─ GET /watch/gameserver ─▶ state ─▶ Shutdown: the server drains
//	server's end ──────▶ POST /shutdown        after the drain
//
// [Agent.Run] has three goroutines: one for health, one that watches the state, and one for all
// other requests. lifecycle (lifecycle.go) decides about the requests and does no I/O. Each request
// has a deadline and a bounded answer. A sidecar that does not answer, or answers wrongly, is asked
// again with growing pauses, and has no effect on ticks and clients.
//
// Counters and lists are hints, because Agones drops values of concurrent writes silently. The
// server never reads them to decide.
package agones
