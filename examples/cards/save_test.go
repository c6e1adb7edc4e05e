package cards_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/bot"
	"github.com/netloop/netloop/netlooptest"
)

// recordings holds the recording of each table.
type recordings map[string]*bytes.Buffer

func (r recordings) open(info netloop.RoomInfo) (io.WriteCloser, error) {
	r[info.Spec.Name] = new(bytes.Buffer)
	return unclosed{r[info.Spec.Name]}, nil
}

// logged holds the errors of a server, which netlooptest writes into the log of the test.
type logged struct {
	testing.TB
	lines []string
}

func (l *logged) Logf(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// A table with a row of a newer room closes, because its moves cannot be stored.
func TestATableOfANewerRoomCloses(t *testing.T) {
	g := game("", 2, 5*time.Second)
	fails := &failing{logged: logged{TB: t}}
	w := netlooptest.New(fails, g, netlooptest.Room(g.RoomDefaults()))
	link := netlooptest.Link{Delay: 10 * time.Millisecond}
	_, ann := seat(t, w, "ann", "oak", false, link)
	_, bob := seat(t, w, "bob", "oak", false, link)
	until(t, w, "cards", func() bool { return ann.View.Table.Phase == cards.Playing })
	if err := g.Supersede("table/oak"); err != nil {
		t.Fatal(err)
	}
	ann.Plays, bob.Plays = true, true
	func() {
		defer func() { _ = recover() }() // Of fails.
		until(t, w, "the end of the table", func() bool { return len(fails.said) > 0 })
	}()
	if want := "a newer room has the state"; len(fails.said) == 0 || !strings.Contains(fails.said[0], want) {
		t.Errorf("the world fails with %q, want %q", fails.said, want)
	}
}

// failing is a test that records its failures: a world treats a failed room as a fault.
type failing struct {
	logged
	said []string
}

func (f *failing) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(format)
}

// The lobby deletes matches that were abandoned before the server was started.
func TestTheLobbyDeletesAbandonedMatches(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cards.db")
	for i, want := range []int{1, 0} {
		g := game(file, 2, 5*time.Second)
		g.Config().(*cards.Config).Keep = time.Hour
		w := world(t, g)
		w.Step(10)
		w.Settle()
		if i == 0 {
			link := netlooptest.Link{Delay: 10 * time.Millisecond}
			_, ann := seat(t, w, "ann", "oak", false, link)
			seat(t, w, "bob", "oak", false, link)
			until(t, w, "cards", func() bool { return ann.View.Table.Phase == cards.Playing })
			w.Settle()
		}
		if n, err := g.Stored(); n != want || err != nil {
			t.Errorf("start %d: %d tables are stored, want %d: %v", i, n, want, err)
		}
		if err := g.AgeStore(2 * time.Hour); err != nil {
			t.Fatal(err)
		}
	}
}

// The room of a table owns its row by its incarnation: a later room has a larger one.
func TestATableIsOwnedByItsRoom(t *testing.T) {
	g := game("", 2, 5*time.Second)
	w := world(t, g)
	seat(t, w, "ann", "oak", false, netlooptest.Link{Delay: 10 * time.Millisecond})
	w.Settle()
	var room uint64
	w.Room("table/oak").Tick(func(tick *netloop.Tick) { room = tick.Room().Incarnation() })
	if owner, err := g.Owner("table/oak"); owner != room || room < 2 || err != nil {
		t.Errorf("the owner is %d, and the room %d: %v", owner, room, err)
	}
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// A database that refuses writes for a while loses no data: the table continues, the result of
// its match is stored as soon as possible, and no other match begins before. The recording of the
// table replays, without a lobby and a database.
func TestAFailedSaveIsTriedAgain(t *testing.T) {
	g, files := game("", 2, 5*time.Second), recordings{}
	g.Config().(*cards.Config).Goal = 1
	log := &logged{TB: t}
	w := netlooptest.New(log, g, netlooptest.Room(g.RoomDefaults()), netlooptest.RecordRoom(files.open))
	link := netlooptest.Link{Delay: 10 * time.Millisecond}
	annClient, ann := seat(t, w, "ann", "oak", true, link)
	if err := g.BreakStore(true); err != nil {
		t.Fatal(err)
	}
	bobClient, bob := seat(t, w, "bob", "oak", true, link)
	over := func() bool { return ann.View.AtTable && ann.View.Table.Phase == cards.Over }
	until(t, w, "the end of the match", over)
	for range 100 { // Twice as long as the scores are shown.
		w.Step(6)
		w.Settle()
		if !over() {
			t.Fatal("the next match begins before the result is stored")
		}
	}
	if len(log.lines) != 1 || !strings.Contains(log.lines[0], "states cannot be stored") {
		t.Errorf("the log has %q", log.lines)
	}
	if err := g.BreakStore(false); err != nil {
		t.Fatal(err)
	}
	until(t, w, "the next match", func() bool { return !over() })
	var won cards.Won
	for c, b := range map[*client.Client]*bot.Bot{annClient: ann, bobClient: bob} {
		if err := try(t, w, b.Leave); err != nil {
			t.Fatal(err)
		}
		until(t, w, "the lobby", func() bool { return !b.Busy() && !b.View.AtTable })
		_ = try(t, w, func(then func(error)) {
			client.Call(c, cards.Record, cards.RecordQuery{}, func(_ *netloop.Tick, r cards.Won, err error) {
				won.Played, won.Won = won.Played+r.Played, won.Won+r.Won
				then(err)
			})
		})
	}
	if won.Played < 2 || won.Played != 2*won.Won {
		t.Errorf("both have won %d of %d", won.Won, won.Played)
	}
	p, err := netloop.NewReplay(netloop.Config{}, replayed(2, 1), bytes.NewReader(files["table/oak"].Bytes()))
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the replay of the table:", err)
	}
}

// replayed makes a new game, as a replay opens it.
func replayed(players, goal int) *cards.Game {
	g := game("", players, 5*time.Second)
	g.Config().(*cards.Config).Goal = goal
	return g
}

// A player that rejoins as a spectator does not wait for a match any more: a player without a
// seat gets no cards.
func TestASpectatorIsDealtNoCards(t *testing.T) {
	w := world(t, game("", 2, 5*time.Second))
	link := netlooptest.Link{Delay: 10 * time.Millisecond}
	seat(t, w, "ann", "oak", false, link)
	_, again := joinPlayer(t, w, "ann", link)
	sit(t, w, again, cards.SitDown{Table: "oak", Watch: true})
	_, bob := seat(t, w, "bob", "oak", false, link)
	w.Step(60)
	if v := bob.View.Table; v.Phase != cards.Waiting || len(bob.View.Seats) != 1 {
		t.Errorf("the table is in phase %d with %+v", v.Phase, bob.View.Seats)
	}
}
