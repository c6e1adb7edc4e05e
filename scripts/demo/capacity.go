package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is a sort of players, of whom -capacity searches the largest number.
type kind struct {
	name           string
	server, client string   // programs
	flags          []string // of find
}

// kinds are the values of -players.
var kinds = []kind{
	{"arena", "server", "loadclient", []string{"--profile", "play"}},
	{"idle", "server", "loadclient", []string{"--profile", "idle"}},
	// A table without a move sleeps, and sends nothing: its players notice answers, not snapshots.
	// Two frames of a client that waits take 100 ms.
	{"cards", "cards-server", "cards-load", []string{
		"--threshold", "call.answered>=99%", "--threshold", "call.latency.p99<150ms",
		"--threshold", "server.tick.p99<50%", "--threshold", "server.flush.p99<1tick",
	}},
}

// search is a result of find, and the players and the tick rate that it is about.
type search struct {
	Players string `json:"players"`
	Rate    int    `json:"tick_rate_hz"`
	Result  struct {
		Knee        int    `json:"knee"`
		Broken      int    `json:"broken"`
		Saturated   string `json:"saturated"`
		Interrupted bool   `json:"interrupted"`
		Steps       []struct {
			Clients   int      `json:"clients"`
			Met       bool     `json:"met"`
			Age       *float64 `json:"snapshot_age_p99_ms"`
			Tick      *float64 `json:"server_tick_p99_ms"`
			Server    *float64 `json:"server_cpu_cores"`
			Generator *float64 `json:"generator_cpu_cores"`
		} `json:"steps"`
	} `json:"result"`
}

// row is the line of a search for a table in docs: with the figures of the largest number that met
// the thresholds. A load client at its limit shows only a lower bound of the server.
func (s *search) row() string {
	r := &s.Result
	held, more := strconv.Itoa(r.Knee), "at "+strconv.Itoa(r.Broken)+": "+r.Saturated
	if r.Interrupted || r.Broken == 0 || r.Saturated == "generator" {
		held = "≥ " + held
	}
	switch {
	case r.Interrupted:
		more = "interrupted"
	case r.Broken == 0:
		more = "limit of the search"
	}
	age, tick, cores, own := "–", "–", "–", "–"
	number := func(x *float64) string {
		if x == nil {
			return "–"
		}
		return strconv.FormatFloat(*x, 'f', 2, 64)
	}
	for _, step := range r.Steps {
		if step.Met && step.Clients == r.Knee {
			age, tick, cores, own = number(step.Age), number(step.Tick), number(step.Server), number(step.Generator)
		}
	}
	return fmt.Sprintf("| %s | %d | %s | %s | %s | %s | %s | %s |", s.Players, s.Rate, held, age, tick, cores, own, more)
}

const rowHead = "| players | Hz | clients | age p99, ms | tick p99, ms | server, cores | load client, cores | saturated |\n|---|---|---|---|---|---|---|---|"

// capacity searches the number of players of each sort at each rate, prints a row when it is known,
// and adds the search to the file. An interrupt ends the search; all rows until then are kept.
func capacity(ctx context.Context, o options, out io.Writer) error {
	fmt.Fprintf(out, "%s, %d cores, %s\n\n%s\n", time.Now().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), rowHead)
	var all []search
	for _, k := range o.players {
		for _, rate := range o.rates {
			s, err := find(ctx, o, k, rate)
			if s != nil {
				all = append(all, *s)
				fmt.Fprintln(out, s.row())
				err = errors.Join(err, save(o.capacity, all))
			}
			if err != nil || ctx.Err() != nil {
				return err
			}
		}
	}
	return nil
}

// save writes all searches in place of those of the file.
func save(file string, all []search) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// find runs a server and one search. It returns nil if there is no result.
func find(ctx context.Context, o options, k kind, rate int) (s *search, err error) {
	dir, err := os.MkdirTemp("", "netloop-capacity-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	result := filepath.Join(dir, "find.json")
	err = serve(ctx, o, k.server, dir, []string{"--tick-rate", strconv.Itoa(rate), "--max-clients", strconv.Itoa(maxClients), "--web", ""}, func(at addresses) error {
		args := append([]string{
			"find", "--addr", at.Listen, "--admin", "http://" + at.Admin, "--clients", strconv.Itoa(o.clients), "--from", strconv.Itoa(min(o.from, o.clients)),
			"--duration", o.duration.String(), "--verify", "8", "--out", "json=" + result, "--ui", "plain",
		}, append(k.flags, o.extra...)...)
		play := command(ctx, o.bin, k.client, args...)
		play.Stdout = nil
		var exit *exec.ExitError
		// The result has the reason of a status.
		if err := play.Run(); err != nil && !errors.As(err, &exit) {
			return fmt.Errorf("load client: %w", err)
		}
		return nil
	})
	text, missing := os.ReadFile(result)
	if missing != nil {
		if ctx.Err() != nil {
			return nil, nil // Interrupted before the first step.
		}
		return nil, cmp.Or(err, fmt.Errorf("%s at %d Hz: there is no result: %w", k.name, rate, missing))
	}
	s = &search{Players: k.name, Rate: rate}
	if e := json.Unmarshal(text, &s.Result); e != nil {
		return nil, e
	}
	return s, err
}

// parsePlayers reads -players and -rates.
func (o *options) parsePlayers(players, rates string) error {
	for name := range strings.SplitSeq(players, ",") {
		at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if at < 0 {
			return fmt.Errorf("-players: %q cannot be used: use arena, idle and cards", name)
		}
		o.players = append(o.players, kinds[at])
	}
	for text := range strings.SplitSeq(rates, ",") {
		rate, err := strconv.Atoi(text)
		if err != nil || rate < 1 || rate > 1000 {
			return fmt.Errorf("-rates: %q cannot be used: use ticks a second, as in 20,30,60", text)
		}
		o.rates = append(o.rates, rate)
	}
	return nil
}
