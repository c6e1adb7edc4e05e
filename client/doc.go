// Package client plays a netloop game: it connects, mirrors the replicated
// objects, sends and handles messages, and runs the same seven stages as the
// server, once per frame.
//
//	frame ──▶ Step: poll (EarlyUpdate) ──▶ callbacks and systems, stage by stage ──▶ flush (PostLateUpdate)
//
// Everything that a client does to the game's code it does inside [Client.Step],
// on the caller's goroutine, so a game's client needs no lock. A program without
// a frame loop of its own calls [Client.Run] instead.
//
// The schema's descriptors are shared with the server, and the same
// *netloop.Tick is handed to the callbacks. On a client its Number, GameTime and
// Time are the server's, estimated.
package client
