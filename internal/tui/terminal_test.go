package tui

import (
	"os"
	"path/filepath"
	"testing"
)

// A character device is a terminal, except for a dumb one; a file and a closed stream are none.
func TestIsTerminal(t *testing.T) {
	device, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = device.Close() })
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	if !IsTerminal(device, []string{"TERM=xterm"}) || IsTerminal(device, []string{"A=b", "TERM=dumb"}) || IsTerminal(file, nil) {
		t.Error("a device, a dumb terminal or a file is mistaken")
	}
	_ = file.Close()
	if IsTerminal(file, nil) {
		t.Error("a closed stream is a terminal")
	}
}
