package browser_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/testing/nodetest"
)

// games is a program with two games, because linking one for each takes six seconds.
const games = `package main

import (
	"os"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app"
	blank "example.com/blank/game"
	cards "example.com/cards/game"
)

func main() {
	game := map[string]netloop.Game{"blank": blank.Game{}, "cards": new(cards.Game)}[os.Args[1]]
	os.Args = append(os.Args[:1], os.Args[2:]...)
	app.Main(game)
}
`

// The games of "netloop new" with two tabs each, and the targets of their Makefile except image:
// make run serves the arena, and one program serves the others. Making three and building two takes
// less than a minute of processor time: other programs may delay it further.
func TestNewGamesInABrowser(t *testing.T) {
	runSeparately(t)
	t.Parallel() // The tests beside it wait for most of their time.
	chromium(t)
	nodetest.Tool(t, "playwright-core")
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(bin, "new")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var took time.Duration
	command := func(in, name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -ldflags=-w")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		took += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	for _, preset := range []string{"blank", "arena", "cards"} {
		command(filepath.Join("..", ".."), "go", "run", "./cmd/netloop", "new", filepath.Join(dir, preset),
			"--preset", preset, "--module", "example.com/"+preset, "--replace", ".")
	}
	writeGames(t, dir)
	command(dir, "go", "build", "-o", "games", ".")
	t.Logf("the games were made and built in %v of processor time", took)
	if took > time.Minute {
		t.Errorf("the games were made and built in %v of processor time", took)
	}
	command(filepath.Join(dir, "blank"), "make", "test")
	play(t, "new.test.mjs")
}

// writeGames writes the program games and its module, which needs all that a game needs.
func writeGames(t *testing.T, dir string) {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(dir, "cards", "go.mod"))
	sum, err2 := os.ReadFile(filepath.Join(dir, "cards", "go.sum"))
	text := strings.Replace(string(mod), "module example.com/cards\n", "module example.com/games\n", 1)
	for _, preset := range []string{"blank", "cards"} {
		text += fmt.Sprintf("\nrequire example.com/%s v0.0.0\n\nreplace example.com/%[1]s => ./%[1]s\n", preset)
	}
	if err := errors.Join(err, err2,
		os.WriteFile(filepath.Join(dir, "main.go"), []byte(games), 0o600),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600),
		os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600),
	); err != nil {
		t.Fatal(err)
	}
}
