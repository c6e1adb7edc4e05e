// Package inspect holds the inspector: the page at /inspect of the admin listener, and the data
// that the server records for this page.
//
// The flow:
//
//	room goroutine    after a tick: rows of clients, systems, objects, for a question of the page
//	                  tick records in a ring (package slowtick), counts (package metrics)
//	any goroutine     log lines in a ring                                            log.go
//	                  steps of moves between servers in a ring                       moves.go
//	admin goroutines  JSON at /api/…, and the same as events of /api/stream          package admin
//	browser           the page, built from page/src into page/inspect.js             page.go
//
// A tick never waits for the inspector. A question of the page takes at most a millisecond of a
// tick, and the server handles questions only while a page is open.
package inspect
