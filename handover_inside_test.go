package netloop

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/cluster"
)

// reclaiming is a server with a room that has given its name up, in virtual time. The cluster's
// store does not answer.
type reclaiming struct {
	*testing.T
	hub   *cluster.Memory
	other cluster.Cluster // another server
	room  *Room
	epoch uint64
}

func inReclaim(t *testing.T, test func(*reclaiming)) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := &reclaiming{T: t, hub: cluster.NewMemory(1000, func() time.Duration { return time.Since(began) })}
		cfg := Config{}
		cfg.Cluster.Via, cfg.Cluster.ID, cfg.Cluster.Addr = c.hub.Member(), "x", "x:1"
		s := newStill(t, cfg, closedGame{new(opening)})
		if err := s.joinCluster(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.other = c.hub.Member()
		if err := c.other.Join(t.Context(), cluster.Member{Server: cluster.Server{ID: "y"}}); err != nil {
			t.Fatal(err)
		}
		var err error
		if c.room, err = s.OpenRoom(t.Context(), RoomSpec{Name: "oak"}); err != nil {
			t.Fatal(err)
		}
		c.epoch = c.room.epoch.Load()
		if err := c.room.hold(); err != nil || c.epoch == 0 {
			t.Fatalf("a new room has the epoch %d: %v", c.epoch, err)
		}
		if err := s.member.GiveUp(t.Context(), "oak", cluster.Epoch(c.epoch)); err != nil {
			t.Fatal(err)
		}
		if c.room.hold() == nil {
			t.Error("a room without its name admits newcomers")
		}
		test(c)
	})
}

// A room that continues after a failed hand-over claims its name until the cluster answers, and
// admits newcomers from then on.
func TestARoomClaimsItsNameAgain(t *testing.T) {
	inReclaim(t, func(c *reclaiming) {
		c.hub.StoreGone(true)
		ended := make(chan struct{})
		go func() { c.room.reclaimLater(); close(ended) }()
		time.Sleep(20 * time.Second)
		if got := c.room.epoch.Load(); got != c.epoch || c.room.hold() == nil {
			c.Errorf("without an answer: epoch %d after %d, it admits newcomers: %v", got, c.epoch, c.room.hold() == nil)
		}
		c.hub.StoreGone(false)
		<-ended
		if got := c.room.epoch.Load(); got <= c.epoch || c.room.hold() != nil {
			c.Errorf("after the answer: epoch %d after %d, %v", got, c.epoch, c.room.hold())
		}
	})
}

// A room that continues ends if another server has claimed its name meanwhile.
func TestARoomWhoseNameWasTakenEnds(t *testing.T) {
	inReclaim(t, func(c *reclaiming) {
		if _, err := c.other.Claim(c.Context(), "room/oak", 0); err != nil {
			c.Fatal(err)
		}
		began := time.Now()
		c.room.reclaimLater()
		if c.room.e.Supervisor.Ending() == nil || time.Since(began) != reclaimEvery+storeTime {
			c.Errorf("after %v it continues beside a newer room: %v", time.Since(began), c.room.e.Supervisor.Ending() == nil)
		}
	})
}

// A room that has ended does not claim its name.
func TestARoomThatHasEndedClaimsNoName(t *testing.T) {
	inReclaim(t, func(c *reclaiming) {
		c.room.end(0, CodeClosing, "over")
		c.room.reclaimLater()
		if _, err := c.other.Claim(c.Context(), "room/oak", 0); err != nil {
			c.Errorf("the name is not free: %v", err)
		}
	})
}
