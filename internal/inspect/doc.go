// Package inspect holds the inspector: the page at /inspect of the admin listener, and the data
// that is kept for it.
//
// The flow:
//
//	room goroutine    after a tick: rows of clients, systems, objects, for a question of the page
//	                  tick records in a ring (package slowtick), counts (package metrics)
//	any goroutine     log lines in a ring                                            log.go
//	admin goroutines  JSON at /api/…, and the same as events of /api/stream          package admin
//	browser           the page, built from page/src into page/inspect.js             page.go
//
// A tick never waits for the inspector: a question takes at most a millisecond of a tick, and is
// asked only while a page is open.
package inspect
