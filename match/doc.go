// Package match sends players to rooms.
//
// [Rooms] finds a room with free seats, or opens one, and reserves seats there: join or create.
//
//	tables := match.NewRooms(match.Config[Listing]{
//		Spec: netloop.RoomSpec{Name: "table/", Kind: "table", MaxClients: 4},
//		Where: func(l netloop.RoomListing[Listing]) bool { return !l.Info.Started },
//	})
//	Sit.Handle(r, func(t *netloop.Tick, from *netloop.Client, _ SitDown) error {
//		player := from.Join().Subject
//		seat := netloop.Reservation{}
//		tables.Join(t, player, seat, func(t *netloop.Tick, p match.Place, err error) {
//			...
//			from.Move(t, p.Tickets[0])
//		})
//		return nil
//	})
//
// [Queue] finds matches: it takes players and parties with properties, and calls the game with
// full, balanced teams of parties that fit, the longest wait first.
//
// [Open] opens a room by its name, unless it exists, and reserves seats there.
//
// [List] shows the rooms of the server as replicated objects.
package match
