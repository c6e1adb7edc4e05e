// Package measure starts the programs of a measurement and reads their processor time and memory.
// cores_linux.go has the parts that need Linux.
package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopLimit bounds the time until a program has ended on request.
const stopLimit = 20 * time.Second

// Process is a program of a measurement.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed
	err   error         // of its end, once it has ended
	said  strings.Builder
}

// Start starts a program by a function that calls cmd.Start. Both outputs of the program are kept,
// unless cmd has others.
func Start(by func(*exec.Cmd) error, cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.said
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.said
	}
	if err := by(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name(), err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Name returns the program with its first argument.
func (p *Process) Name() string { return strings.Join(p.cmd.Args[:min(len(p.cmd.Args), 2)], " ") }

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the program has ended; Err is valid from then on.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Gone reports whether the program has ended.
func (p *Process) Gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Said returns the output of a program that has ended.
func (p *Process) Said() string { return p.said.String() }

// Err describes the end of a program that has ended, with its output.
func (p *Process) Err() error {
	if p.err == nil {
		return fmt.Errorf("%s has ended: %s", p.Name(), p.said.String())
	}
	return fmt.Errorf("%s: %w: %s", p.Name(), p.err, p.said.String())
}

// Wait waits until the program has ended. The exit status allowed counts as success.
func (p *Process) Wait(ctx context.Context, limit time.Duration, allowed int) error {
	select {
	case <-p.ended:
		if exit, ok := errors.AsType[*exec.ExitError](p.err); p.err == nil || ok && exit.ExitCode() == allowed {
			return nil
		}
		return p.Err()
	case <-time.After(limit):
		return fmt.Errorf("%s has not ended in time", p.Name())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Signal sends a signal. A program that has ended gets none.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Stop interrupts the program, and kills it if it does not end.
func (p *Process) Stop() {
	p.Signal(syscall.SIGINT)
	select {
	case <-p.ended:
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// Resident returns the memory of a process, in bytes; 0 if the system does not provide it.
func Resident(pid int) float64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kilo, _ := strconv.ParseFloat(fields[0], 64)
	return kilo * 1024
}

// Processor returns the name of the machine's processor, if the system provides it.
func Processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // Other systems have no such file.
	_, rest, ok := strings.Cut(string(text), "model name")
	if !ok {
		return "an unknown processor"
	}
	_, name, _ := strings.Cut(rest, ":")
	name, _, _ = strings.Cut(name, "\n")
	return strings.TrimSpace(name)
}

// Sleep waits for a time, or until the context ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
