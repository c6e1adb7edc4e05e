package app

import (
	"os"
	"testing"
)

// A replay leaves its recording closed, whether it is one or not.
func TestAReplayClosesItsFile(t *testing.T) {
	for _, path := range []string{recordRun(t), write(t, "none.rec", "no recording")} {
		command(t, recorded(), nil, "replay", path)
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range open {
			if target, _ := os.Readlink("/proc/self/fd/" + fd.Name()); target == path {
				t.Errorf("%s is open", path)
			}
		}
	}
}
