package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/netloop/netloop/internal/clock"
)

// process is a server, the director or a NATS server: this program again, with other arguments.
type process struct {
	name   string
	cmd    *exec.Cmd
	input  io.Closer // a NATS server ends when it is closed
	at     published
	frozen atomic.Bool
	done   chan struct{} // closed at its end
	err    error         // of its end
}

// published is the content of an address file.
type published struct {
	Listen, Admin, Server, Cluster string
}

const (
	startTime = 20 * time.Second
	stopTime  = 30 * time.Second // more than 20 s, in which a server hands its rooms over
	lookEvery = 20 * time.Millisecond
)

// asServer is the environment variable that makes this program a server. Its values tell of which
// kind.
const (
	asServer = "NETLOOP_FLEET_SERVER"
	asGame   = "game" // or the director
	asNATS   = "nats"
)

// launch starts a process, and waits until it serves.
func (f *fleet) launch(ctx context.Context, name, kind string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(f.dir, name+".json")
	p := &process{name: name, done: make(chan struct{})}
	p.cmd = exec.Command(self, append(args, "--addr-file", file, "--log-level", "warn")...)
	p.cmd.Env = append(os.Environ(), asServer+"="+kind, asStore+"="+filepath.Join(f.dir, "rooms"))
	if f.faults {
		p.cmd.Env = append(p.cmd.Env, asSlow+"="+handOverTime.String())
	}
	log, err := os.OpenFile(filepath.Join(f.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := errors.Join(os.RemoveAll(file), p.cmd.Start(), log.Close()); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for clock.Sleep(ctx, lookEvery) {
		select {
		case <-p.done:
			return nil, fmt.Errorf("%s has ended: %w: see %s", name, p.err, log.Name())
		default:
		}
		text, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(text, &p.at) == nil {
			return p, nil
		}
	}
	p.kill()
	return nil, fmt.Errorf("%s does not serve within %v: see %s", name, startTime, log.Name())
}

// freeze stops a process without its knowledge, or lets it continue.
func (p *process) freeze(frozen bool) error {
	p.frozen.Store(frozen)
	s := signalContinue
	if frozen {
		s = signalStop
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// runs reports whether a process has not ended, and is not frozen.
func (p *process) runs() bool {
	select {
	case <-p.done:
		return false
	default:
		return !p.frozen.Load()
	}
}

// kill ends a process as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // It may have ended.
	<-p.done
}

// terminate tells a process to end, as an operator does.
func (p *process) terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// stop ends a process as an operator does, and returns an error unless it exits with 0 in time.
func (p *process) stop() error { return errors.Join(p.terminate(), p.wait()) }

// wait waits for the end of a process that was told to end.
func (p *process) wait() error {
	late := time.NewTimer(stopTime)
	defer late.Stop()
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("%s: %w", p.name, p.err)
		}
		return nil
	case <-late.C:
		p.kill()
		return fmt.Errorf("%s does not end within %v", p.name, stopTime)
	}
}

// freePorts returns addresses of free TCP ports of this machine.
func freePorts(n int) (all []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // All are taken at once, so that they differ.
		all = append(all, l.Addr().String())
	}
	return all, nil
}
