package arena

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the flights that the page's tests read")

// flight is a step of a ship's flight, as the page's test reads it.
type flight struct {
	Was, Is path
}

// path is the part of a ship that moves.
type path struct {
	X, Y, VX, VY, Heading float32
	Leaps                 uint8
	Thrust                bool
	Turn                  int8
}

func pathOf(s Ship) path { return path{s.X, s.Y, s.VX, s.VY, s.Heading, s.Leaps, s.Thrust, s.Turn} }

// TestThePageHasTheGamesFlights checks that the flights in steer.test.ts, which the page's
// steering must equal, are those of the current game.
func TestThePageHasTheGamesFlights(t *testing.T) {
	file := filepath.Join("web", "testdata", "flights.json")
	rng := rand.New(rand.NewPCG(1, 1))
	var flights []flight
	s := Ship{X: 4000, Y: 50}
	over := 0
	for i := range 600 {
		if i%15 == 0 {
			s.Thrust, s.Turn = rng.IntN(4) > 0, int8(rng.IntN(3)-1)
		}
		was := pathOf(s)
		s.fly(float32(1) / 60)
		if s.Leaps != was.Leaps {
			over++
		}
		flights = append(flights, flight{was, pathOf(s)})
	}
	if over == 0 {
		t.Error("no flight crosses an edge")
	}
	if *rewrite {
		b, err := json.Marshal(flights)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(b, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kept []flight
	if err := json.Unmarshal(b, &kept); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(kept, flights) {
		t.Errorf("%s is outdated: go test -run TestThePageHasTheGamesFlights ./examples/arena -rewrite", file)
	}
}
