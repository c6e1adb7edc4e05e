// Package proctest is for tests that start programs of their own beside what they measure, and
// count what a thread has had of a core.
package proctest

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// Command returns a test of a test's program as a program of its own, at the lowest priority where
// there is the program nice: its own work shall not be what the others wait for.
func Command(t *testing.T, program, test string) *exec.Cmd {
	t.Helper()
	args := []string{program, "-test.run", "^" + test + "$", "-test.v"}
	if _, err := exec.LookPath("nice"); err == nil {
		args = append([]string{"nice", "-n", "19"}, args...)
	}
	// The program ends in order, when its input does.
	return exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...)
}

// Start starts a program that ends when its input does. Calling stop ends it, and returns what it
// has said behind a word, to the end of that line.
func Start(t *testing.T, cmd *exec.Cmd, word string) (stop func() string) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() string {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v: %s", cmd.Path, err, out.String())
		}
		_, said, _ := strings.Cut(out.String(), word)
		line, _, _ := strings.Cut(said, "\n")
		return line
	}
}
