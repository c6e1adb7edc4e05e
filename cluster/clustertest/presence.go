package clustertest

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"github.com/netloop/netloop/cluster"
)

// Members list each other. A silent one is suspect, keeps its board, and is back by itself.
func presence(s *scene) {
	self := cluster.Member{Server: cluster.Server{
		Region: "eu", Zone: "eu-1", Schema: "abc",
		Addresses: []cluster.Address{{Carrier: "quic", Addr: "192.0.2.1:4433", Name: "a.example", Hashes: [][]byte{bytes.Repeat([]byte{7}, 32)}}},
	}}
	var rooms atomic.Int64
	self.Load = func() cluster.Load {
		return cluster.Load{Rooms: int(rooms.Load()), MaxRooms: 9, Clients: 3, MaxClients: 4, Overload: 1, Draining: true}
	}
	var changes atomic.Int32
	a, idA := s.join(self)
	b, idB := s.join(cluster.Member{Changed: func() { changes.Add(1) }})
	s.eventually(3, "listed", func() bool {
		_, ab := server(a, idB)
		_, ba := server(b, idA)
		_, aa := server(a, idA)
		return ab && ba && aa
	})
	got, _ := server(b, idA)
	want := self.Server
	want.ID, want.Load = idA, self.Load()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.Fatalf("listed as\n%+v, want\n%+v", got, want)
	}
	rooms.Store(5)
	s.eventually(3, "the new load is known", func() bool { got, _ := server(b, idA); return got.Load.Rooms == 5 })

	a.Announce("oak", []byte("1"))
	s.eventually(3, "the board is known", func() bool { return len(board(b, idA).Rooms) == 1 })
	s.Pass(s.beats(1))
	s.Freeze(a, true)
	changes.Store(0)
	sinceBeat := 1.5 // at most, since the last heartbeat
	if s.Beat() < cluster.Beat {
		sinceBeat = 2.5 // A busy machine delays shorter beats.
	}
	early := s.within(cluster.SuspectBeats - sinceBeat)
	s.eventually(cluster.SuspectBeats+2, "suspect", func() bool { got, _ := server(b, idA); return got.Suspect })
	if early.Err() == nil {
		s.Error("suspect too early")
	}
	s.eventually(1, "the change was reported", func() bool { return changes.Load() > 0 })
	if l := board(b, idA); len(l.Rooms) != 1 || !l.Suspect {
		s.Fatalf("the board of a suspect server: %+v", l)
	}
	if own, _ := server(b, idB); own.Suspect {
		s.Error("the server suspects itself")
	}
	a.Announce("elm", []byte("2"))
	a.Announce("oak", []byte("3"))
	s.Pass(s.beats(2))
	s.Freeze(a, false)
	s.eventually(2, "listed with its present rooms", func() bool {
		got, _ := server(b, idA)
		l := board(b, idA)
		return !got.Suspect && !l.Suspect && len(l.Rooms) == 2 && string(l.Rooms[1].Entry) == "3"
	})
	s.eventually(2, "the returned server suspects nobody", func() bool { got, ok := server(a, idB); return ok && !got.Suspect })
}

// Boards are sent whole to a new server, and then by changes that are joined over BoardInterval.
func boards(s *scene) {
	a, idA := s.join(cluster.Member{})
	for i := range 300 {
		if !a.Announce(fmt.Sprintf("room/%03d", i), fmt.Appendf(nil, "first %d", i)) {
			s.Fatal("an entry was refused")
		}
	}
	b, _ := s.join(cluster.Member{})
	s.eventually(3, "whole", func() bool { return len(board(b, idA).Rooms) == 300 })
	was := board(b, idA)
	for i := 1; i < len(was.Rooms); i++ {
		if was.Rooms[i-1].Name >= was.Rooms[i].Name {
			s.Fatalf("%s before %s", was.Rooms[i-1].Name, was.Rooms[i].Name)
		}
	}
	for i := range 1000 {
		a.Announce("room/007", fmt.Appendf(nil, "change %d", i))
	}
	a.Announce("room/008", nil)
	a.Announce("room/never", nil)
	a.Announce("new", []byte{})
	s.eventually(2, "changed", func() bool {
		l := board(b, idA)
		return len(l.Rooms) == 300 && l.Rooms[0].Name == "new" && string(l.Rooms[8].Entry) == "change 999"
	})
	if string(was.Rooms[7].Entry) != "first 7" || len(was.Rooms) != 300 {
		s.Error("an earlier result has changed")
	}
	if is := board(b, idA); is.Version <= was.Version || is.Version > was.Version+100 {
		s.Errorf("version %d after %d", is.Version, was.Version)
	}
	if own := board(a, idA); len(own.Rooms) != 300 {
		s.Errorf("the own board has %d rooms", len(own.Rooms))
	}
	if a.Announce("x", make([]byte, cluster.MaxEntry+1)) || a.Announce("", []byte("x")) {
		s.Error("an entry beyond the limits was taken")
	}
	large := make([]byte, cluster.MaxEntry)
	n := 0
	for a.Announce(fmt.Sprint("large/", n), large) {
		if n++; n > cluster.MaxBoard/cluster.MaxEntry {
			s.Fatal("a board has no bound")
		}
	}
	s.eventually(50, "a full board arrives", func() bool { return len(board(b, idA).Rooms) == 300+n })
	for i := range n {
		a.Announce(fmt.Sprint("large/", i), nil)
	}
	s.eventually(25, "it is small again", func() bool { return len(board(b, idA).Rooms) == 300 })
}

// Close frees the names at once, and the others remove the server.
func closing(s *scene) {
	a, idA := s.join(cluster.Member{})
	b, _ := s.join(cluster.Member{})
	e := s.claim(a, "name")
	a.Announce("oak", []byte("1"))
	s.eventually(3, "listed", func() bool { return len(board(b, idA).Rooms) == 1 })
	for range 2 {
		s.want("Close", a.Close(s.within(25)), nil)
	}
	s.claim(b, "name")
	s.eventually(1, "removed", func() bool {
		_, listed := server(b, idA)
		return !listed && board(b, idA).Server == ""
	})
	_, err := b.Call(s.within(25), cluster.Call{To: idA})
	s.want("Call of the closed server", err, cluster.ErrGone)
	s.want("Hold", a.Hold("name", e), cluster.ErrClosed)
	_, err = a.Claim(s.within(25), "other", 0)
	s.want("Claim", err, cluster.ErrClosed)
	_, err = a.Find(s.within(25), "other")
	s.want("Find", err, cluster.ErrClosed)
	_, err = a.Call(s.within(25), cluster.Call{To: "s2"})
	s.want("Call", err, cluster.ErrClosed)
	if h := a.Health(); h.OK || h.Text == "" || a.Announce("elm", []byte("1")) {
		s.Errorf("a closed server: %+v", h)
	}
	s.want("Close before Join", s.New().Close(s.within(1)), nil)
}
