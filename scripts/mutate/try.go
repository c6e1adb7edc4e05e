package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// fewSeeds is the number of seeds of the first run of a package's properties: the first few
	// notice most changes.
	fewSeeds = "10"
	// longest bounds one run of tests without an active change.
	longest = 8 * time.Minute
	// patience is the time limit of a run with an active change, as a multiple of the measured time
	// of the same run without one. 10 s are added.
	patience = 4
	// maxMemory bounds the address space of one run in KiB: a change may remove a bound.
	maxMemory = "12582912"
)

// trials compiles and runs tests of changed packages.
type trials struct {
	root   string // of the module
	temp   string
	report *report
	// command runs a program in a folder and returns its output.
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

// close removes the compiled files; files that it cannot remove are in the system's temporary
// folder.
func (t *trials) close() { _ = os.RemoveAll(t.temp) }

// try tries the changes until enough ends: most in one bundle, the others in one each. A package
// whose tests fail without any change is left out, and is an error in the end.
func (t *trials) try(ctx, enough context.Context, chosen []change, workers int) error {
	shared, err := t.newBundle()
	if err != nil {
		return err
	}
	byDir := map[string]map[int]change{}
	for i, c := range chosen {
		if byDir[c.dir] == nil {
			byDir[c.dir] = map[int]change{}
		}
		byDir[c.dir][i+1] = c
	}
	rest := map[int]change{}
	for dir, changes := range byDir {
		if _, err := t.testers(dir); err != nil {
			return err
		}
		left, err := t.put(enough, shared, dir, changes)
		if err != nil {
			return err
		}
		maps.Copy(rest, left)
	}
	var failed failures
	each(enough, len(chosen), workers, func(number int) {
		c := chosen[number-1]
		if _, lonely := rest[number]; lonely {
			t.tryAlone(ctx, enough, shared, number, c, &failed)
			return
		}
		got, err := t.notices(ctx, enough, shared, shared, c.dir, number)
		if failed.add(enough, err) && ctx.Err() == nil {
			t.report.add(c, got)
		}
	})
	return failed.err()
}

// tryAlone tries a change that is compiled by itself. A change that does not compile is left out.
func (t *trials) tryAlone(ctx, enough context.Context, shared *bundle, number int, c change, failed *failures) {
	b, err := t.alone(c)
	if err != nil {
		return
	}
	defer func() { _ = os.RemoveAll(b.folder) }() // See close.
	if _, err := t.binary(ctx, b, c.dir); err != nil {
		return
	}
	got, err := t.notices(ctx, enough, b, shared, c.dir, number)
	if failed.add(enough, err) && ctx.Err() == nil {
		t.report.add(c, got)
	}
}

// failures collects errors, each once. Any goroutine may use it.
type failures struct {
	mu   sync.Mutex
	seen []error
}

// add collects an error, and reports whether there is none. Errors after the interrupt are caused
// by it, and not collected.
func (f *failures) add(enough context.Context, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && enough.Err() == nil && !slices.ContainsFunc(f.seen, func(known error) bool { return known.Error() == err.Error() }) {
		f.seen = append(f.seen, err)
	}
	return err == nil
}

func (f *failures) err() error { return errors.Join(f.seen...) }

// each calls do for the numbers from 1 to n until enough ends, in as many goroutines as workers,
// and returns when all calls have returned.
func each(enough context.Context, n, workers int, do func(int)) {
	var wg sync.WaitGroup
	queue := make(chan int)
	for range workers {
		wg.Go(func() {
			for number := range queue {
				if enough.Err() == nil {
					do(number)
				}
			}
		})
	}
	for number := range n {
		queue <- number + 1
	}
	close(queue)
	wg.Wait()
}

// within returns the time limit of a run of these tests. The first call measures a run without an
// active change. Failed tests are run once more: a busy machine must not end a long run.
func (t *trials) within(ctx context.Context, tests *binary, l *limit, short bool) (time.Duration, error) {
	l.measure.Do(func() {
		began := time.Now()
		out, err := t.test(ctx, tests, 0, "", short, longest)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(t.report.notes, "the tests of %s fail without any change, and are run once more: %v\n%s\n", tests.dir, err, out)
			began = time.Now()
			out, err = t.test(ctx, tests, 0, "", short, longest)
		}
		if err != nil {
			l.err = fmt.Errorf("the tests of %s fail without any change: %w\n%s", tests.dir, err, out)
		}
		l.is = patience*time.Since(began) + 10*time.Second
	})
	return l.is, l.err
}

// testers returns the packages whose tests try the changes of a package: itself, if it has test
// files, and those that use it.
func (t *trials) testers(dir string) ([]string, error) {
	own, err := filepath.Glob(filepath.Join(t.root, filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		return nil, err
	}
	if len(own) > 0 {
		return append([]string{dir}, users[dir]...), nil
	}
	if len(users[dir]) == 0 {
		return nil, fmt.Errorf("%s has no tests: name a package in bundle.go that tests it", dir)
	}
	return users[dir], nil
}

// notices reports whether a test notices the change with this number: first the tests of its
// package with few seeds, then with all, then the short tests of the packages that use it. The
// time limits of the shared bundle apply.
func (t *trials) notices(ctx, enough context.Context, b, shared *bundle, dir string, number int) (bool, error) {
	testers, err := t.testers(dir)
	if err != nil {
		return false, err
	}
	for _, user := range testers {
		like, err := t.binary(ctx, shared, user)
		if err != nil {
			return false, err
		}
		tests, err := t.binary(ctx, b, user)
		if err != nil {
			return user != dir, nil // A test that does not compile notices the change.
		}
		if user == dir {
			if noticed, err := t.fail(ctx, enough, like, tests, number, fewSeeds, true); noticed || err != nil {
				return noticed, err
			}
		}
		if noticed, err := t.fail(ctx, enough, like, tests, number, "", user != dir); noticed || err != nil {
			return noticed, err
		}
	}
	return false, nil
}

// fail reports whether tests fail, or exceed the time limit, with an active change. The time limit
// is that of the tests like.
func (t *trials) fail(ctx, enough context.Context, like, tests *binary, number int, seeds string, short bool) (bool, error) {
	l := &like.full
	if short {
		l = &like.short
	}
	limit, err := t.within(enough, like, l, short)
	if err != nil {
		return false, err
	}
	_, failure := t.test(ctx, tests, number, seeds, short, limit)
	return failure != nil, nil
}

// test runs the tests of a package: short ones, or in full. Seeds is the number of seeds for the
// properties of the run, if not the usual one.
func (t *trials) test(ctx context.Context, b *binary, number int, seeds string, short bool, limit time.Duration) (string, error) {
	// The test of docs reads constants from the changed sources.
	env := []string{actingChange + "=" + strconv.Itoa(number), "MUTATE_OVERLAY=" + b.file + ".json"}
	if seeds != "" {
		env = append(env, "NETLOOP_SEEDS="+seeds)
	}
	return t.command(ctx, filepath.Join(t.root, filepath.FromSlash(b.dir)), env,
		"sh", "-c", `ulimit -v "$1"; shift; exec "$@"`, "sh", maxMemory,
		b.file, "-test.short="+strconv.FormatBool(short), "-test.failfast", "-test.timeout", limit.String())
}

// command runs a program in a folder and returns its output. An interrupt from a terminal does not
// reach the program.
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
