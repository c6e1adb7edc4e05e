package replica

import "math"

// Resume prepares a kept replica for another connection. The game sees no change at once: records
// despawn the objects that ended meanwhile. A client that has kept no copies uses a new Replica
// instead; see StartAt.
func (r *Replica) Resume() { r.large = 0 }

// Clear ends all objects, in the order of their ids, for a client after the end of its world.
// Events reports the despawns, and the objects can no longer be drawn. Adapt then prepares the
// replica for another server.
func (r *Replica) Clear() {
	r.LookFrom(math.MaxUint64)
	for _, o := range r.objects.Slots {
		if o != nil {
			r.despawn(o, 0)
		}
	}
}
