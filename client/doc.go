// Package client is the client of a netloop game: it connects, holds copies of the replicated
// objects, sends and handles messages, and runs the same seven stages as the server, once per
// frame.
//
//	frame ──▶ Step: poll (EarlyUpdate) ──▶ callbacks and systems, stage by stage
//	                ──▶ flush (PostLateUpdate)
//
// A client calls the game's code only inside [Client.Step], on the caller's goroutine, so a game's
// client needs no lock. A program without its own frame loop calls [Client.Run].
//
// The client's objects are iterated by class and by owner ([netloop.Class.All],
// [netloop.Class.Owned]) and found by their id ([netloop.Ref.Get]), as on the server; [Watch]
// reports their changes.
//
// The schema's descriptors are shared with the server, and callbacks get the same *netloop.Tick. A
// frame may have any length: it runs the fixed steps that are due, each with its own number and
// time, and netloop.Tick documents its times in FixedUpdate and outside of it.
//
// # Drawing
//
// The newest state changes in steps, at the rate of snapshots and with the network's jitter.
// [Interpolate] draws a class between two snapshots:
//
//	client.Interpolate(c, ships)
//	for {
//		c.Step(frame)
//		for _, s := range client.Views(c, ships) {
//			draw(s.Pos, s.Yaw)
//		}
//	}
//
// All objects in a frame are drawn at one moment, [Client.ViewTime], which advances evenly at any
// frame rate. An object appears when that moment reaches its spawn, and is drawn until the moment
// reaches its despawn. [Watch] reports both earlier, when the client receives them. A game that
// keeps data for each object therefore creates it at Spawn, shows it while [View] returns true, and
// frees it when View returns false after Despawn. The tag teleport of [netloop.Class] marks changes
// that are not drawn in between, such as a jump to another place.
//
// # Predicting
//
// A snapshot shows a player's action only a round trip later. [Predict] computes the objects that
// the client owns ahead of the snapshots, with the function that also moves them on the server:
//
//	client.Inputs(c, controls, sample)
//	client.Predict(c, ships, controls, (*Ship).Steer)
//
// Their class is declared netloop.Predicted, and [View] then shows the prediction. When the
// server's state differs, because an input arrived too late or another player has pushed the ship,
// the client resets its objects and runs the later steps again; the picture is corrected within
// [Smoothing]. [Mispredictions] counts mispredictions by field, to find step functions that differ
// from the server's code. [Spawn] makes objects that the server is about to spawn.
package client
