package netloop

// SpawnKey identifies the client's input that spawned an object. A client that has spawned the
// object at once (client.Spawn) finds the server's object by it. It is a field of the state, which
// the game sets when it spawns, and which only the owner should read:
//
//	type Shot struct {
//		Pos, Vel Vec
//		Key      netloop.SpawnKey `net:"read=owner"`
//	}
//
//	Shots.Spawn(t, Shot{…, Key: t.SpawnKey(from)}, netloop.OwnedBy(from.ID()))
//
// The zero SpawnKey is that of an object that was not spawned by an input.
type SpawnKey struct {
	Step uint64 // the fixed step of the input
	N    uint8  // the number of objects that it had spawned before
}

// SpawnKey returns the key of the next object that an input of a client spawns in this fixed
// step. It is for [Input.Handle]. The client counts in the same way, so it must be called for each
// object that the client spawns, in the same order, and for no other. It panics on a client.
func (t *Tick) SpawnKey(from *Client) SpawnKey {
	t.server("Tick.SpawnKey")
	if step := t.now.FixedStep; from.spawns.Step != step {
		from.spawns = SpawnKey{Step: step}
	}
	k := from.spawns
	from.spawns.N++
	return k
}
