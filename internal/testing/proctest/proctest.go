// Package proctest is for tests that start separate programs beside a measurement, and measure
// the CPU time of a thread.
package proctest

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// Command returns a command that runs one test of a test binary in a separate process, at the
// lowest priority if the program nice exists, so that it does not delay the measured work.
func Command(t *testing.T, program, test string) *exec.Cmd {
	t.Helper()
	args := []string{program, "-test.run", "^" + test + "$", "-test.v"}
	if _, err := exec.LookPath("nice"); err == nil {
		args = append([]string{"nice", "-n", "19"}, args...)
	}
	// The program ends by itself at the end of its input.
	return exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...)
}

// Start starts a program that ends with its input. stop ends it, and returns the rest of the
// output line after word.
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
