package netloop

import (
	"testing"

	"github.com/netloop/netloop/internal/netvar/state"
)

// However many groups change in a tick, the objects that name them are listed once.
func TestTheObjectsOfAllGroupsAreListedAtOnce(t *testing.T) {
	g := new(judgedGame)
	s, err := New(Config{}, g)
	if err != nil {
		t.Fatal(err)
	}
	r := s.room
	teams := []*ClientGroup{NewClientGroup(), NewClientGroup(), NewClientGroup()}
	var of [2]*Object[hiddenState]
	spawn := func() {
		for i := range of {
			of[i] = hiddenOnes.Spawn(&r.tick, hiddenState{}, VisibleTo(InGroup(teams[i]).Or(InGroup(teams[i]))))
		}
	}
	if err := r.e.Inspect(spawn); err != nil {
		t.Fatal(err)
	}
	if err := r.e.Step(r.e.Timeline().Input(1)); err != nil {
		t.Fatal(err)
	}
	check := func(i int, list []*state.Object) {
		t.Helper()
		if i == 2 && len(list) == 0 || i < 2 && len(list) == 1 && list[0] == of[i].o {
			return
		}
		t.Errorf("group %d is named by %v", i, list)
	}
	check(0, r.objectsNaming(teams[0]))
	check(1, teams[1].objects) // before they are needed
	check(2, r.objectsNaming(teams[2]))
	kept := teams[1].objects
	teams[1].objects = nil
	if len(r.objectsNaming(teams[0])) != 1 || len(r.objectsNaming(teams[1])) != 0 {
		t.Error("the objects are looked through again within the tick")
	}
	teams[1].objects = kept
	if err := r.e.Inspect(func() { of[1].SetVisible(&r.tick, Everyone()) }); err != nil {
		t.Fatal(err)
	}
	if err := r.e.Step(r.e.Timeline().Input(2)); err != nil {
		t.Fatal(err)
	}
	if list := r.objectsNaming(teams[1]); len(list) != 0 {
		t.Errorf("a group that nothing names any more is named by %v", list)
	}
	check(0, r.objectsNaming(teams[0]))
}

// An object that is spawned with a target has an id that does not count other objects, and is not
// counted by theirs. Rooms of one seed have the same ids, so that a replay has those of its
// recording.
func TestASpawnWithATargetHasAVeiledId(t *testing.T) {
	ids := func(seed uint64) (plain, veiled [4]string) {
		s, err := New(Config{Seed: seed}, new(judgedGame))
		if err != nil {
			t.Fatal(err)
		}
		tick := &s.room.tick
		spawn := func() {
			for i := range plain {
				veiled[i] = hiddenOnes.Spawn(tick, hiddenState{}, VisibleTo(InGroup(NewClientGroup()))).Ref().String()
				plain[i] = hiddenOnes.Spawn(tick, hiddenState{}, VisibleTo(Everyone())).Ref().String()
			}
		}
		if err := s.room.e.Inspect(spawn); err != nil {
			t.Fatal(err)
		}
		return plain, veiled
	}
	plain, veiled := ids(1)
	if want := [4]string{"0.1", "1.1", "2.1", "3.1"}; plain != want {
		t.Errorf("the ids of objects for all are %v, want %v", plain, want)
	}
	if _, again := ids(1); again != veiled {
		t.Errorf("the ids are %v, and %v with the same seed", veiled, again)
	}
	if _, other := ids(2); other == veiled {
		t.Errorf("the ids are %v with another seed too", veiled)
	}
}
