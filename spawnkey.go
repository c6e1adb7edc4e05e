package netloop

// Born says by which input of a client an object was spawned. A client that has spawned the object
// at once (client.Spawn) knows by it that this is the one. It is a field of the state, which the
// game fills in as it spawns, and which is best read by the owner alone:
//
//	type Shot struct {
//		Pos, Vel Vec
//		Born     netloop.Born `net:"read=owner"`
//	}
//
//	Shots.Spawn(t, Shot{…, Born: netloop.FromInput(t, from)}, netloop.OwnedBy(from.ID()))
//
// The zero Born is that of an object which no input has spawned.
type Born struct {
	Step uint64 // the fixed step of the input
	N    uint8  // how many objects it had spawned before
}

// FromInput returns the Born of the next object that an input of a client spawns in this fixed
// step. It is for [Input.Handle]: the client counts alike, so it has to be called for each object
// that the client spawns, in the same order, and for no other. It panics on a client.
func FromInput(t *Tick, from *Client) Born {
	t.server("FromInput")
	if step := t.now.FixedStep; from.spawns.Step != step {
		from.spawns = Born{Step: step}
	}
	b := from.spawns
	from.spawns.N++
	return b
}
