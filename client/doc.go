// Package client plays a netloop game: it connects, mirrors the replicated
// objects, sends and handles messages, and runs the same seven stages as the
// server, once per frame.
//
//	frame ──▶ Step: poll (EarlyUpdate) ──▶ callbacks and systems, stage by stage
//	                ──▶ flush (PostLateUpdate)
//
// Everything that a client does to the game's code it does inside [Client.Step],
// on the caller's goroutine, so a game's client needs no lock. A program without
// a frame loop of its own calls [Client.Run] instead.
//
// The objects that the client has are walked by class and by owner ([netloop.Class.All],
// [netloop.Class.Owned]) and found by their id ([netloop.Ref.Get]), as on the server; [Watch]
// tells of their changes.
//
// The schema's descriptors are shared with the server, and the same
// *netloop.Tick is handed to the callbacks. A frame may have any length: it runs the fixed
// steps that have come due, each with its own number and time, and netloop.Tick says what its
// times are in FixedUpdate and outside of it.
//
// # Drawing
//
// The newest state comes in steps, at the rate of snapshots and as the network lets them through.
// [Interpolate] lets a class be drawn between two of them instead:
//
//	client.Interpolate(c, ships)
//	for {
//		c.Step(frame)
//		for _, s := range client.Views(c, ships) {
//			draw(s.Pos, s.Yaw)
//		}
//	}
//
// All that is drawn in a frame is of one moment, [Client.ViewTime], which goes on evenly at any
// frame rate. An object appears when that moment reaches its spawn and is drawn until it reaches
// its despawn; [Watch] tells of both when the client learns of them, that much earlier, so a game
// that keeps something for each object makes it at Spawn, shows it while [View] says true, and lets
// go of it when View says false after Despawn. What is not to be drawn in between, such as a jump
// to another place, is said by the tag teleport of [netloop.Class].
//
// # Predicting
//
// What the player does takes a round trip until a snapshot shows it. [Predict] runs the objects
// that the client owns ahead of that, by the function that moves them on the server as well:
//
//	client.Inputs(c, controls, sample)
//	client.Predict(c, ships, controls, (*Ship).Steer)
//
// Their class is declared netloop.Predicted, and [View] then shows what is predicted. Where the
// server says otherwise, because an input came too late or somebody else has pushed the ship, the
// client goes back and runs the steps since then again; what was drawn wrongly is put right within
// [Smoothing]. [Mispredictions] tells by fields what was wrong, which finds step functions that do
// something else than the server. [Spawn] makes objects that the server is about to spawn.
package client
