package netlooptest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/netloop/netloop"
)

// failing is a test that has failed, or has passed, with its log.
type failing struct {
	testing.TB
	passes bool
	logged []string
	ends   []func()
}

func (f *failing) Failed() bool               { return !f.passes }
func (f *failing) Cleanup(fn func())          { f.ends = append(f.ends, fn) }
func (f *failing) Logf(text string, a ...any) { f.logged = append(f.logged, fmt.Sprintf(text, a...)) }

// defaulting is a game with defaults for the rates of its room.
type defaulting struct{ netloop.Game }

func (defaulting) RoomDefaults() netloop.RoomSpec {
	return netloop.RoomSpec{Rate: netloop.Hz(20), MaxClients: 7}
}

// A failed test prints each of its seeds once, however many worlds it has made with them, and the
// fields of its room that have the game's defaults.
func TestAFailedTestPrintsItsSeedOnce(t *testing.T) {
	f := &failing{TB: t}
	for _, seed := range []uint64{5, 5, 6, 5} {
		logSeed(f, seed)
	}
	logRoomDefaults(f, netloop.RoomSpec{MaxClients: 3}, defaulting{})
	logRoomDefaults(f, netloop.RoomSpec{}, defaulting{})
	for _, end := range f.ends {
		end()
	}
	if len(f.logged) != 3 || !strings.HasPrefix(f.logged[0], "seed 5:") || !strings.HasPrefix(f.logged[1], "seed 6:") ||
		f.logged[2] != "netlooptest: Room leaves Rate to the game's RoomDefaults" {
		t.Errorf("it logs %q", f.logged)
	}
}

// A passed test prints neither.
func TestAPassedTestPrintsNoSeed(t *testing.T) {
	f := &failing{TB: t, passes: true}
	logSeed(f, 5)
	logRoomDefaults(f, netloop.RoomSpec{MaxClients: 3}, defaulting{})
	for _, end := range f.ends {
		end()
	}
	if len(f.ends) != 2 || len(f.logged) != 0 {
		t.Errorf("it logs %q", f.logged)
	}
}
