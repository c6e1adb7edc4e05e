package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// verdict is what became of a change.
type verdict int

const (
	unnoticed verdict = iota
	noticed
	invalid // it does not compile
)

const (
	// fewSeeds is with how many seeds the properties of a package are tried first: most changes
	// are noticed by the first few.
	fewSeeds = "10"
	// longest bounds one run of tests: a change may make a loop endless.
	longest = 4 * time.Minute
	// mostMemory bounds the address space of one run in KiB: a change may take a bound away.
	mostMemory = "12582912"
)

// users are the packages whose tests play what lies below them.
var users = map[string][]string{
	"internal/loop":      {"."},
	"internal/rpcqueue":  {"."},
	"internal/netvar":    {"."},
	"internal/transport": {"internal/transport/memnet", "internal/transport/quicnet", "."},
	".":                  {"client", "netlooptest"},
}

// trials compiles and runs tests of changed packages.
type trials struct {
	root string // of the module
	temp string // a folder for each change while it is tried
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

// close removes what is left; what cannot be removed lies among temporary files.
func (t *trials) close() { _ = os.RemoveAll(t.temp) }

// unchanged checks that the tests of these packages and of their users pass without any change.
func (t *trials) unchanged(ctx context.Context, dirs []string) error {
	all := slices.Clone(dirs)
	for _, dir := range dirs {
		all = append(all, users[dir]...)
	}
	slices.Sort(all)
	for _, dir := range slices.Compact(all) {
		overlay, err := t.lay(t.temp, change{})
		if err != nil {
			return err
		}
		out, err := t.compile(ctx, overlay, dir, t.temp)
		if err == nil {
			out, err = t.test(ctx, dir, t.temp, fewSeeds)
		}
		if err != nil {
			return fmt.Errorf("the tests of %s fail without any change: %w\n%s", dir, err, out)
		}
	}
	return nil
}

// try says whether the tests notice a change.
func (t *trials) try(ctx context.Context, c change) (verdict, string) {
	folder, err := os.MkdirTemp(t.temp, "")
	if err != nil {
		return invalid, err.Error()
	}
	defer func() { _ = os.RemoveAll(folder) }() // Else close does it.
	overlay, err := t.lay(folder, c)
	if err != nil {
		return invalid, err.Error()
	}
	if out, err := t.compile(ctx, overlay, c.dir, folder); err != nil {
		return invalid, out
	}
	for _, seeds := range []string{fewSeeds, ""} {
		if out, err := t.test(ctx, c.dir, folder, seeds); err != nil {
			return noticed, out
		}
	}
	for _, dir := range users[c.dir] {
		if out, err := t.compile(ctx, overlay, dir, folder); err != nil {
			return noticed, out // An interface is not kept.
		}
		if out, err := t.test(ctx, dir, folder, ""); err != nil {
			return noticed, out
		}
	}
	return unnoticed, ""
}

// lay writes the changed file and the list by which the compiler takes it instead of the real one.
func (t *trials) lay(folder string, c change) (overlay string, err error) {
	replace := map[string]string{}
	if c.file != "" {
		real := filepath.Join(t.root, filepath.FromSlash(c.file))
		src, err := os.ReadFile(real)
		if err != nil {
			return "", err
		}
		changed := filepath.Join(folder, "changed.go")
		if err := os.WriteFile(changed, c.apply(src), 0o600); err != nil {
			return "", err
		}
		replace[real] = changed
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// compile builds the tests of a package.
func (t *trials) compile(ctx context.Context, overlay, dir, folder string) (string, error) {
	return t.command(ctx, t.root, nil, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", t.binary(folder, dir), "./"+dir)
}

func (t *trials) binary(folder, dir string) string {
	return filepath.Join(folder, strings.ReplaceAll(dir, "/", "_")+".test")
}

// test runs the short tests of a package; seeds is how many the properties are tried with, if it
// is not their own number.
func (t *trials) test(ctx context.Context, dir, folder, seeds string) (string, error) {
	var env []string
	if seeds != "" {
		env = append(env, "NETLOOP_SEEDS="+seeds)
	}
	return t.command(ctx, filepath.Join(t.root, filepath.FromSlash(dir)), env,
		"sh", "-c", `ulimit -v "$1"; shift; exec "$@"`, "sh", mostMemory,
		t.binary(folder, dir), "-test.short", "-test.failfast", "-test.timeout", longest.String())
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
