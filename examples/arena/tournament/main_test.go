package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/netlooptest"
)

func newGame(saves string) *Game {
	return &Game{arena: arena.New(), cfg: Config{Duel: 10 * time.Second, Saves: saves}}
}

func join(w *netlooptest.World, name string) *client.Client {
	return w.Join("", arena.JoinParams{Name: name}, netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.02})
}

func until(t *testing.T, w *netlooptest.World, what string, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		w.Step(2)
		w.Settle()
	}
	t.Fatal("timed out: ", what)
}

// standings returns the best players with their points, as a client in the lobby gets them.
func standings(t *testing.T, w *netlooptest.World, c *client.Client) (rows []arena.Standing) {
	t.Helper()
	answered := false
	client.Call(c, arena.Standings, arena.StandingsQuery{Top: 10}, func(_ *netloop.Tick, r arena.StandingsReply, err error) {
		if answered, rows = true, slices.Clone(r.Rows); err != nil {
			t.Error(err)
		}
	})
	until(t, w, "the standings", func() bool { return answered })
	return rows
}

func dueling(c *client.Client) bool {
	return strings.HasPrefix(c.Room(), "duel/") && c.State().Phase == client.Playing
}

// waits returns the places in the lobby that a client has in its last step, with the rest of the
// expected wait.
func waits(c *client.Client) *map[Waiting]time.Duration {
	all := map[Waiting]time.Duration{}
	c.On(netloop.Update, "test.waits", func(t *netloop.Tick) {
		clear(all)
		for o := range Waits.All(t) {
			all[o.State()] = o.State().Until.Left(t)
		}
	})
	return &all
}

// scores gives players scores in their duel, in the order of their names, or returns their scores.
func scores(w *netlooptest.World, room string, set ...int32) (all []int32) {
	w.Room(room).Tick(func(t *netloop.Tick) {
		ships := slices.SortedFunc(arena.Ships.All(t), func(a, b *netloop.Object[arena.Ship]) int {
			return strings.Compare(a.State().Name, b.State().Name)
		})
		for i, ship := range ships {
			if i < len(set) {
				ship.Edit(t).Score = set[i]
			}
			all = append(all, ship.State().Score)
		}
	})
	return all
}

// Two players duel while the third one waits. A player that returns during the duel has its score.
// The winner gets a point, which survives a crash, and so does the opponent of a player that stays
// away.
func TestTheLeague(t *testing.T) {
	g := newGame(t.TempDir())
	w := netlooptest.New(t, g)
	// The watcher has no name, as the page before its player has chosen one.
	watcher := w.Join("", arena.JoinParams{Watch: true}, netlooptest.Link{})
	ann := join(w, "ann")
	w.Step(30)
	bob := join(w, "bob")
	until(t, w, "the duel", func() bool { return dueling(ann) && dueling(bob) && ann.Room() == bob.Room() })
	cid, room := join(w, "cid"), bob.Room()
	third, watched := waits(cid), waits(watcher)
	w.Step(10)
	if is := *watched; !maps.Equal(is, map[Waiting]time.Duration{{}: 0}) {
		t.Errorf("the watcher has %v, want a place outside of the queue", is)
	}
	for is, left := range *third { // The first two have waited for less than a second.
		if !is.Queued || left <= 0 || left > time.Second {
			t.Errorf("the third player has %+v, expected in %v", is, left)
		}
	}
	if len(*third) != 1 {
		t.Errorf("the third player has %d places in the lobby", len(*third))
	}
	if scores(w, room, 1, 2); dueling(cid) || len(standings(t, w, watcher)) > 0 {
		t.Error("the third player duels, or there are points already")
	}
	_ = bob.Close()
	w.Step(30)
	bob = w.JoinAs(client.Config{Room: room, Join: arena.JoinParams{Name: "bob"}}, netlooptest.Link{})
	until(t, w, "bob returns", func() bool { return dueling(bob) })
	if is := scores(w, room); !slices.Equal(is, []int32{1, 2}) {
		t.Errorf("after the return the scores are %v, want 1 and 2", is)
	}
	until(t, w, "the end", func() bool { return len(standings(t, w, watcher)) > 0 })
	want := []arena.Standing{{Name: "bob", Score: 1}, {Name: "ann"}}
	if is := standings(t, w, watcher); !slices.Equal(is, want) {
		t.Errorf("the standings are %v, want %v", is, want)
	}
	until(t, w, "another duel, with nobody on the way to it", func() bool {
		duels, plays := 0, 0
		for _, c := range []*client.Client{ann, bob, cid} {
			if dueling(c) {
				duels++
			}
			if c.State().Phase == client.Playing {
				plays++
			}
		}
		return dueling(cid) && duels == 2 && plays == 3
	})

	next := newGame(g.cfg.Saves)
	next.cfg.Duel = time.Hour
	w.Restart(next)
	until(t, w, "the watcher", func() bool { return watcher.Stats().Drops > 0 && watcher.State().Phase == client.Playing })
	if is := standings(t, w, watcher); !slices.Equal(is, want) {
		t.Errorf("after the crash the standings are %v, want %v", is, want)
	}
	all := []*client.Client{ann, bob, cid}
	until(t, w, "the next duel", func() bool {
		all = slices.DeleteFunc(all, func(c *client.Client) bool { return !dueling(c) })
		if len(all) == 2 {
			return true
		}
		all = []*client.Client{ann, bob, cid}
		return false
	})
	w.Step(60)
	_ = all[0].Close()
	until(t, w, "the point of the other one", func() bool {
		points := 0
		for _, row := range standings(t, w, watcher) {
			points += int(row.Score)
		}
		return points == 2
	})
}
