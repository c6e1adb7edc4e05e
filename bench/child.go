package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/netloop/netloop/bench/measure"
)

const (
	startLimit = 30 * time.Second      // until a program is ready
	pollEvery  = 20 * time.Millisecond // between checks of another program
)

// addresses is the content of a server's --addr-file.
type addresses struct {
	Listen string `json:"listen"`
	Admin  string `json:"admin"`
	Web    string `json:"web"` // of WebSockets; empty without

	CertHash string `json:"cert_hash"` // in hex; bare quic-go has none
}

func writeAddresses(file string, a addresses) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// played is the clients' report on themselves, a part of a load client's result.
type played struct {
	Generator struct {
		Lateness struct {
			P99 *float64 `json:"p99"`
		} `json:"lateness_ms"`
	} `json:"generator"`
	Clients struct {
		Connected    int `json:"connected"`
		Disconnected int `json:"disconnected"`
	} `json:"clients"`
	Snapshots struct {
		Rate struct {
			P50 *float64 `json:"p50"`
		} `json:"rate_hz"`
		Interval struct {
			P99 *float64 `json:"p99"`
			Max *float64 `json:"max"`
		} `json:"interval_ms"`
	} `json:"snapshots"`
	Converged bool `json:"converged"`
	Saturated bool `json:"saturated"`
}

// writeResult writes the report [played] of bare quic-go clients, which have no state to check.
func writeResult(out string, late, period time.Duration) error {
	ms := float64(late) / float64(time.Millisecond)
	r := played{Converged: true, Saturated: late > period}
	r.Generator.Lateness.P99 = &ms
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(strings.TrimPrefix(out, "json="), text, 0o600)
}

// start starts a program in one of its roles, on one core. Env is added to this program's
// environment.
func start(program string, core int, env []string, role string, args ...string) (*measure.Process, error) {
	return startBy(measure.Pinned(core), program, env, role, args...)
}

// startBy starts a program in one of its roles by a function that calls cmd.Start.
func startBy(by func(*exec.Cmd) error, program string, env []string, role string, args ...string) (*measure.Process, error) {
	cmd := exec.Command(program, append([]string{role}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	return measure.Start(by, cmd)
}

// exitShort is a load client's status for a run with shortfalls: it has measured, and its result
// names the shortfall.
const exitShort = 99

// serverEnv returns the additional environment of servers.
func (b *bench) serverEnv() []string {
	if b.gogc == "" {
		return nil
	}
	return []string{"GOGC=" + b.gogc}
}

// startServer starts a server and waits until it has written its addresses.
func (b *bench) startServer(ctx context.Context, program, role string, args ...string) (*measure.Process, addresses, error) {
	file := filepath.Join(b.dir, "addresses")
	_ = os.Remove(file) // The file of the server before.
	c, err := start(program, b.serverCore, b.serverEnv(), role, append(args, "--addr-file", file)...)
	if err != nil {
		return nil, addresses{}, err
	}
	at, err := ready(ctx, c, file)
	return c, at, err
}

// ready waits until a server has written its addresses to a file, and stops it if it does not.
func ready(ctx context.Context, c *measure.Process, file string) (at addresses, err error) {
	limit := time.Now().Add(startLimit)
	for {
		if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &at) == nil && at.Listen != "" {
			return at, nil
		}
		select {
		case <-c.Ended():
			return at, fmt.Errorf("before it was ready: %w", c.Err())
		case <-time.After(pollEvery):
		}
		if ctx.Err() != nil || time.Now().After(limit) {
			c.Stop()
			return at, fmt.Errorf("%s was not ready in time", c.Name())
		}
	}
}
