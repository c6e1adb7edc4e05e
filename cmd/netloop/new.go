package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/netloop/netloop/examples/starters"
	"github.com/netloop/netloop/internal/spelling"
)

const netloop = "github.com/netloop/netloop"

// game is a game to make.
type game struct {
	dir     string // its folder
	preset  string
	module  string // its path; "" is the name of the folder
	replace string // folder of a clone of netloop, or ""
	version string // of netloop, or "" for the newest
}

// The permissions of folders and of source files.
const folder, source fs.FileMode = 0o755, 0o644

// presets returns the names of the presets, the plainest first.
func presets() []string { return []string{"blank", "arena", "cards"} }

// create makes the game. It writes to a temporary folder beside the game's, and renames it when it
// is complete, so that an error leaves no half-made game.
func (g *game) create(ctx context.Context, stdout io.Writer) error {
	if err := g.check(); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(g.dir), ".netloop-new-*")
	if err != nil {
		return fmt.Errorf("the folder of %s cannot be written: %w", g.dir, err)
	}
	defer func() { _ = os.RemoveAll(work) }() // After the rename it is gone.
	if err := errors.Join(g.copy(work, g.preset), g.copy(work, "common")); err != nil {
		return err
	}
	if err := g.tidy(ctx, work); err != nil {
		return err
	}
	if err := os.Chmod(work, folder); err != nil {
		return err
	}
	// A folder of that name is empty.
	if err := os.Remove(g.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(work, g.dir); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s has a game, its page, bots and tests. Next:\n\n  cd %s\n  make run     # then open http://127.0.0.1:8000 twice: two players\n", g.dir, g.dir)
	return err
}

// check completes the options, and refuses those that cannot be used.
func (g *game) check() error {
	if !slices.Contains(presets(), g.preset) {
		hint := ""
		if near := spelling.Nearest(g.preset, presets()); near != "" {
			hint = ": did you mean " + near + "?"
		}
		return fmt.Errorf("there is no preset %q%s (presets: %s)", g.preset, hint, strings.Join(presets(), ", "))
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("there is no go in PATH: install Go 1.26 or later from https://go.dev/dl")
	}
	if g.dir = filepath.Clean(g.dir); filepath.Base(g.dir) == "." || filepath.Base(g.dir) == ".." {
		return fmt.Errorf("%q is no name for a new folder: netloop new mygame", g.dir)
	}
	switch files, err := os.ReadDir(g.dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("%s exists and is no folder: choose another name", g.dir)
	case len(files) > 0:
		return fmt.Errorf("the folder %s is not empty: choose another name, or empty it", g.dir)
	}
	if info, err := os.Stat(filepath.Dir(g.dir)); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %s to make %s in", filepath.Dir(g.dir), filepath.Base(g.dir))
	}
	if g.replace != "" {
		text, err := os.ReadFile(filepath.Join(g.replace, "go.mod"))
		if err != nil || !bytes.HasPrefix(text, []byte("module "+netloop+"\n")) {
			return fmt.Errorf("--replace: %s is no clone of netloop", g.replace)
		}
		if g.replace, err = filepath.Abs(g.replace); err != nil {
			return err
		}
	}
	g.module = cmp.Or(g.module, filepath.Base(g.dir))
	return nil
}

// hidden are files whose names begin with a dot in a game, which no embedded file's may.
var hidden = map[string]string{"gitignore": ".gitignore", "dockerignore": ".dockerignore"}

// copy writes the files of a starter, with the module's path.
func (g *game) copy(to, from string) error {
	return fs.WalkDir(starters.Files, from, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := starters.Files.ReadFile(name)
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(text, []byte(starters.Path+from), []byte(g.module))
		text = bytes.ReplaceAll(text, []byte("# mygame\n"), []byte("# "+filepath.Base(g.dir)+"\n"))
		text = bytes.ReplaceAll(text, []byte("// Command "+from+" "), []byte("// Command "+filepath.Base(g.dir)+" "))
		name = strings.TrimPrefix(name, from+"/")
		file := filepath.Join(to, filepath.FromSlash(cmp.Or(hidden[name], name)))
		if err := os.MkdirAll(filepath.Dir(file), folder); err != nil {
			return err
		}
		return os.WriteFile(file, text, source)
	})
}

// tidy makes the module, and lets go find the modules that it needs.
func (g *game) tidy(ctx context.Context, dir string) error {
	if err := command(ctx, dir, "mod", "init", g.module); err != nil {
		return fmt.Errorf("%q is no path of a module: %w: use --module example.com/mygame", g.module, err)
	}
	switch {
	case g.replace != "":
		// Its checksums spare a question to the network.
		sums, err := os.ReadFile(filepath.Join(g.replace, "go.sum"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, source); err != nil {
			return err
		}
		if err := command(ctx, dir, "mod", "edit", "-require="+netloop+"@v0.0.0", "-replace="+netloop+"="+g.replace); err != nil {
			return err
		}
	case g.version != "":
		if err := command(ctx, dir, "mod", "edit", "-require="+netloop+"@"+g.version); err != nil {
			return err
		}
	}
	err := command(ctx, dir, "mod", "tidy")
	if err != nil && strings.Contains(err.Error(), ": ambiguous import: ") {
		return fmt.Errorf("%q is a name of Go's own packages: use --module example.com/%s", g.module, g.module)
	}
	if err != nil {
		return fmt.Errorf("the modules of the game cannot be downloaded: %w", err)
	}
	return nil
}

// progress are lines of go that are no errors.
var progress = regexp.MustCompile(`(?m)^(go: (creating|to add|downloading|finding|found) .*|\tgo mod tidy)$`)

// command runs go. Its error is the output of go, in one line.
func command(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // The user's own arguments.
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if said := strings.Join(strings.Fields(progress.ReplaceAllString(string(out), "")), " "); said != "" {
		said, _, _ = strings.Cut(said, " go: ") // The first of several errors.
		return errors.New(strings.TrimPrefix(said, "go: "))
	}
	return fmt.Errorf("go %s: %w", strings.Join(args[:2], " "), err)
}
