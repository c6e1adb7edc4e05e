package netloop

import (
	"testing"

	"github.com/netloop/netloop/internal/netvar"
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
	check := func(i int, list []*netvar.Object) {
		t.Helper()
		if i == 2 && len(list) == 0 || i < 2 && len(list) == 1 && list[0] == of[i].o {
			return
		}
		t.Errorf("group %d is named by %v", i, list)
	}
	check(0, r.naming(teams[0]))
	check(1, teams[1].named) // before anything asks for them
	check(2, r.naming(teams[2]))
	if err := r.e.Inspect(func() { of[1].SetVisible(&r.tick, Everyone()) }); err != nil {
		t.Fatal(err)
	}
	if err := r.e.Step(r.e.Timeline().Input(2)); err != nil {
		t.Fatal(err)
	}
	if list := r.naming(teams[1]); len(list) != 0 {
		t.Errorf("a group that nothing names any more is named by %v", list)
	}
	check(0, r.naming(teams[0]))
}
