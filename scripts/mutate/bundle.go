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
	"strconv"
	"strings"
	"time"
)

// bundle is the tests of one package, and of those that use it, with some changes in it.
type bundle struct {
	dir     string // of the package, relative to the module
	folder  string // of the binaries
	tests   []binary
	changes map[int]change // by number
}

// binary is the tests of one package.
type binary struct {
	dir     string
	file    string
	changed bool          // the package itself is, and not what it uses
	limit   time.Duration // of one run: a change may make a loop endless
}

// users are the packages whose tests play what lies below them, the quick ones first. Those of
// internal/limits know the constants of the packages whose bounds they list.
var users = map[string][]string{
	"app":                         {"internal/e2e"},
	"internal/admin":              {"app"},
	"internal/codec":              {"internal/netvar", "internal/e2e"},
	"internal/grid":               {"internal/netvar"},
	"internal/guard":              {"internal/loop", "internal/room"},
	"internal/hall":               {"internal/limits", "internal/e2e"},
	"internal/input":              {"internal/limits", "internal/room", "internal/e2e"},
	"internal/loop":               {"internal/limits", "internal/e2e"},
	"internal/metrics":            {"internal/limits", "internal/room"},
	"internal/netem":              {"internal/transport/memnet", "internal/transport/quicnet"},
	"internal/netvar":             {"internal/limits", "internal/e2e"},
	"internal/room":               {"internal/limits", "internal/e2e"},
	"internal/overload":           {"internal/room"},
	"internal/pool":               {"internal/web", "internal/transport/socknet"},
	"internal/recording":          {"internal/room", "internal/e2e"},
	"internal/rpcqueue":           {"internal/limits", "internal/e2e"},
	"internal/schema":             {"internal/room", "app", "internal/e2e"},
	"internal/transport":          {"internal/limits", "internal/transport/memnet", "internal/transport/quicnet", "internal/e2e"},
	"internal/transport/carrier":  {"internal/transport/quicnet", "internal/transport/socknet", "internal/transport/webnet"},
	"internal/transport/door":     {"internal/limits", "internal/transport/quicnet", "internal/transport/socknet"},
	"internal/transport/gate":     {"internal/limits", "internal/transport/quicnet", "internal/metrics"},
	"internal/transport/localnet": {"internal/e2e"},
	"internal/transport/memnet":   {"netlooptest", "internal/e2e"},
	"internal/transport/origin":   {"internal/transport/socknet", "internal/transport/webnet", "internal/web"},
	"internal/transport/quicnet":  {"internal/limits", "internal/transport/webnet", "internal/e2e"},
	"internal/transport/socknet":  {"internal/limits", "internal/e2e"},
	"internal/transport/webnet":   {"internal/limits", "internal/e2e"},
	"internal/token":              {"internal/e2e"},
	"internal/watchdog":           {"internal/e2e"},
	"internal/web":                {"app", "internal/e2e"},
	"internal/wire":               {"internal/codec", "internal/transport"},
	".":                           {"internal/limits", "internal/room", "app", "client", "netlooptest", "internal/e2e"},
	"client":                      {"internal/limits", "internal/e2e"},
}

// compile puts as many of the changes, which are those of one package, into a bundle as
// fit together, and returns the others.
func (t *trials) compile(ctx context.Context, dir string, changes map[int]change) (b *bundle, rest map[int]change, err error) {
	b = &bundle{dir: dir, changes: maps.Clone(changes)}
	if b.folder, err = os.MkdirTemp(t.temp, ""); err != nil {
		return nil, nil, err
	}
	rest = map[int]change{}
	leave := func(numbers ...int) {
		for _, n := range numbers {
			rest[n] = changes[n]
			delete(b.changes, n)
		}
	}
	for {
		files, unplaced, err := t.render(b)
		if err != nil {
			return nil, nil, err
		}
		if leave(unplaced...); len(unplaced) > 0 {
			continue
		}
		overlay, err := t.lay(b, files)
		if err != nil {
			return nil, nil, err
		}
		out, err := t.command(ctx, t.root, nil, "go", "build", "-gcflags=-e", "-overlay", overlay, "./"+dir)
		if err == nil {
			return b, rest, t.compileTests(ctx, b, overlay)
		}
		wrong := b.blamed(out, files)
		if len(wrong) == 0 {
			return nil, nil, fmt.Errorf("%s does not compile: %w\n%s", dir, err, out)
		}
		leave(wrong...)
	}
}

// rendered is a source with its changes.
type rendered struct {
	text   string
	owners []int // see render
}

// render writes the sources of a bundle, by path, and returns the changes that have no place.
func (t *trials) render(b *bundle) (files map[string]rendered, unplaced []int, err error) {
	byFile := map[string]map[int]change{}
	for n, c := range b.changes {
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

// blamed returns the changes that the compiler complains of: the owner of the line or, where
// that is nobody, all of the file.
func (b *bundle) blamed(out string, files map[string]rendered) (wrong []int) {
	found := map[int]bool{}
	for _, m := range complaint.FindAllStringSubmatch(out, -1) {
		file := path.Join(b.dir, path.Base(filepath.ToSlash(m[1])))
		line, _ := strconv.Atoi(m[2])
		owners := files[file].owners
		if line >= 1 && line <= len(owners) && owners[line-1] != 0 {
			found[owners[line-1]] = true
			continue
		}
		for n, c := range b.changes {
			if c.file == file {
				found[n] = true
			}
		}
	}
	for n := range found {
		wrong = append(wrong, n)
	}
	return wrong
}

// lay writes the sources and the list by which the compiler takes them instead of the real ones.
func (t *trials) lay(b *bundle, files map[string]rendered) (overlay string, err error) {
	replace := map[string]string{}
	put := func(file, text string) error {
		laid := filepath.Join(b.folder, path.Base(file)) // The compiler names it so.
		replace[filepath.Join(t.root, filepath.FromSlash(file))] = laid
		return os.WriteFile(laid, []byte(text), 0o600)
	}
	for file, r := range files {
		if err := put(file, r.text); err != nil {
			return "", err
		}
	}
	name := path.Base(b.dir)
	if b.dir == "." {
		name = "netloop"
	}
	if err := put(path.Join(b.dir, "acting_change.go"), "package "+name+"\n"+chooser); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(b.folder, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// compileTests builds the tests of the package and of its users.
func (t *trials) compileTests(ctx context.Context, b *bundle, overlay string) error {
	b.tests = nil
	for _, dir := range append([]string{b.dir}, users[b.dir]...) {
		file := filepath.Join(b.folder, strings.ReplaceAll(dir, "/", "_")+".test")
		out, err := t.command(ctx, t.root, nil, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", file, "./"+dir)
		if err != nil {
			return fmt.Errorf("the tests of %s do not compile: %w\n%s", dir, err, out)
		}
		b.tests = append(b.tests, binary{dir: dir, file: file, changed: dir == b.dir, limit: longest})
	}
	return nil
}

// alone puts one change into a bundle of its own, with the limits of another.
func (t *trials) alone(ctx context.Context, like *bundle, c change) (*bundle, error) {
	folder, err := os.MkdirTemp(t.temp, "")
	if err != nil {
		return nil, err
	}
	b := &bundle{dir: c.dir, folder: folder}
	src, err := os.ReadFile(filepath.Join(t.root, filepath.FromSlash(c.file)))
	if err != nil {
		return nil, err
	}
	overlay, err := t.lay(b, map[string]rendered{c.file: {text: string(c.apply(src))}})
	if err != nil {
		return nil, err
	}
	if err := t.compileTests(ctx, b, overlay); err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	for i := range b.tests {
		b.tests[i].limit = like.tests[i].limit
	}
	return b, nil
}
