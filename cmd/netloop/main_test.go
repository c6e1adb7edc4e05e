package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/netloop/netloop/examples/starters"
)

// root is the folder of this clone.
const root = "../.."

// create runs the command new.
func create(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out bytes.Buffer
	err = run(t.Context(), append([]string{"new"}, args...), &out)
	return out.String(), err
}

// Each preset is a module whose packages and tests compile against this clone. The tests themselves
// run in examples/starters.
func TestNewMakesGames(t *testing.T) {
	for _, preset := range presets() {
		t.Run(preset, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "My-"+preset)
			stdout, err := create(t, dir, "--preset="+preset, "--module", "example.com/games/my-"+preset, "--replace", root)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(stdout, "cd "+dir+"\n  make run ") {
				t.Errorf("it says %q", stdout)
			}
			vet := exec.Command("go", "vet", "./...")
			vet.Dir = dir
			if out, err := vet.CombinedOutput(); err != nil {
				t.Errorf("go vet: %v\n%s", err, out)
			}
			for _, name := range []string{"Makefile", "Dockerfile", ".dockerignore", ".gitignore", "game/web/index.html", "bots/main.go", "game/game_test.go"} {
				if text := read(t, dir, name); text == "" {
					t.Errorf("%s is empty", name)
				}
			}
			if mod := read(t, dir, "go.mod"); !strings.HasPrefix(mod, "module example.com/games/my-"+preset+"\n") {
				t.Errorf("go.mod begins with %.60q", mod)
			}
			if main := read(t, dir, "main.go"); !strings.HasPrefix(main, "// Command My-"+preset+" serves") {
				t.Errorf("main.go begins with %.60q", main)
			}
			noneNames(t, dir, starters.Path, "gitignore")
			checkReadme(t, dir, preset)
		})
	}
}

// noneNames checks that no file has a text that belongs to this repository, nor that name.
func noneNames(t *testing.T, dir, text, name string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if rel, _ := filepath.Rel(dir, file); strings.Contains(read(t, dir, rel), text) || d.Name() == name {
			t.Errorf("%s is of this repository", file)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// checkReadme checks that the README is short, and that the files and targets that it names exist.
func checkReadme(t *testing.T, dir, preset string) {
	t.Helper()
	text, makefile := read(t, dir, "README.md"), read(t, dir, "Makefile")
	if !strings.HasPrefix(text, "# My-"+preset+"\n") || strings.Count(text, "\n") > 40 {
		t.Errorf("README.md has %d lines, at most 40, and begins with %.30q", strings.Count(text, "\n"), text)
	}
	rows := 0
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\|").FindAllStringSubmatch(text, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			rows++
			if _, err := os.Stat(filepath.Join(dir, name[1])); err != nil {
				t.Errorf("README.md names %s: %v", name[1], err)
			}
		}
	}
	targets := regexp.MustCompile(`(?m)\bmake ([a-z]+)\b`).FindAllStringSubmatch(text, -1)
	for _, target := range targets {
		if !strings.Contains(makefile, "\n"+target[1]+": ## ") {
			t.Errorf("README.md names make %s", target[1])
		}
	}
	if rows < 5 || len(targets) < 5 {
		t.Errorf("README.md names %d files and %d targets", rows, len(targets))
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each mistake is one sentence, and leaves no file.
func TestNewExplainsMistakes(t *testing.T) {
	clone, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, dir := range []string{"full", "empty"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "full/file"} {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for want, args := range map[string][]string{
		"new takes one name, not 0: netloop new mygame":                                                                        {},
		"new takes one name, not 2: netloop new mygame":                                                                        {"a", "b"},
		"the folder full is not empty: choose another name, or empty it":                                                       {"full"},
		"file exists and is no folder: choose another name":                                                                    {"file"},
		`"." is no name for a new folder: netloop new mygame`:                                                                  {"./"},
		"there is no folder none to make game in":                                                                              {"none/game"},
		`there is no preset "card": did you mean cards? (presets: blank, arena, cards)`:                                        {"game", "--preset", "card"},
		`there is no preset "chess" (presets: blank, arena, cards)`:                                                            {"game", "--preset=chess"},
		"--replace: none is no clone of netloop":                                                                               {"game", "--replace", "none"},
		"unknown flag: --presets (flags: --help, --module, --preset, --replace)":                                               {"game", "--presets", "arena"},
		`"my game" is no path of a module: malformed module path "my game": invalid char ' ': use --module example.com/mygame`: {"my game"},
		`"net" is a name of Go's own packages: use --module example.com/net`:                                                   {"net", "--replace", clone},
	} {
		if stdout, err := create(t, args...); err == nil || err.Error() != want || stdout != "" {
			t.Errorf("%q: %q, %v\nwant %s", args, stdout, err, want)
		}
	}
	t.Run("no go", func(t *testing.T) {
		t.Setenv("PATH", "")
		if _, err := create(t, "game"); err == nil || !strings.HasPrefix(err.Error(), "there is no go in PATH: install Go ") {
			t.Errorf("%v", err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"new", "game"}, new(bytes.Buffer)); err == nil {
		t.Error("an interrupt is no error")
	}
	if err := run(t.Context(), []string{"nwe"}, new(bytes.Buffer)); err == nil || !strings.HasPrefix(err.Error(), `"nwe" is not a command`) {
		t.Error(err)
	}
	if err := run(t.Context(), []string{"doctor"}, new(bytes.Buffer)); err == nil || err.Error() != "doctor is a command of the game's own server: go run . doctor" {
		t.Error(err)
	}
	all, err := filepath.Glob("*")
	dots, _ := filepath.Glob(".*")
	if inEmpty, _ := os.ReadDir("empty"); err != nil || strings.Join(all, " ") != "empty file full" || len(dots) > 0 || len(inEmpty) > 0 {
		t.Errorf("left: %q, %q and %v in an empty folder, %v", all, dots, inEmpty, err)
	}
	// An empty folder is no mistake.
	if _, err := create(t, "empty", "--replace", clone); err != nil || read(t, "empty", "go.mod") == "" {
		t.Error(err)
	}
}
