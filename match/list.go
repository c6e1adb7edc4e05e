package match

import (
	"github.com/netloop/netloop"
)

// List shows the rooms that match a filter as objects of a class in room r: one object for each,
// from its first listing to its last. show copies a listing to the object's state; it is called
// again for each change, at most every 50 ms. Call List in [netloop.Game] Open.
func List[I, S any](r *netloop.Room, class *netloop.Class[S], f netloop.RoomFilter[I], show func(*S, netloop.RoomListing[I])) {
	objects := map[string]*netloop.Object[S]{}
	netloop.WatchRooms(r, f, func(t *netloop.Tick, changes []netloop.RoomChange[I]) {
		for _, change := range changes {
			o := objects[change.Room.Name]
			switch {
			case change.Gone && o != nil:
				o.Despawn(t)
				delete(objects, change.Room.Name)
			case change.Gone:
			case o == nil:
				var state S
				show(&state, change.Room)
				objects[change.Room.Name] = class.Spawn(t, state)
			default:
				show(o.Edit(t), change.Room)
			}
		}
	})
}
