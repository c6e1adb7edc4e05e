package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app"
)

// process is a running program of this repository; its log is read line by line.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr io.ReadCloser
	log    *bufio.Scanner
}

// launch starts a program on free ports, in the background. It is killed when
// patience ends.
func launch(t *testing.T, name string, args ...string) *process {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be signalled here")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	args = append([]string{"run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)
	p := &process{t: t, cmd: exec.CommandContext(ctx, name, args...)}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.stderr, p.log = stderr, bufio.NewScanner(stderr)
	return p
}

// logs waits until the log contains a text.
func (p *process) logs(what string) {
	p.t.Helper()
	var all strings.Builder
	for p.log.Scan() {
		all.WriteString(p.log.Text() + "\n")
		if strings.Contains(p.log.Text(), what) {
			return
		}
	}
	_ = p.cmd.Process.Kill() // It may be stuck.
	p.t.Fatalf("the log never says %q: %v\n%s", what, p.cmd.Wait(), all.String())
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exits waits for the end and demands an exit status.
func (p *process) exits(status int) {
	p.t.Helper()
	_ = p.cmd.Wait() // Its error is the status.
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.t.Errorf("got %v, want exit status %d", p.cmd.ProcessState, status)
	}
}

func TestSignalsCloseTheServer(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := launch(t, "server")
		p.logs("serving")
		p.signal(s)
		p.logs("signal " + s.String())
		p.logs("closed")
		p.exits(0)
	}
}

// A hangup reads the file again, and the server keeps running.
func TestHangupReadsTheFileAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log-level: info\n")
	p := launch(t, "server", "--config", file)
	p.logs("serving")
	write("log-level: warn\nmax-clients: 7\n")
	p.signal(syscall.SIGHUP)
	p.logs(`"changed": "log-level=warn"`) // The closing of the server is not logged now.
	write("log-level: debug\n")
	p.signal(syscall.SIGHUP)
	p.logs(`"changed": "log-level=debug"`)
	p.signal(syscall.SIGTERM)
	p.logs("closed")
	p.exits(0)

	p = launch(t, "server")
	p.logs("serving")
	p.signal(syscall.SIGHUP)
	p.logs("no file to reload")
	p.signal(syscall.SIGTERM)
	p.exits(0)
}

var schema = netloop.NewSchema("stubborn", 1, 0)

// stubborn is the main function of a game that does not finish saving.
func stubborn() { app.Main(stuck{}) }

type stuck struct{}

func (stuck) Schema() *netloop.Schema { return schema }

func (stuck) Open(r *netloop.Room) error {
	r.OnClose(func(context.Context, *netloop.Closed) error {
		<-make(chan struct{}) // Not even when its time is over.
		return nil
	})
	return nil
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	p := launch(t, "stubborn")
	p.logs("serving")
	p.signal(syscall.SIGTERM)
	p.logs("closing")
	p.signal(syscall.SIGINT)
	p.exits(1)
}

// If the reader of the log dies, the game continues, and still ends in order.
func TestServerOutlivesTheReaderOfItsLog(t *testing.T) {
	p := launch(t, "server")
	p.logs("serving")
	if err := p.stderr.Close(); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGINT)
	p.exits(0)
}
