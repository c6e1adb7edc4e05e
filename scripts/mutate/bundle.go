package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// bundle holds sources that the compiler uses instead of the real ones, and the tests that were
// compiled with them.
type bundle struct {
	folder  string            // of the sources and the tests
	replace map[string]string // real path to the path in folder

	mu    sync.Mutex
	tests map[string]*binary // by the folder of the package
}

// binary is the tests of one package, compiled when the first change needs them.
type binary struct {
	dir, file string
	compile   sync.Once
	err       error
	full      limit
	short     limit
}

// limit is the time limit of one run of tests, because a change may make a loop endless. It is
// measured in a run without an active change.
type limit struct {
	measure sync.Once
	is      time.Duration
	err     error
}

// users has, for a package, the other packages whose tests exercise it, the quick ones first. The
// tests of docs compare the constants of most packages with docs/LIMITS.md.
var users = map[string][]string{
	".":                          {"docs", "internal/room", "app", "client", "netlooptest", "internal/e2e"},
	"app":                        {"internal/e2e"},
	"client":                     {"docs", "internal/e2e"},
	"cluster":                    {"docs", "cluster/nats"},
	"cluster/nats":               {"docs", "cluster/nats/embed"},
	"cluster/nats/embed":         {"docs"},
	"internal/admin":             {"docs", "app"},
	"internal/agones":            {"docs", "app"},
	"internal/codec":             {"internal/netvar", "internal/e2e"},
	"internal/codec/lerp":        {"internal/codec"},
	"internal/codec/quat":        {"internal/codec"},
	"internal/connlimit":         {"internal/web", "internal/net/wsnet"},
	"internal/directory":         {"docs", "internal/e2e"},
	"internal/grid":              {"docs", "internal/netvar"},
	"internal/input":             {"docs", "internal/room", "internal/e2e"},
	"internal/inspect":           {"docs"},
	"internal/inspect/history":   {"docs", "internal/e2e"},
	"internal/inspect/term":      {"docs", "app"},
	"internal/logging":           {"docs"},
	"internal/loop":              {"docs", "internal/e2e"},
	"internal/membership":        {"docs", "internal/e2e"},
	"internal/membership/places": {"docs", "internal/e2e"},
	"internal/metrics":           {"docs", "internal/room"},
	"internal/net/admission":     {"docs", "internal/net/quicnet", "internal/net/wsnet"},
	"internal/net/driver":        {"docs", "internal/net/quicnet", "internal/net/wsnet", "internal/net/wtnet"},
	"internal/net/endpoint":      {"internal/connlimit", "internal/net/admission"},
	"internal/net/inproc":        {"docs", "internal/e2e"},
	"internal/net/memnet":        {"netlooptest", "internal/e2e"},
	"internal/net/origin":        {"internal/net/wsnet", "internal/net/wtnet", "internal/web"},
	"internal/net/quicnet":       {"docs", "internal/net/wtnet", "internal/e2e"},
	"internal/net/sealed":        {"docs"},
	"internal/net/udpbatch":      {"docs", "internal/net/quicnet", "internal/metrics"},
	"internal/net/wsnet":         {"docs", "internal/e2e"},
	"internal/net/wtnet":         {"docs", "internal/e2e"},
	"internal/netem":             {"internal/net/memnet", "internal/net/quicnet"},
	"internal/netvar":            {"docs", "internal/e2e"},
	"internal/netvar/bitset":     {"internal/netvar"},
	"internal/netvar/interest":   {"docs", "internal/netvar", "internal/e2e"},
	"internal/netvar/packet":     {"docs", "internal/netvar", "internal/e2e"},
	"internal/netvar/replica":    {"docs", "internal/netvar", "client", "internal/e2e"},
	"internal/netvar/slots":      {"internal/netvar"},
	"internal/netvar/state":      {"docs", "internal/netvar", "internal/e2e"},
	"internal/overload":          {"internal/room"},
	"internal/panicguard":        {"docs", "internal/loop", "internal/room"},
	"internal/recording":         {"docs", "internal/room", "internal/e2e"},
	"internal/room":              {"docs", "internal/e2e"},
	"internal/room/seats":        {"internal/room", "internal/e2e"},
	"internal/rpcqueue":          {"docs", "internal/e2e"},
	"internal/schema":            {"docs", "internal/room", "app", "internal/e2e"},
	"internal/slowtick":          {"docs"},
	"internal/token":             {"docs", "internal/e2e"},
	"internal/tracedump":         {"docs"},
	"internal/transport":         {"docs", "internal/net/memnet", "internal/net/quicnet", "internal/e2e"},
	"internal/watchdog":          {"docs", "internal/e2e"},
	"internal/watchfile":         {"docs"},
	"internal/web":               {"docs", "app", "internal/e2e"},
	"internal/web/static":        {"docs", "internal/web"},
	"internal/wire":              {"internal/codec", "internal/transport"},
	"match":                      {"docs"},
	"netlooptest":                {"persist", "match", "internal/e2e"},
	"persist":                    {"docs", "internal/e2e"},
	"persist/sqlstore":           {"persist/sqlite"},
}

// newBundle makes an empty bundle.
func (t *trials) newBundle() (*bundle, error) {
	folder, err := os.MkdirTemp(t.temp, "")
	return &bundle{folder: folder, replace: map[string]string{}, tests: map[string]*binary{}}, err
}

// put adds as many changes of one package as fit together. It returns the others.
func (t *trials) put(ctx context.Context, b *bundle, dir string, changes map[int]change) (rest map[int]change, err error) {
	rest, fit := map[int]change{}, maps.Clone(changes)
	leave := func(numbers ...int) {
		for _, n := range numbers {
			rest[n] = changes[n]
			delete(fit, n)
		}
	}
	for {
		files, unplaced, err := t.render(fit)
		if err != nil {
			return nil, err
		}
		if leave(unplaced...); len(unplaced) > 0 {
			continue
		}
		replace, err := t.lay(b.folder, dir, files)
		if err != nil {
			return nil, err
		}
		list, err := writeList(filepath.Join(b.folder, inOne(dir)+".json"), replace)
		if err != nil {
			return nil, err
		}
		out, err := t.command(ctx, t.root, nil, "go", "build", "-gcflags=-e", "-overlay", list, "./"+dir)
		if err == nil {
			maps.Copy(b.replace, replace)
			return rest, nil
		}
		wrong := blamed(out, dir, fit, files)
		if len(wrong) == 0 {
			return nil, fmt.Errorf("%s does not compile: %w\n%s", dir, err, out)
		}
		leave(wrong...)
	}
}

// inOne turns a path into a file name without folders.
func inOne(dir string) string { return strings.ReplaceAll(dir, "/", "_") }

// rendered is a source with its changes.
type rendered struct {
	text   string
	owners []int // see render
}

// render writes the sources with these changes, by path, and returns the changes for which no
// [fork] is possible.
func (t *trials) render(all map[int]change) (files map[string]rendered, unplaced []int, err error) {
	byFile := map[string]map[int]change{}
	for n, c := range all {
		if byFile[c.file] == nil {
			byFile[c.file] = map[int]change{}
		}
		byFile[c.file][n] = c
	}
	files = map[string]rendered{}
	for file, changes := range byFile {
		src, err := os.ReadFile(filepath.Join(t.root, filepath.FromSlash(file)))
		if err != nil {
			return nil, nil, err
		}
		all, rest, err := forks(src, changes)
		if err != nil {
			return nil, nil, err
		}
		unplaced = append(unplaced, rest...)
		text, owners := render(src, all)
		files[file] = rendered{text, owners}
	}
	return files, unplaced, nil
}

var complaint = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)

// blamed returns the changes that cause the compiler's errors: the owner of the line or, for a line
// without one, all changes of the file.
func blamed(out, dir string, changes map[int]change, files map[string]rendered) []int {
	found := map[int]bool{}
	for _, m := range complaint.FindAllStringSubmatch(out, -1) {
		file := path.Join(dir, path.Base(filepath.ToSlash(m[1])))
		line, _ := strconv.Atoi(m[2])
		owners := files[file].owners
		if line >= 1 && line <= len(owners) && owners[line-1] != 0 {
			found[owners[line-1]] = true
			continue
		}
		for n, c := range changes {
			if c.file == file {
				found[n] = true
			}
		}
	}
	return slices.Collect(maps.Keys(found))
}

// lay writes sources of a package into a folder, and returns the list of the replaced files.
func (t *trials) lay(folder, dir string, files map[string]rendered) (replace map[string]string, err error) {
	replace = map[string]string{}
	folder = filepath.Join(folder, inOne(dir))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	put := func(file, text string) error {
		laid := filepath.Join(folder, path.Base(file)) // The compiler reports this name.
		replace[filepath.Join(t.root, filepath.FromSlash(file))] = laid
		return os.WriteFile(laid, []byte(text), 0o600)
	}
	for file, r := range files {
		if err := put(file, r.text); err != nil {
			return nil, err
		}
	}
	name := path.Base(dir)
	if dir == "." {
		name = "netloop"
	}
	return replace, put(path.Join(dir, "acting_change.go"), "package "+name+"\n"+chooser)
}

// writeList writes the compiler's list of replaced files.
func writeList(name string, replace map[string]string) (string, error) {
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	return name, os.WriteFile(name, text, 0o600)
}

// binary returns the tests of a package. The first call compiles them.
func (t *trials) binary(ctx context.Context, b *bundle, dir string) (*binary, error) {
	b.mu.Lock()
	tests := b.tests[dir]
	if tests == nil {
		tests = &binary{dir: dir, file: filepath.Join(b.folder, inOne(dir)+".test")}
		b.tests[dir] = tests
	}
	b.mu.Unlock()
	tests.compile.Do(func() {
		list, err := writeList(tests.file+".json", b.replace)
		if err != nil {
			tests.err = err
			return
		}
		if out, err := t.command(ctx, t.root, nil, "go", "test", "-c", "-vet=off", "-overlay", list, "-o", tests.file, "./"+dir); err != nil {
			tests.err = fmt.Errorf("the tests of %s do not compile: %w\n%s", dir, err, out)
		}
	})
	return tests, tests.err
}

// alone makes a bundle of one change.
func (t *trials) alone(c change) (*bundle, error) {
	b, err := t.newBundle()
	if err != nil {
		return nil, err
	}
	src, err := os.ReadFile(filepath.Join(t.root, filepath.FromSlash(c.file)))
	if err != nil {
		return nil, err
	}
	b.replace, err = t.lay(b.folder, c.dir, map[string]rendered{c.file: {text: string(c.apply(src))}})
	return b, err
}
