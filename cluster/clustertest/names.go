package clustertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/netloop/netloop/cluster"
)

// A name has one holder, and each claim a larger epoch.
func names(s *scene) {
	a, idA := s.join(cluster.Member{})
	b, _ := s.join(cluster.Member{})
	last := cluster.Epoch(0)
	for i, name := range []string{"room/a", "room/A", "room/a b", "room/ä", "room/a.b", "room/*", "room/>", "room/", strings.Repeat("x", cluster.MaxName)} {
		by, other := a, b
		if i%2 == 1 {
			by, other = b, a
		}
		e := s.claim(by, name)
		if e <= last || e >= 1<<63 {
			s.Fatalf("epoch %d after %d", e, last)
		}
		last = e
		_, err := other.Claim(s.within(25), name, 0)
		s.want("another server's Claim", err, cluster.ErrTaken)
		_, err = by.Claim(s.within(25), name, 0)
		s.want("a second Claim", err, cluster.ErrTaken)
		s.want("Hold", by.Hold(name, e), nil)
		s.want("another server's Hold", other.Hold(name, e), cluster.ErrGone)
		s.want("Hold of a later epoch", by.Hold(name, e+1), cluster.ErrGone)
		if h, err := other.Find(s.within(25), name); err != nil || h.Epoch != e || (h.Server == idA) != (i%2 == 0) {
			s.Fatalf("Find: %+v, %v", h, err)
		}
	}
	first := s.claim(a, "again")
	s.want("Release of another epoch", a.Release(s.within(25), "again", first-1), nil)
	s.want("Hold", a.Hold("again", first), nil)
	s.want("another server's Release", b.Release(s.within(25), "again", first), nil)
	_, err := b.Claim(s.within(25), "again", 0)
	s.want("Claim of a held name", err, cluster.ErrTaken)
	s.want("Release", a.Release(s.within(25), "again", first), nil)
	s.want("Hold after Release", a.Hold("again", first), cluster.ErrGone)
	_, err = b.Find(s.within(25), "again")
	s.want("Find after Release", err, cluster.ErrGone)
	if e := s.claim(b, "again"); e <= last {
		s.Fatalf("epoch %d after %d", e, last)
	}
	for _, name := range []string{"", "\xff", strings.Repeat("x", cluster.MaxName+1)} {
		if _, err := a.Claim(s.within(25), name, 0); err == nil {
			s.Fatalf("a name of %d bytes was claimed", len(name))
		}
	}
}

// A name with a keep stays taken for its time, also without its server.
func keptNames(s *scene) {
	a, _ := s.join(cluster.Member{})
	b, _ := s.join(cluster.Member{})
	const keep = 10
	if _, err := a.Claim(s.within(25), "token/1", s.beats(keep)); err != nil {
		s.Fatal(err)
	}
	_, err := a.Claim(s.within(25), "token/1", s.beats(keep))
	s.want("a second Claim", err, cluster.ErrTaken)
	s.want("Close", a.Close(s.within(25)), nil)
	_, err = b.Claim(s.within(25), "token/1", 0)
	s.want("Claim after Close", err, cluster.ErrTaken)
	if h, err := b.Find(s.within(25), "token/1"); err != nil || h.Server != "" {
		s.Fatalf("Find: %+v, %v", h, err)
	}
	s.eventually(3*keep, "free after its time", func() bool {
		_, err := b.Claim(s.within(25), "token/1", 0)
		return err == nil
	})
}

// Of servers that claim a name at once, one gets it.
func racingClaims(s *scene) {
	const servers, rooms = 3, 20
	var all []cluster.Cluster
	for range servers {
		c, _ := s.join(cluster.Member{})
		all = append(all, c)
	}
	var won [rooms]atomic.Int32
	var group sync.WaitGroup
	ctx := s.within(25)
	for _, c := range all {
		for i := range rooms {
			group.Go(func() {
				name := fmt.Sprint("room/", i)
				switch e, err := c.Claim(ctx, name, 0); {
				case err == nil:
					won[i].Add(1)
					if err := c.Hold(name, e); err != nil {
						s.Errorf("Hold after Claim: %v", err)
					}
				case !errors.Is(err, cluster.ErrTaken):
					s.Errorf("Claim: %v", err)
				}
			})
		}
	}
	group.Wait()
	for i := range rooms {
		if n := won[i].Load(); n != 1 {
			s.Errorf("room %d: %d servers have the name", i, n)
		}
	}
}

// The names of a silent server are free after LeaseBeats, and not before the server itself has
// stopped to rely on them. Names that nobody has claimed are its own again.
func leases(s *scene) {
	var lost atomic.Int32
	a, _ := s.join(cluster.Member{Lost: func(name string, _ cluster.Epoch) {
		if name == "lost" {
			lost.Add(1)
		}
	}})
	b, idB := s.join(cluster.Member{})
	old, kept := s.claim(a, "lost"), s.claim(a, "kept")
	s.Pass(s.beats(2))
	s.Freeze(a, true)
	early := s.within(cluster.LeaseBeats - 2)
	var e cluster.Epoch
	s.eventually(cluster.LeaseBeats+8, "free", func() bool {
		var err error
		if e, err = b.Claim(s.within(25), "lost", 0); err != nil {
			s.want("Claim", err, cluster.ErrTaken)
			return false
		}
		s.want("Hold of the silent server", a.Hold("lost", old), cluster.ErrBusy)
		return true
	})
	if early.Err() == nil || e <= old {
		s.Fatalf("free too early, or with epoch %d after %d", e, old)
	}
	s.want("Hold of the silent server", a.Hold("kept", kept), cluster.ErrBusy)
	s.Freeze(a, false)
	s.eventually(6, "the silent server knows its loss", func() bool { return errors.Is(a.Hold("lost", old), cluster.ErrTaken) })
	s.eventually(6, "the other name is its own", func() bool { return a.Hold("kept", kept) == nil })
	s.eventually(3, "Lost was called", func() bool { return lost.Load() == 1 })
	_, err := b.Claim(s.within(25), "kept", 0)
	s.want("Claim of the kept name", err, cluster.ErrTaken)
	if h, err := b.Find(s.within(25), "kept"); err != nil || h.Epoch != kept {
		s.Fatalf("Find of the kept name: %+v, %v, want the epoch %d", h, err, kept)
	}
	s.want("Hold of the newer claim", b.Hold("lost", e), nil)
	if h, err := a.Find(s.within(25), "lost"); err != nil || h.Server != idB || h.Epoch != e {
		s.Fatalf("Find: %+v, %v", h, err)
	}
	s.want("Release of a lost name", a.Release(s.within(25), "lost", old), nil)
	s.want("Hold of the newer claim", b.Hold("lost", e), nil)
}
