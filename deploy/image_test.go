package deploy_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// buildInputs lists the files of this repository that `go build ./cmd/server` reads,
// slash-separated and relative to its root, for the system of the image.
func buildInputs(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,GoFiles,EmbedFiles,Module", "./cmd/server")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	inputs := []string{"go.mod", "go.sum"}
	for packages := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir                 string
			GoFiles, EmbedFiles []string
			Module              *struct{ Main bool }
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			return inputs
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Module == nil || !p.Module.Main {
			continue
		}
		for _, file := range append(p.GoFiles, p.EmbedFiles...) {
			name, err := filepath.Rel(root, filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			inputs = append(inputs, filepath.ToSlash(name))
		}
	}
}

// ignoreRule is one line of .dockerignore: the last rule that matches a file, or a folder above
// it, decides.
type ignoreRule struct {
	pattern *regexp.Regexp
	keep    bool
}

func ignoreRules(t *testing.T) (rules []ignoreRule) {
	t.Helper()
	for _, line := range lines(t, "../.dockerignore") {
		line, keep := strings.CutPrefix(line, "!")
		pattern := regexp.QuoteMeta(path.Clean(line))
		for _, glob := range []struct{ docker, regexp string }{{`\*\*/`, `(.*/)?`}, {`\*`, `[^/]*`}, {`\?`, `[^/]`}} {
			pattern = strings.ReplaceAll(pattern, glob.docker, glob.regexp)
		}
		rules = append(rules, ignoreRule{regexp.MustCompile("^" + pattern + "(/.*)?$"), keep})
	}
	return rules
}

// lines returns a file's lines without blank ones and comments.
func lines(t *testing.T, name string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(name))
	if err != nil {
		t.Fatal(err)
	}
	for scan := bufio.NewScanner(strings.NewReader(string(text))); scan.Scan(); {
		if line := strings.TrimSpace(scan.Text()); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// The build of the image fails if .dockerignore or the COPY lines leave out a file that a
// package compiles or embeds.
func TestTheImageIsBuiltFromAllFilesThatTheServerNeeds(t *testing.T) {
	rules := ignoreRules(t)
	copied := copiedSources(t)
	for _, file := range buildInputs(t) {
		kept := true
		for _, rule := range rules {
			if rule.pattern.MatchString(file) {
				kept = rule.keep
			}
		}
		if !kept {
			t.Errorf(".dockerignore excludes %s, which go build ./cmd/server reads", file)
		}
		if !copied(file) {
			t.Errorf("no COPY line of the Dockerfile copies %s, which go build ./cmd/server reads", file)
		}
	}
}

// copiedSources reports whether the COPY lines of the Dockerfile copy a file of the repository to
// the same path below the build stage's folder.
func copiedSources(t *testing.T) func(file string) bool {
	t.Helper()
	var sources []string
	for _, line := range lines(t, "../Dockerfile") {
		words := strings.Fields(line)
		if words[0] != "COPY" || strings.HasPrefix(words[1], "--from") {
			continue
		}
		from, to := words[1:len(words)-1], path.Clean(words[len(words)-1])
		for _, source := range from {
			// A folder's content is copied, not the folder.
			if source = path.Clean(source); path.Dir(source) == to || source == to {
				sources = append(sources, source)
			}
		}
	}
	return func(file string) bool {
		for _, source := range sources {
			if source == "." || file == source || strings.HasPrefix(file, source+"/") {
				return true
			}
		}
		return false
	}
}

// The toolchain of the image never downloads another one, so it must be as new as go.mod
// requires.
func TestTheImageIsBuiltWithTheGoOfGoMod(t *testing.T) {
	var wanted, got string
	for _, line := range lines(t, "../go.mod") {
		if version, ok := strings.CutPrefix(line, "go "); ok {
			wanted = strings.Join(strings.SplitN(version, ".", 3)[:2], ".")
		}
	}
	for _, line := range lines(t, "../Dockerfile") {
		if image, ok := strings.CutPrefix(line, "FROM golang:"); ok {
			got, _, _ = strings.Cut(image, "-")
		}
	}
	if wanted == "" || got != wanted {
		t.Errorf("the Dockerfile builds with Go %q, and go.mod requires %q", got, wanted)
	}
}
