package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/persist/files"
	"github.com/netloop/netloop/persist/sqlite"
)

// crashState is the kept state of a room: N changes, and N marks, so that a torn record shows.
type crashState struct {
	N     int
	Marks []int
}

var crashSchema = netloop.NewSchema("crash", 1, 0)

const (
	crashEvery = 50 * time.Millisecond
	crashRate  = 200 // ticks, and changes, per second
)

// bookkeeper is a game whose room changes its state in each tick. It writes a line for each state:
// "loaded", "changed", and "stored" when the store has it.
type bookkeeper struct{ store persist.Store }

func (*bookkeeper) Schema() *netloop.Schema { return crashSchema }

func (*bookkeeper) RoomDefaults() netloop.RoomSpec {
	return netloop.RoomSpec{Rate: netloop.Hz(crashRate)}
}

// Save implements persist.Store.
func (g *bookkeeper) Save(ctx context.Context, key string, incarnation uint64, record []byte) error {
	var n int
	if _, err := fmt.Sscanf(string(record), `{"N":%d`, &n); err != nil {
		return err
	}
	err := g.store.Save(ctx, key, incarnation, record)
	if err == nil {
		fmt.Println("stored", n)
	}
	return err
}

func (g *bookkeeper) Load(ctx context.Context, key string, incarnation uint64) ([]byte, error) {
	return g.store.Load(ctx, key, incarnation)
}

func (g *bookkeeper) Delete(ctx context.Context, key string, incarnation uint64) error {
	return g.store.Delete(ctx, key, incarnation)
}

func (g *bookkeeper) Open(r *netloop.Room) error {
	state := &crashState{}
	saver, stored, err := persist.Keep(r, persist.Config[crashState]{
		Keeper: persist.New(g), Key: "book", Every: crashEvery, Save: func() *crashState { return state },
	})
	if err != nil {
		return err
	}
	if stored != nil {
		state = stored
	}
	whole := len(state.Marks) == state.N
	for i, m := range state.Marks {
		whole = whole && m == i
	}
	fmt.Println("loaded", state.N, whole)
	r.On(netloop.Update, "count", func(t *netloop.Tick) {
		state.Marks = append(state.Marks, state.N)
		state.N++
		saver.Changed(t)
		fmt.Println("changed", state.N)
	})
	return nil
}

// A server that is killed at a random moment loads the newest stored state, whole: it has lost no
// more than the changes of an interval, and those made while the store was at work.
func TestAKilledServerLosesAnInterval(t *testing.T) {
	if dir := os.Getenv("NETLOOP_TEST_CRASHES"); dir != "" {
		keepBooks(t, dir)
		return
	}
	kills := 10
	if os.Getenv("NETLOOP_VERIFY") != "" {
		kills = 1000
	}
	for _, kind := range []string{"files", "sqlite"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), kind)
			seed, was, most := rand.Uint64(), life{}, 0
			rnd := rand.New(rand.NewPCG(seed, 1))
			for kill := range kills {
				is := crash(t, dir, time.Duration(rnd.Int64N(int64(6*crashEvery))))
				if kill > 0 && (!is.whole || is.loaded < was.stored || is.loaded > was.changed+1 && was.changed > 0) {
					t.Fatalf("seed %d, kill %d: state %d is loaded, whole: %v; state %d was stored, and the newest was %d", seed, kill, is.loaded, is.whole, was.stored, was.changed)
				}
				most = max(most, was.changed-is.loaded)
				if was = is; is.loaded > 5000 { // Keep records small.
					dir, was = filepath.Join(t.TempDir(), kind), life{}
				}
			}
			if t.Logf("at most %d changes of %d a second were lost", most, crashRate); was.loaded == 0 {
				t.Errorf("nothing of %d kills is kept", kills)
			}
		})
	}
}

// life is the newest state of each kind that a server has reported.
type life struct {
	loaded, changed, stored int
	whole                   bool
}

// crash starts a server, kills it some time after it has loaded its state, and returns its life.
func crash(t *testing.T, dir string, after time.Duration) (l life) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAKilledServerLosesAnInterval$")
	cmd.Env = append(os.Environ(), "NETLOOP_TEST_CRASHES="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	said := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var what string
		var n int
		if _, err := fmt.Sscan(lines.Text(), &what, &n); err != nil {
			continue // The testing package writes too.
		}
		switch what {
		case "loaded":
			said = true
			l.loaded, l.changed, l.stored = n, n, n
			_, _ = fmt.Sscanf(lines.Text(), "loaded %d %t", &n, &l.whole)
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		case "changed":
			l.changed = n
		case "stored":
			l.stored = n
		}
	}
	_ = cmd.Wait()
	if !said {
		t.Fatal("the server has not loaded its state")
	}
	return l
}

// keepBooks serves until the process is killed.
func keepBooks(t *testing.T, dir string) {
	var store persist.Store
	var err error
	if filepath.Base(dir) == "files" {
		store, err = files.Open(dir)
	} else {
		store, err = sqlite.Open(t.Context(), dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	server, err := netloop.New(netloop.Config{Listen: "127.0.0.1:0"}, &bookkeeper{store})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
