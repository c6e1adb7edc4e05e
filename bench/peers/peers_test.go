package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/bench/measure"
)

// The test's program plays the roles of servers and clients, as the command does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "serve" || os.Args[1] == "play") {
		main()
		return
	}
	os.Exit(m.Run())
}

// A second of netloop and of nano.
func TestPeersPlay(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("NETLOOP_VERIFY is not set")
	}
	b := &bench{plan: plan{warmup: time.Second, window: time.Second}, about: t.Output(), dir: t.TempDir(), programs: map[string]program{}}
	var err error
	if b.server, b.play, err = measure.TwoCores(); err != nil {
		t.Skip(err)
	}
	names := []string{"netloop", "nano"}
	if err := b.make(names, &results{Versions: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		o, err := b.take(t.Context(), cell{part: loopback, world: "flips", rate: 60, clients: 5, peer: peerNamed(name)})
		if err != nil {
			t.Fatal(name, err)
		}
		if o.Rate < 30 || o.Bytes < 100 || o.Server <= 0 || o.AgeP50 < 1 || o.AgeP50 > 500 || o.Lost > 0 {
			t.Errorf("%s: %+v", name, o)
		}
		t.Logf("%s: %s", strings.ToUpper(name), b.programs[name].version)
	}
}
