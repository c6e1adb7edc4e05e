package netloop

// Born identifies the client's input that spawned an object. A client that has spawned the object
// at once (client.Spawn) finds the server's object by it. It is a field of the state, which the
// game sets when it spawns, and which only the owner should read:
//
//	type Shot struct {
//		Pos, Vel Vec
//		Born     netloop.Born `net:"read=owner"`
//	}
//
//	Shots.Spawn(t, Shot{…, Born: netloop.FromInput(t, from)}, netloop.OwnedBy(from.ID()))
//
// The zero Born is that of an object that was not spawned by an input.
type Born struct {
	Step uint64 // the fixed step of the input
	N    uint8  // the number of objects that it had spawned before
}

// FromInput returns the Born of the next object that an input of a client spawns in this fixed
// step. It is for [Input.Handle]. The client counts in the same way, so it must be called for each
// object that the client spawns, in the same order, and for no other. It panics on a client.
func FromInput(t *Tick, from *Client) Born {
	t.server("FromInput")
	if step := t.now.FixedStep; from.spawns.Step != step {
		from.spawns = Born{Step: step}
	}
	b := from.spawns
	from.spawns.N++
	return b
}
