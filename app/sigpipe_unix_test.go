//go:build unix

package app

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// A server plays on when the reader of its log has ended, and closes as usual.
func TestAServerOutlivesTheReaderOfItsLog(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "run", "--listen", "127.0.0.1:0", "--admin", "")
	cmd.Env = []string{asServer + "=1"}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Errorf("the server does not start: %v", err)
	}
	_ = r.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ends with %v", err)
	}
}
