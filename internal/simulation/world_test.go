package simulation

import (
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// finishing bounds the end of a room after its drain in real time: work that was given to Go, and a
// loaded machine.
const finishing = 12 * time.Second

// world is a server and its clients: in virtual time, or in real time over real carriers. The
// methods with the names of those of a netlooptest.World do the same.
type world interface {
	Now() time.Duration
	Advance(d time.Duration)
	Ended() *netloop.Closed
	Drain(d time.Duration)
	Restart(g netloop.Game)
	Spend(d time.Duration)

	Drop(c *client.Client)
	Break(c *client.Client)
	Cut(c *client.Client)
	CutUp(c *client.Client)
	CutDown(c *client.Client)
	Heal(c *client.Client)
	Stall(c *client.Client, on bool)
	Freeze(c *client.Client)
	Thaw(c *client.Client)
	SetLink(c *client.Client, l netlooptest.Link)
	Rebind(c *client.Client, addr string)
	Look(c *client.Client, fn func(*netloop.Tick))

	// join makes a client with the frames and the clock of a bot.
	join(cfg client.Config, e *Event) *client.Client
	open(spec netloop.RoomSpec) error
	// tick calls fn with the tick of a room.
	tick(room string, fn func(*netloop.Tick))
	// stop stops the machine for a time.
	stop(d time.Duration)
	// atRest reports whether no work is pending any more.
	atRest() bool
	// rest looks for promises about connections at rest.
	rest()
	// settle lets work that was just given to Go run.
	settle()
	// lock is held by the goroutine of the play, except while it waits, and in each tick of a room.
	lock()
	unlock()
}

// virtualWorld is a world in virtual time, in a synctest bubble with a clock that follows the
// world's. It has one goroutine, and needs no lock.
type virtualWorld struct {
	*netlooptest.World
	began *time.Time // of the bubble, as of the world's start
}

func (p *play) virtual() world {
	opt := []netlooptest.Option{netlooptest.Seed(p.story.Seed), netlooptest.Configure(p.configure)}
	w := netlooptest.New(p.tb, p.game(), opt...)
	p.listen()
	p.tables.begin()
	began := time.Now()
	return virtualWorld{w, &began}
}

// Advance also lets the bubble's clock follow the world's.
func (w virtualWorld) Advance(d time.Duration) {
	if d > 0 {
		w.World.Advance(d)
	}
	behind := w.Now() - time.Since(*w.began)
	if behind < 0 { // The world stood still while a room waited for its store.
		*w.began = w.began.Add(-behind)
	} else if behind > 0 {
		time.Sleep(behind)
		synctest.Wait()
	}
}

func (w virtualWorld) join(cfg client.Config, e *Event) *client.Client {
	var opt []netlooptest.ClientOption
	if e.Join.FPS > 0 {
		opt = append(opt, netlooptest.FPS(e.Join.FPS))
	}
	if e.Join.PPM != 0 || e.Join.Offset != 0 {
		opt = append(opt, netlooptest.ClientClock(e.Join.Offset, e.Join.PPM))
	}
	return w.JoinAs(cfg, *e.Link, opt...)
}

func (w virtualWorld) open(spec netloop.RoomSpec) error {
	_, err := w.OpenRoom(spec)
	return err
}

func (w virtualWorld) tick(room string, fn func(*netloop.Tick)) { w.Room(room).Tick(fn) }
func (w virtualWorld) stop(d time.Duration)                     { w.Spend(d) }
func (w virtualWorld) atRest() bool                             { return false }
func (w virtualWorld) rest()                                    {}
func (w virtualWorld) settle()                                  { synctest.Wait() }
func (w virtualWorld) lock()                                    {}
func (w virtualWorld) unlock()                                  {}
