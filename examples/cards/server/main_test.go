package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/bot"
)

// serves makes the test's own program a real server, in a separate process.
const serves = "CARDS_TEST_SERVES"

func TestMain(m *testing.M) {
	if os.Getenv(serves) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// launch starts a server with a database, and returns its address.
func launch(t *testing.T, database, listen string, flags ...string) (server *exec.Cmd, addr string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be signalled here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	flags = append([]string{"run", "--listen", listen, "--cards.database", database, "--cards.players", "2", "--cards.turn", "1h"}, flags...)
	server = exec.CommandContext(ctx, self, flags...)
	server.Env = append(os.Environ(), serves+"=1")
	log, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill() }) // It has usually ended.
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if at := regexp.MustCompile(`serving.*?(127\.0\.0\.1:\d+)`).FindStringSubmatch(lines.Text()); at != nil {
			go func() {
				for lines.Scan() { // Otherwise the server would wait for a reader.
				}
			}()
			return server, at[1]
		}
		t.Log(lines.Text())
	}
	t.Fatal("it did not start")
	return nil, ""
}

// seen is a player's view in a frame.
type seen struct {
	hand  []cards.Card
	place int
	table cards.Table
	calm  int // frames without a change, or with a move under way
}

// continues reports whether a view is that of an earlier one's match, without a lost card or turn.
// After an absence of more than awayTurn a hand may have one more card for each turn of the table.
func (s *seen) continues(was *seen) bool {
	if turns := int(s.table.Turns) - int(was.table.Turns); turns > 0 {
		kept := !slices.ContainsFunc(was.hand, func(c cards.Card) bool { return !slices.Contains(s.hand, c) })
		return kept && len(s.hand) <= len(was.hand)+turns && s.place == was.place && s.table.Name == was.table.Name && s.table.Round == was.table.Round
	}
	before, now := was.table, s.table
	before.Clock.Until, now.Clock.Until = netloop.Deadline{}, netloop.Deadline{}
	return slices.Equal(s.hand, was.hand) && s.place == was.place && now == before
}

func TestAViewContinuesAnotherWithoutALostCardOrTurn(t *testing.T) {
	was := seen{hand: []cards.Card{1, 2}, table: cards.Table{Name: "oak", Turns: 5, Round: 1}}
	for what, now := range map[string]seen{
		"the same":    {hand: []cards.Card{1, 2}, table: was.table},
		"drawn":       {hand: []cards.Card{1, 2, 3}, table: cards.Table{Name: "oak", Turns: 6, Round: 1}},
		"-a turn":     {hand: []cards.Card{1, 2}, table: cards.Table{Name: "oak", Turns: 4, Round: 1}},
		"-a card":     {hand: []cards.Card{1}, table: was.table},
		"-exchanged":  {hand: []cards.Card{1, 3, 4}, table: cards.Table{Name: "oak", Turns: 6, Round: 1}},
		"-two drawn":  {hand: []cards.Card{1, 2, 3, 4}, table: cards.Table{Name: "oak", Turns: 6, Round: 1}},
		"-a round":    {hand: []cards.Card{1, 2}, table: cards.Table{Name: "oak", Turns: 6, Round: 2}},
		"-a seat":     {hand: []cards.Card{1, 2}, place: 1, table: cards.Table{Name: "oak", Turns: 6, Round: 1}},
		"-its place":  {hand: []cards.Card{1, 2}, place: 1, table: was.table},
		"-its table":  {hand: []cards.Card{1, 2}, table: cards.Table{Name: "elm", Turns: 6, Round: 1}},
		"-its winner": {hand: []cards.Card{1, 2}, table: cards.Table{Name: "oak", Turns: 5, Round: 1, Winner: 1}},
	} {
		if now.continues(&was) == strings.HasPrefix(what, "-") {
			t.Errorf("%s: it continues: %v", what, now.continues(&was))
		}
	}
}

// player is a running client.
type player struct {
	now   atomic.Pointer[seen]
	plays atomic.Bool
	anew  atomic.Uint64 // connections after the first one
	ends  atomic.Pointer[netloop.Closed]
	stop  func()
}

// watch seats the player at a table, and records its view in each frame.
func (p *player) watch(c *client.Client, table string) {
	b := bot.New(c)
	b.Plays = false
	c.OnState(func(s client.State) {
		if s.Phase == client.Reconnecting && s.Attempt == 1 {
			p.anew.Add(1)
		}
	})
	c.On(netloop.PostLateUpdate, "test.watch", func(*netloop.Tick) {
		if !b.View.AtTable && !b.Busy() {
			b.Sit(cards.SitDown{Table: table}, func(error) {}) // It is asked again.
		}
		b.Plays = p.plays.Load()
		s := &seen{table: b.View.Table, hand: slices.Clone(b.View.Hand()), place: b.View.Place}
		if was := p.now.Load(); was != nil && !b.Busy() && slices.Equal(was.hand, s.hand) && was.table == s.table {
			s.calm = was.calm + 1
		}
		p.now.Store(s)
	})
}

// seats seats two players at each table. A connection is lost after this silence, or after the
// default one.
func seats(ctx context.Context, t *testing.T, addr string, tables int, lost time.Duration) []*player {
	t.Helper()
	d, err := client.NewDialer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	all := make([]*player, 2*tables)
	var wait sync.WaitGroup
	dials := make(chan struct{}, 8) // Limits concurrent dials.
	for i := range all {
		all[i] = new(player)
		wait.Go(func() {
			dials <- struct{}{}
			defer func() { <-dials }()
			c, err := d.Dial(ctx, addr, client.Config{Schema: cards.Schema, Token: fmt.Sprint("player ", i), LostAfter: lost})
			if err != nil {
				t.Error(err)
				return
			}
			all[i].watch(c, fmt.Sprint("table ", i/2))
			live, stop := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _ = c.Run(live); live.Err() == nil {
					all[i].ends.Store(c.Closed())
				}
			}()
			all[i].stop = sync.OnceFunc(func() { stop(); <-done; _ = c.Close() })
			t.Cleanup(all[i].stop)
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// until waits until a condition holds for every player.
func until(ctx context.Context, t *testing.T, all []*player, what string, holds func(*seen) bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(all, func(p *player) bool { s := p.now.Load(); return s == nil || !holds(s) }) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("timed out: %s", what)
		}
	}
}

// playTurns lets the players play a few turns, and returns their views in a quiet frame after
// them.
func playTurns(ctx context.Context, t *testing.T, all []*player) (before []*seen) {
	t.Helper()
	until(ctx, t, all, "cards", func(s *seen) bool { return s.place >= 0 })
	for _, p := range all {
		p.plays.Store(true)
	}
	until(ctx, t, all, "some turns", func(s *seen) bool { return s.table.Turns > 2 })
	for _, p := range all {
		p.plays.Store(false)
	}
	until(ctx, t, all, "a quiet moment", func(s *seen) bool { return s.calm > 60 && len(s.hand) > 0 })
	for _, p := range all {
		before = append(before, p.now.Load())
	}
	return before
}

// A server with many tables gets a signal in the middle of their matches, and is started again:
// every table continues with every hand.
func TestEveryTableContinuesAfterASignal(t *testing.T) {
	tables := 100
	if testing.Short() {
		tables = 4
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	database := filepath.Join(t.TempDir(), "cards.db")
	server, addr := launch(t, database, "127.0.0.1:0")
	all := seats(ctx, t, addr, tables, 0)
	before := playTurns(ctx, t, all)
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		p.stop()
	}

	server, addr = launch(t, database, "127.0.0.1:0")
	again := seats(ctx, t, addr, tables, 0)
	until(ctx, t, again, "cards", func(s *seen) bool { return s.place >= 0 && s.calm > 10 })
	for i, p := range again {
		was, now := before[i], p.now.Load()
		if !now.continues(was) {
			t.Errorf("player %d had %v at %+v, and has %v at %+v", i, was.hand, was.table, now.hand, now.table)
		}
	}
	if err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait()); err != nil {
		t.Error(err)
	}
}

// A server gets a signal, and players continue while it drains: the row of each table has every
// turn that any of its players received.
func TestEveryTableIsStoredAfterADrain(t *testing.T) {
	tables := 52
	if testing.Short() {
		tables = 8
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	database := filepath.Join(t.TempDir(), "cards.db")
	server, addr := launch(t, database, "127.0.0.1:0", "--drain", "5s", "--cards.goal", "1000", "--cards.pause", "0s")
	all := seats(ctx, t, addr, tables, 0)
	for _, p := range all {
		p.plays.Store(true)
	}
	until(ctx, t, all, "some turns", func(s *seen) bool { return s.table.Turns > 2 })
	if err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait()); err != nil {
		t.Fatal(err)
	}
	rows := matches(t, database)
	turns := 0
	for i, p := range all {
		p.stop()
		s := p.now.Load()
		row := rows[fmt.Sprint("table ", i/2)]
		if row == nil || row.Round < int(s.table.Round) || row.Round == int(s.table.Round) && row.Turns < int(s.table.Turns) {
			t.Errorf("player %d has seen turn %d of round %d, and the row has %+v", i, s.table.Turns, s.table.Round, row)
		}
		turns += int(s.table.Turns)
	}
	t.Logf("the %d tables were in turn %d on average", tables, turns/len(all))
}

// matches returns the tables of a database without a running server, by their names.
func matches(t *testing.T, database string) map[string]*cards.Match {
	t.Helper()
	db, err := sql.Open("sqlite", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT name, match FROM tables")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]*cards.Match{}
	for rows.Next() {
		var name string
		var b []byte
		m := new(cards.Match)
		if err := errors.Join(rows.Scan(&name, &b), json.Unmarshal(b, m)); err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(name, "table/")] = m
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// A server is killed in the middle of matches, and started again. The same clients return to
// their tables without the lobby: the first client of each makes the server open the table again,
// and every hand is kept.
func TestPlayersReturnToTheirTablesAfterACrash(t *testing.T) {
	const tables = 4
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	database, state := filepath.Join(dir, "cards.db"), filepath.Join(dir, "state")
	server, addr := launch(t, database, "127.0.0.1:0", "--state-dir", state)
	all := seats(ctx, t, addr, tables, 2*time.Second)
	before := playTurns(ctx, t, all)
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // It was killed.

	server, _ = launch(t, database, addr, "--state-dir", state)
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i, p := range all {
		for was := before[i]; ; <-tick.C {
			now := p.now.Load()
			if p.anew.Load() > 0 && now.continues(was) && now.calm > 5 {
				break
			}
			if why := p.ends.Load(); why != nil || ctx.Err() != nil {
				t.Fatalf("player %d had %v, and after %v has %v; its client has ended: %v", i, was.hand, time.Since(began), now.hand, why)
			}
		}
	}
	t.Logf("all %d players are at their tables after %v", len(all), time.Since(began).Round(100*time.Millisecond))
	if err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait()); err != nil {
		t.Error(err)
	}
}
