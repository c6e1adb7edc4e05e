package loadtest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// The game of these rows: each player holds a stick and sometimes presses a button.
var (
	pathSchema = netloop.NewSchema("path", 1, 0)
	sticks     = netloop.NewInput(pathSchema, func(last stick, _ int) stick {
		last.Fire = false
		return last
	})
)

type stick struct {
	Step uint64
	Fire bool
}

type pathGame struct{ handle func(netloop.ClientID, stick) }

func (pathGame) Schema() *netloop.Schema { return pathSchema }

func (g pathGame) Open(r *netloop.Room) error {
	sticks.Handle(r, func(_ *netloop.Tick, from *netloop.Client, in stick) { g.handle(from.ID(), in) })
	return nil
}

// change is a change of a path's one-way delay from from to to, for a while or, if while is 0,
// permanently.
type change struct {
	from, to, while time.Duration
	dead            time.Duration // the longest permitted time of dead controls
}

// changes are the rows of make feel for changing paths.
var changes = []change{
	{40 * time.Millisecond, 70 * time.Millisecond, 0, 80 * time.Millisecond},
	{70 * time.Millisecond, 40 * time.Millisecond, 0, 50 * time.Millisecond},
	{40 * time.Millisecond, 140 * time.Millisecond, 0, 150 * time.Millisecond},
	{140 * time.Millisecond, 40 * time.Millisecond, 0, 50 * time.Millisecond},
	{40 * time.Millisecond, 120 * time.Millisecond, 600 * time.Millisecond, 130 * time.Millisecond},
	{40 * time.Millisecond, 240 * time.Millisecond, 200 * time.Millisecond, 250 * time.Millisecond},
}

func (x change) String() string {
	s := fmt.Sprintf("%3d → %3d ms", x.from.Milliseconds(), x.to.Milliseconds())
	if x.while > 0 {
		return fmt.Sprintf("%s for %v", s, x.while)
	}
	return s
}

// controlled is a player, and the record of its inputs on the server.
type controlled struct {
	client         *client.Client
	newest         uint64        // step whose input has run
	ran            time.Duration // at this time
	dead           time.Duration // the longest time without a newer input
	presses, heard int
}

// pathFeel has the effects of a change on players.
type pathFeel struct {
	dead             []time.Duration // the longest time of each player, sorted
	presses, heard   int
	missed           uint64        // inputs, in the 10 s after the change
	lead, leadBefore time.Duration // of the first player: 10 s after the change, and before
	jumps            uint64
}

// changePath lets players of all frame rates play over a changing path.
func changePath(t *testing.T, x change, seed uint64) (f pathFeel) {
	t.Helper()
	var w *netlooptest.World
	players := map[netloop.ClientID]*controlled{}
	w = netlooptest.New(t, pathGame{func(id netloop.ClientID, in stick) {
		p := players[id]
		if p == nil {
			return
		}
		if in.Step > p.newest {
			p.dead = max(p.dead, w.Now()-p.ran)
			p.newest, p.ran = in.Step, w.Now()
		}
		if in.Fire {
			p.heard++
		}
	}}, netlooptest.Seed(seed))
	link := netlooptest.Link{Delay: x.from, Jitter: 2 * time.Millisecond}
	var all []*controlled
	press := false // No press whose input could be in flight when they are counted.
	for _, fps := range frameRates {
		p := &controlled{client: w.Join("", nil, link, netlooptest.FPS(fps))}
		client.Inputs(p.client, sticks, func(tick *netloop.Tick) stick {
			fire := press && tick.FixedStep()%15 == 0
			if fire {
				p.presses++
			}
			return stick{tick.FixedStep(), fire}
		})
		w.Until(600, func() bool { return p.client.State().Phase == client.Playing })
		players[p.client.ID()] = p
		all = append(all, p)
	}
	w.Step(600)
	press = true
	var before []uint64
	for _, p := range all {
		p.dead, p.presses, p.heard = 0, 0, 0
		s := p.client.Stats()
		before = append(before, s.InputsMissed)
		f.jumps -= s.LeadJumps
	}
	f.leadBefore = all[0].client.Stats().Lead
	set := func(way time.Duration) {
		link.Delay = way
		for _, p := range all {
			w.SetLink(p.client, link)
		}
	}
	set(x.to)
	if x.while > 0 {
		w.Step(int(x.while * 60 / time.Second))
		set(x.from)
	}
	w.Step(540)
	press = false
	w.Step(60)
	for i, p := range all {
		s := p.client.Stats()
		f.dead = append(f.dead, p.dead)
		f.presses, f.heard = f.presses+p.presses, f.heard+p.heard
		f.missed += s.InputsMissed - before[i]
		f.jumps += s.LeadJumps
	}
	f.lead = all[0].client.Stats().Lead
	slices.Sort(f.dead)
	return f
}

const pathHeader = "way to the server       | controls dead, ms | presses | inputs missed | lead ms\n" +
	"before → then           | p50    worst      | lost    | in 10 s       | before  after 10 s"

func (f *pathFeel) row(x change) string {
	ms := func(d time.Duration) float64 { return float64(d.Round(time.Millisecond)) / float64(time.Millisecond) }
	n := len(f.dead)
	return fmt.Sprintf("%-24s| %-6v %-10v | %-7d | %-13.1f | %-7v %v", x, ms(f.dead[n/2]), ms(f.dead[n-1]), f.presses-f.heard,
		float64(f.missed)/float64(n), ms(f.leadBefore), ms(f.lead))
}

// When a path becomes longer, permanently or for a while, the server runs no new input for the
// added delay and one flush. No press is lost, and after 10 s the lead is that of the new path.
func TestFeelOfAChangingPath(t *testing.T) {
	seeds.OneGoroutine(t)
	rows := pathHeader
	for _, x := range changes {
		f := changePath(t, x, 1)
		rows += "\n" + f.row(x)
		frame := time.Second / 30 // Of the slowest player: it sends its inputs in pairs.
		if worst := f.dead[len(f.dead)-1]; worst > x.dead+frame {
			t.Errorf("%v: the controls are dead for %v, want %v at most", x, worst, x.dead+frame)
		}
		most := x.to
		if x.while > 0 {
			most = x.from
		}
		if f.heard != f.presses {
			t.Errorf("%v: of %d presses %d ran", x, f.presses, f.heard)
		}
		if f.lead > most+80*time.Millisecond || f.jumps > 0 && x.from < x.to {
			t.Errorf("%v: after 10 s the lead is %v, with %d jumps", x, f.lead, f.jumps)
		}
	}
	fmt.Println(rows)
}
