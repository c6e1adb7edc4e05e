//go:build unix

package nodetest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Browse opens a page in a browser without windows, with more flags, until the test ends.
func Browse(t *testing.T, url string, flags ...string) {
	t.Helper()
	program := Browser(t)
	dir, err := os.MkdirTemp("", "netloop-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + dir}, flags...)
	cmd := exec.Command(program, append(args, url)...)    //nolint:gosec // Tests name it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Its own processes end with it.
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = os.RemoveAll(dir) // A process that ends may still write.
	})
}
