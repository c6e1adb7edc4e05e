package main

import (
	"encoding/json"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"server": main, "stubborn": stubborn})
}

// TestScripts runs the real program: testdata/*.txtar.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Deadline:            time.Now().Add(patience),
		Setup:               takePort,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "addr": addr},
	})
}

// patience bounds every script and every wait in one: far above the needs of a busy machine.
const patience = time.Minute

// takePort takes a UDP and a TCP port for the length of a script, as $UDP and $TCP, and sets $ARENA
// to the path of the arena.
func takePort(e *testscript.Env) error {
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.Defer(func() { udp.Close() })
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.Defer(func() { tcp.Close() })
	arena, err := filepath.Abs("../../examples/arena")
	if err != nil {
		return err
	}
	e.Setenv("ARENA", arena)
	e.Setenv("UDP", udp.LocalAddr().String())
	e.Setenv("TCP", tcp.Addr().String())
	return nil
}

// exits runs a program that must fail: exits STATUS PROGRAM ARG... It demands
// the exit status and exactly one line on stderr.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || strconv.Itoa(exit.ExitCode()) != args[0] {
		ts.Fatalf("want exit status %s, got %v", args[0], err)
	}
	if text := ts.ReadFile("stderr"); strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		ts.Fatalf("want exactly one line on stderr")
	}
}

// addr checks an address file: addr FILE. It demands usable addresses and a
// certificate hash.
func addr(ts *testscript.TestScript, _ bool, args []string) {
	var at struct {
		Listen   string `json:"listen"`
		Admin    string `json:"admin"`
		CertHash string `json:"cert_hash"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &at))
	for _, hostPort := range []string{at.Listen, at.Admin} {
		if _, port, err := net.SplitHostPort(hostPort); err != nil || port == "0" {
			ts.Fatalf("address %q: %v", hostPort, err)
		}
	}
	if len(at.CertHash) != 64 {
		ts.Fatalf("certificate hash %q", at.CertHash)
	}
}
