package clustertest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/netloop/netloop/cluster"
)

// A claim, or a release, that the store gets after its server has given up, leaves no name taken.
func lateWrites(s *scene) {
	a, _ := s.join(cluster.Member{})
	b, _ := s.join(cluster.Member{})
	e := s.claim(a, "released")
	s.Pass(s.beats(1))
	s.Freeze(a, true)
	_, err := a.Claim(s.within(0.5), "claimed", 0)
	s.want("Claim", err, cluster.ErrBusy)
	s.want("Release", a.Release(s.within(0.5), "released", e), cluster.ErrBusy)
	s.want("Hold after Release", a.Hold("released", e), cluster.ErrGone)
	s.Freeze(a, false)
	for _, name := range []string{"claimed", "released"} {
		s.eventually(10, name+" is free", func() bool { _, err := b.Claim(s.within(5), name, 0); return err == nil })
		if a.Hold(name, e) == nil {
			s.Errorf("%s is held by both servers", name)
		}
	}
}

// While members and the store freeze, a name never has two holders, and epochs grow.
func ledger(s *scene) {
	const servers, rooms = 3, 4
	steps := 40
	if s.Beat() == cluster.Beat { // Virtual time.
		steps = 4000
	}
	r := rand.New(rand.NewPCG(uint64(steps), 0))
	var all [servers]cluster.Cluster
	var frozen [servers]bool
	var held [servers][rooms]cluster.Epoch
	for i := range all {
		all[i], _ = s.join(cluster.Member{})
	}
	name := func(room int) string { return fmt.Sprint("room/", room) }
	holds := func(i, room int) bool { return held[i][room] > 0 && all[i].Hold(name(room), held[i][room]) == nil }
	last := cluster.Epoch(0)
	claims, lost := 0, 0
	for range steps {
		i, room := r.IntN(servers), r.IntN(rooms)
		switch {
		case r.IntN(30) == 0:
			frozen[i] = !frozen[i]
			s.Freeze(all[i], frozen[i])
		case held[i][room] == 0:
			e, err := all[i].Claim(s.within(0.5), name(room), 0)
			if err != nil && !errors.Is(err, cluster.ErrTaken) && !errors.Is(err, cluster.ErrBusy) {
				s.Fatal(err)
			}
			if err == nil {
				if e <= last {
					s.Fatalf("epoch %d after %d", e, last)
				}
				claims++
				held[i][room], last = e, e
			}
		case errors.Is(all[i].Hold(name(room), held[i][room]), cluster.ErrTaken):
			lost++
			held[i][room] = 0
		case r.IntN(4) == 0 && all[i].Release(s.within(0.5), name(room), held[i][room]) == nil:
			held[i][room] = 0
		}
		s.Pass(s.beats(0.25))
		for room := range rooms {
			for i := range all {
				for j := range all {
					// The first server holds the name before and after the second one.
					if i != j && holds(i, room) && holds(j, room) && holds(i, room) {
						s.Fatalf("%s is held by two servers, by epochs %d and %d", name(room), held[i][room], held[j][room])
					}
				}
			}
		}
	}
	s.Logf("%d claims, %d lost names", claims, lost)
	for i := range all {
		s.Freeze(all[i], false)
	}
	s.eventually(20, "all names can be claimed or are held", func() bool {
		for room := range rooms {
			ok := false
			for i := range all {
				ok = ok || holds(i, room)
			}
			if _, err := all[0].Claim(s.within(1), name(room), 0); err != nil && !ok {
				return false
			}
		}
		return true
	})
	if s.Beat() == cluster.Beat && (claims < 100 || lost < 5) {
		s.Errorf("%d claims and %d lost names: the test is too weak", claims, lost)
	}
}
