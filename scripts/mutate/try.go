package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
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
	root   string // of the module
	temp   string
	report *report
	// command runs a program in a folder and returns what it has printed.
	command func(ctx context.Context, dir string, env []string, name string, args ...string) (string, error)
}

func newTrials(r *report) (*trials, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	return &trials{root: root, temp: temp, report: r, command: command}, nil
}

// close removes what was compiled; what it cannot remove lies in the system's temporary folder.
func (t *trials) close() { _ = os.RemoveAll(t.temp) }

// try tries the changes, package by package, until there is enough. A package whose tests fail
// without any change is left out, and is an error in the end.
func (t *trials) try(ctx, enough context.Context, dirs []string, chosen []change, workers int) (err error) {
	for _, dir := range dirs {
		changes := map[int]change{}
		for i, c := range chosen {
			if c.dir == dir {
				changes[i+1] = c
			}
		}
		if len(changes) == 0 || enough.Err() != nil {
			continue
		}
		if failed := t.tryPackage(ctx, enough, dir, changes, workers); enough.Err() == nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// tryPackage tries the changes of a package: most in one binary, the rest one by one.
func (t *trials) tryPackage(ctx, enough context.Context, dir string, changes map[int]change, workers int) error {
	b, rest, err := t.compile(enough, dir, changes)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.folder) }() // See close.
	if err := t.unchanged(enough, b); err != nil {
		return err
	}
	each(enough, sorted(b.changes), workers, func(number int) {
		if got := t.notices(ctx, b, number); ctx.Err() == nil {
			t.report.add(b.changes[number], got)
		}
	})
	each(enough, sorted(rest), workers, func(number int) {
		alone, err := t.alone(ctx, b, rest[number])
		if err != nil || ctx.Err() != nil {
			return // It does not compile.
		}
		if got := t.notices(ctx, alone, number); ctx.Err() == nil {
			t.report.add(rest[number], got)
		}
		_ = os.RemoveAll(alone.folder)
	})
	return nil
}

// each calls do for the numbers until there is enough, with so many calls at once, and returns
// when all calls have.
func each(enough context.Context, numbers []int, workers int, do func(int)) {
	var wg sync.WaitGroup
	queue := make(chan int)
	for range workers {
		wg.Go(func() {
			for n := range queue {
				if enough.Err() == nil {
					do(n)
				}
			}
		})
	}
	for _, n := range numbers {
		queue <- n
	}
	close(queue)
	wg.Wait()
}

// unchanged checks that all tests of a bundle pass while no change acts, and notes how long
// they take. Tests that fail are run once more: a machine that is busy shall not end a long run.
func (t *trials) unchanged(ctx context.Context, b *bundle) error {
	for i := range b.tests {
		tests := &b.tests[i]
		began := time.Now()
		out, err := t.test(ctx, tests, 0, "")
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(t.report.notes, "the tests of %s fail without any change, and are run once more: %v\n%s\n", tests.dir, err, out)
			began = time.Now()
			out, err = t.test(ctx, tests, 0, "")
		}
		if err != nil {
			return fmt.Errorf("the tests of %s fail without any change: %w\n%s", tests.dir, err, out)
		}
		tests.limit = patience*time.Since(began) + 10*time.Second
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

// command runs a program in a folder and returns what it has printed. An interrupt from a terminal
// does not reach the program.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longest+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	setApart(cmd)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
