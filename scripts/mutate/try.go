package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

const (
	// fewSeeds is with how many seeds the properties of a package are tried first: most changes
	// are noticed by the first few.
	fewSeeds = "10"
	// longest bounds one run of tests in which nothing acts.
	longest = 8 * time.Minute
	// patience is by how much longer than that a run with a change may take, and a little.
	patience = 4
	// mostMemory bounds the address space of one run in KiB: a change may take a bound away.
	mostMemory = "12582912"
)

// trials compiles and runs tests of changed packages.
type trials struct {
	root string // of the module
	temp string
}

func newTrials() (*trials, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	return &trials{root: root, temp: temp}, nil
}

// close removes what was compiled; what it cannot remove lies in the system's temporary folder.
func (t *trials) close() { _ = os.RemoveAll(t.temp) }

// unchanged checks that all tests of a bundle pass while no change acts, and notes how long
// they take.
func (t *trials) unchanged(ctx context.Context, b *bundle) error {
	for i := range b.tests {
		began := time.Now()
		if out, err := t.test(ctx, &b.tests[i], 0, ""); err != nil {
			return fmt.Errorf("the tests of %s fail without any change: %w\n%s", b.tests[i].dir, err, out)
		}
		b.tests[i].limit = patience*time.Since(began) + 10*time.Second
	}
	return nil
}

// notices tells whether a test notices the change with this number.
func (t *trials) notices(ctx context.Context, b *bundle, number int) bool {
	if _, err := t.test(ctx, &b.tests[0], number, fewSeeds); err != nil {
		return true
	}
	for i := range b.tests {
		if _, err := t.test(ctx, &b.tests[i], number, ""); err != nil {
			return true
		}
	}
	return false
}

// test runs the tests of a package: short ones, or those of the package that is changed in full.
// Seeds is how many the properties of a short run are tried with, if not the usual number.
func (t *trials) test(ctx context.Context, b *binary, number int, seeds string) (string, error) {
	env := []string{actingChange + "=" + strconv.Itoa(number)}
	if seeds != "" {
		env = append(env, "NETLOOP_SEEDS="+seeds)
	}
	short := "-test.short=" + strconv.FormatBool(!b.changed || seeds != "")
	return t.command(ctx, filepath.Join(t.root, filepath.FromSlash(b.dir)), env,
		"sh", "-c", `ulimit -v "$1"; shift; exec "$@"`, "sh", mostMemory,
		b.file, short, "-test.failfast", "-test.timeout", b.limit.String())
}

// command runs a program and returns what it has printed.
func (t *trials) command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longest+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}
