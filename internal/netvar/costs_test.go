package netvar

import "testing"

const costSecond = 4 // in ticks

// sums returns the bits of the records of all objects, as counted by object and by class.
func (w *World) sums() (objects, classes uint64) {
	for i := range w.costs.bySlot {
		objects += w.costs.bySlot[i].sum
	}
	for _, bits := range w.spent.classes[:len(w.table.Classes())] {
		classes += bits
	}
	return objects, classes
}

// The records of objects and of classes have the same bits, whether they were sent in shared runs,
// in runs with the fields of one client, in runs of full records, alone or on the stream.
func TestCostsOfObjectsAreThoseOfTheirClasses(t *testing.T) {
	f := newFleetOf(t, classOf[captain](t, "crate"), 150, 3, []uint64{2, 3}, 0.05)
	f.w.Costliest(1, costSecond*1000)
	_, before := f.w.sums()
	records := f.w.stats.Records
	for tick := range 40 {
		if tick == 20 { // a client that lacks all objects
			f.w.farBehind = 100
			f.clients = append(f.clients, fleetClient{peer: f.w.NewPeer(f.tick), delay: 2})
			f.clients[3].peer.Handle = 3
		}
		for _, o := range f.crates {
			f.w.Edit(o)
			live[captain](o).Ammo += int32(tick)
		}
		f.step(150)
	}
	objects, classes := f.w.sums()
	if objects == 0 || objects != classes-before {
		t.Errorf("%d bits by object, %d by class", objects, classes-before)
	}
	list, all, ticks := f.w.Costliest(len(f.crates), costSecond*1000)
	if len(list) != len(f.crates) || all != objects/8 || ticks != 40 {
		t.Errorf("%d objects, %d bytes in %d ticks", len(list), all, ticks)
	}
	var counted, fulls uint64
	for i, c := range list {
		if counted, fulls = counted+c.Records, fulls+c.Fulls; i > 0 && c.Bytes > list[i-1].Bytes {
			t.Fatal("the costs are not in order")
		}
	}
	if counted != f.w.stats.Records-records || fulls < 150 {
		t.Errorf("%d records, %d of them full, want %d", counted, fulls, f.w.stats.Records-records)
	}

	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	q.w.Costliest(1, costSecond)
	q.sent()
	if list, _, _ := q.w.Costliest(1, costSecond); len(list) != 1 || list[0].Object != o || list[0].Bytes < 4<<10 {
		t.Errorf("a record on the stream counts %+v", list)
	}
}

// Costs are those of the last minute, of living objects, and only while they are asked for.
func TestCostsAreOfTheLastMinute(t *testing.T) {
	u := newRush(t, 20)
	u.run(3)
	if u.w.costs != nil {
		t.Fatal("records are counted, and nobody asked")
	}
	top := func() []ObjectCost { list, _, _ := u.w.Costliest(10, costSecond); return list }
	if n := len(top()); n != 0 {
		t.Fatalf("%d objects before the first tick", n)
	}
	ship := u.spawnShip(u.w, ship{Name: "a name that is longer than the changes of the rocks"}, 7, u.tick)
	u.run(2)
	if list := top(); len(list) != 10 || list[0].Object != ship || list[0].Records != 1 || list[0].Fulls != 1 {
		t.Fatalf("%+v", list)
	}
	rocks := u.rocks
	u.rocks = nil // they no longer change
	const part = costPart * costSecond
	for ran := uint64(3); ran <= 2*costParts*part; ran++ {
		u.run(1)
		_, all, ticks := u.w.Costliest(10, costSecond)
		if dropped := max(ran/part, costParts-1) - (costParts - 1); ticks != ran-part*dropped && ran%part != 0 {
			t.Fatalf("after %d ticks the costs are of %d", ran, ticks)
		}
		if (all == 0) != (ran > costParts*part) {
			t.Fatalf("after %d ticks the objects of the first two have %d bytes", ran, all)
		}
	}
	u.rocks = rocks
	u.run(2)
	gone := top()[0].Object
	u.w.Despawn(gone)
	for _, c := range top() {
		if c.Object == gone {
			t.Error("an ended object is listed")
		}
	}
	u.rocks = nil
	u.run(2) // its slot is free
	if s := &u.w.costs.bySlot[gone.Slot()]; s.sum != 0 {
		t.Errorf("the next object of the slot begins with %d bits", s.sum)
	}
	u.run(costKeep*costSecond - 3)
	if u.w.costs == nil {
		t.Fatal("counting has ended early")
	}
	if u.run(1); u.w.costs != nil {
		t.Error("records are counted, and nobody has asked for ten seconds")
	}
}
