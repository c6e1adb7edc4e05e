package simulation

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
)

// play plays one story. In virtual time all runs on one goroutine of a synctest bubble: work given
// to Go runs to its end, or to its next wait, before the story continues.
type play struct {
	story   *Story
	d       *declared
	tb      *quiet
	make    func() world
	w       world // nil in a replay
	server  *netloop.Server
	bots    map[int]*bot
	all     []*bot // in the order of joining
	tickets map[uint64][]netloop.Ticket
	tokens  tokens
	timers  []timer
	ended   bool
	dead    map[*netloop.Server]bool // servers that have crashed
	calm    bool                     // troubles are over
	planned int                      // panics
	misuses int                      // planned changes of state that netloop reports
	floods  bool                     // a bot has sent too much, so that limits may drop messages

	rooms     rooms
	rights    rights_
	secrets   secrets
	mail      mail
	inputs    inputs
	replicas  replicas
	saves     saves
	lists     lists
	ends      ends
	between   between
	reasons   reasons
	tables    tables
	keeps     *keeps
	matches   matches
	turns     turns
	operator  operator
	resources resources
	stored    map[string][]string // players of stored matches, by room

	finding *finding
	lines   []string // of the transcript, if it is kept
	keep    bool
	real    bool // the world is in real time
	shadow  bool // it is of a replay
	digest  uint64
}

// finding is a broken promise.
type finding struct {
	Check, Text string
	At          time.Duration
}

type timer struct {
	at time.Duration
	do func()
}

// result is the outcome of a story.
type result struct {
	finding *finding
	digest  uint64
	lines   []string
	rooms   time.Duration // virtual time of all rooms
}

// run plays a story in a bubble.
func run(t *testing.T, s *Story, keep bool) (r result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(s)
		p.keep, p.make = keep, p.virtual
		p.tb = &quiet{TB: t, p: p}
		func() {
			defer p.tb.stopped()
			p.run()
		}()
		func() {
			defer p.tb.stopped()
			p.tb.clean()
		}()
		if p.finding == nil {
			p.resources.over()
		}
		p.saves.release()
		if !p.keeps.idle() { // A story that breaks a promise ends at once.
			time.Sleep(2 * hanging)
		}
		r = result{p.finding, p.digest, p.lines, p.rooms.lived}
	})
	return r
}

func newPlay(s *Story) *play {
	p := &play{story: s, d: declare(s.Parts), bots: map[int]*bot{}, dead: map[*netloop.Server]bool{}, tickets: map[uint64][]netloop.Ticket{}, stored: map[string][]string{}}
	p.tokens.p = p
	p.rooms, p.rights, p.mail, p.inputs = newRooms(p), rights_{p: p}, newMail(p), newInputs(p)
	p.secrets, p.tables = newSecrets(p), tables{p: p}
	p.replicas, p.saves, p.lists, p.ends = replicas{p: p}, newSaves(p), newLists(p), newEnds(p)
	p.reasons, p.between = newReasons(p), newBetween(p)
	p.keeps, p.matches, p.turns, p.resources = newKeeps(p), newMatches(p), turns{p}, newResources(p)
	p.operator = newOperator(p)
	return p
}

// game returns the game of a server.
func (p *play) game() netloop.Game {
	if p.story.Server.Opener {
		return openerGame{game{p}}
	}
	return game{p}
}

// configure sets the fields of a Config for the story.
func (p *play) configure(c *netloop.Config) {
	p.story.Server.configure(c)
	c.Registerer = &p.tables
	if p.story.Server.Record {
		c.Record = p.replicas.record(c.Room.Name)
		c.RecordRoom = func(info netloop.RoomInfo) (io.WriteCloser, error) {
			defer p.enter()()
			return nopCloser{p.replicas.record(info.Spec.Name)}, nil
		}
	}
}

func (p *play) run() {
	p.w = p.make()
	for i := range p.story.Events {
		e := &p.story.Events[i]
		if !p.until(e.At) || p.w.Ended() != nil {
			break
		}
		p.note("%v", *e)
		if row := actionOf(e.Do); row != nil {
			row.play(p, e)
		}
		p.check()
	}
	if p.w.Ended() == nil && p.until(p.story.Length) {
		p.recover()
	}
	p.end()
}

// listen registers the handlers of the program around a server.
func (p *play) listen() {
	err := p.d.news.HandleServer(p.server, func(_ context.Context, from *netloop.Sender, m talk) {
		defer p.enter()()
		p.between.ran(roomKey{name: program}, 0, from, m)
	})
	if err != nil {
		p.fail("world", "HandleServer: %v", err)
	}
}

func actionOf(name string) *action {
	for i := range actions {
		if actions[i].name == name {
			return &actions[i]
		}
	}
	return nil
}

// nap is how often the checks look, and the longest by which work ends late.
const nap = 50 * time.Millisecond

// until plays until a time. It reports false once a check has found something.
func (p *play) until(at time.Duration) bool {
	for p.finding == nil {
		next := min(at, p.w.Now()+nap)
		if len(p.timers) > 0 {
			next = min(next, max(p.timers[0].at, p.w.Now()))
		}
		p.w.Advance(next - p.w.Now())
		if len(p.timers) > 0 && p.timers[0].at <= p.w.Now() {
			do := p.timers[0].do
			p.timers = p.timers[1:]
			do()
		}
		p.check()
		if p.w.Now() >= at {
			break
		}
	}
	return p.finding == nil
}

// later calls a function at a time, unless the troubles end before.
func (p *play) later(d time.Duration, do func()) {
	if p.calm {
		return
	}
	at := p.w.Now() + d
	i := 0
	for i < len(p.timers) && p.timers[i].at <= at {
		i++
	}
	p.timers = slices.Insert(p.timers, i, timer{at, do})
}

// spend lets time pass within a tick, or stops the machine between two.
func (p *play) spend(d time.Duration) {
	if p.w != nil {
		p.rooms.stall(d)
		p.w.Spend(d)
	}
}

// settle lets work that was just given to Go run.
func (p *play) settle() {
	if p.w != nil {
		p.w.settle()
	}
}

// enter takes the lock of the world, for a goroutine that is neither the play's nor a room's.
func (p *play) enter() (leave func()) {
	if p.w == nil {
		return func() {}
	}
	p.w.lock()
	return p.w.unlock
}

// apart delays a goroutine by some microseconds, so that it runs at an instant of its own, since
// goroutines of one instant have no order. Two incarnations have different delays.
func (p *play) apart(inc uint64) {
	if p.w != nil && !p.real {
		time.Sleep(time.Duration(inc%1000*100 + 50))
	}
}

// without calls a function without the lock: the server may call the game in it.
func (p *play) without(call func(s *netloop.Server)) {
	s := p.server
	p.w.unlock()
	defer p.w.lock()
	call(s)
}

// check looks for promises that hold at any time.
func (p *play) check() {
	p.rooms.check()
	p.ends.check()
	p.keeps.check()
	p.operator.check()
	p.mail.poll()
}

// recover ends all troubles, waits, and looks for promises that hold without troubles.
func (p *play) recover() {
	p.heal()
	for _, name := range p.rooms.names() {
		p.post(name, command{Do: "quiet"})
	}
	if !p.await(p.rooms.patience(), p.w.atRest) {
		return
	}
	for _, look := range []func(){p.rooms.rest, p.w.rest, p.lists.rest, p.mail.rest, p.between.rest, p.rooms.restShots, mispredicted{p}.rest, p.inputs.rest, p.replicas.rest, p.saves.rest, p.turns.rest, p.matches.rest, p.rooms.restSeats, p.operator.rest, p.rooms.normal, p.tables.rest} {
		if p.finding == nil && p.w.Ended() == nil {
			p.look(look)
		}
	}
}

// await plays for a time, or until a condition holds. It reports false once a check has found
// something.
func (p *play) await(d time.Duration, done func() bool) bool {
	for by := p.w.Now() + d; p.w.Now() < by && !done(); {
		if !p.until(min(p.w.Now()+nap, by)) {
			return false
		}
	}
	return p.finding == nil
}

// unreserved reports whether no seat is reserved by a ticket.
func (p *play) unreserved() bool {
	for info := range p.server.Rooms() {
		if info.Reserved > 0 {
			return false
		}
	}
	return true
}

// look looks for broken promises. In real time, where packets and ticks may be late, it looks again
// for a while before a promise is broken.
func (p *play) look(check func()) {
	by := p.w.Now() + p.slack(finishing)
	for check(); p.finding != nil && p.w.Now() < by && p.w.Ended() == nil; check() {
		p.finding = nil
		if !p.until(p.w.Now()+4*nap) || p.w.Ended() != nil {
			return
		}
	}
}

// slack is how much later than in virtual time something may happen, on a loaded machine.
func (p *play) slack(d time.Duration) time.Duration {
	if p.real {
		return d
	}
	return 0
}

// heal ends the troubles of bots and of the store.
func (p *play) heal() {
	p.calm, p.timers = true, nil
	p.saves.latency, p.saves.failing = 0, false
	p.keeps.heal()
	p.operator.heal()
	for _, g := range p.all {
		if !g.gone {
			g.heal()
		}
	}
}

// end ends the server, and looks for promises about the end.
func (p *play) end() {
	if p.finding != nil {
		return
	}
	p.heal()
	p.ends.drains(p.story.Drain)
	p.w.Drain(p.story.Drain)
	p.w.Advance(0)
	p.ended = true
	p.await(settled+hanging, p.told)
	for _, look := range []func(){p.rooms.over, p.ends.over, p.mail.over, p.between.over, p.tables.over, p.replicas.replay} {
		if p.finding == nil {
			look()
		}
	}
}

// told reports whether all rooms have ended, all bots know that the server has, and no call of the
// store is under way.
func (p *play) told() bool {
	return len(p.rooms.byName) == 0 && p.keeps.idle() && !slices.ContainsFunc(p.all, func(g *bot) bool { return !g.gone && g.c.Closed() == nil })
}

// fail records the first broken promise.
func (p *play) fail(check, format string, a ...any) {
	if p.finding == nil && (p.w != nil || p.tb != nil) { // A replay has neither.
		p.finding = &finding{check, fmt.Sprintf(format, a...), p.rooms.now()}
	}
}

// note adds a line to the transcript.
func (p *play) note(format string, a ...any) {
	if p.w == nil {
		return
	}
	line := fmt.Sprintf("%12v ", p.w.Now()) + fmt.Sprintf(format, a...)
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %s", p.digest, line)
	p.digest = h.Sum64()
	if p.keep {
		p.lines = append(p.lines, line)
	}
}

// quiet is the testing.TB of a world: its failures become findings.
type quiet struct {
	testing.TB
	p        *play
	cleanups []func()
}

type stop struct{}

func (q *quiet) Helper()             {}
func (q *quiet) Log(...any)          {}
func (q *quiet) Logf(string, ...any) {}
func (q *quiet) Failed() bool        { return q.p.finding != nil }
func (q *quiet) Cleanup(fn func())   { q.cleanups = append(q.cleanups, fn) }
func (q *quiet) Name() string        { return "simulation" }
func (q *quiet) Error(a ...any)      { q.Errorf("%s", fmt.Sprint(a...)) }
func (q *quiet) Fatal(a ...any)      { q.Fatalf("%s", fmt.Sprint(a...)) }
func (q *quiet) Fail()               { q.Errorf("the world fails") }
func (q *quiet) FailNow()            { q.Fatalf("the world fails") }

func (q *quiet) Errorf(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	misused := strings.Contains(text, "does not fit") || strings.Contains(text, "without Edit")
	if strings.HasSuffix(text, "panicked") && q.p.planned > 0 || misused && q.p.misuses > 0 || q.p.keeps.forgiven(text) {
		return
	}
	q.p.fail("world", "%s", text)
}

func (q *quiet) Fatalf(format string, a ...any) {
	if q.p.keeps.forgiven(fmt.Sprintf(format, a...)) {
		return
	}
	q.Errorf(format, a...)
	panic(stop{})
}

// stopped ends a panic of Fatalf. It is deferred.
func (q *quiet) stopped() {
	switch v := recover().(type) {
	case nil, stop:
	default:
		panic(v)
	}
}

func (q *quiet) clean() {
	for _, fn := range slices.Backward(q.cleanups) {
		fn()
	}
	q.cleanups = nil
}

type nopCloser struct{ *bytes.Buffer }

func (nopCloser) Close() error { return nil }
