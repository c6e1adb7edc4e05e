package proctest

import (
	"fmt"
	"io"
	"os"
	"testing"
)

// TestEcho is the started program.
func TestEcho(t *testing.T) {
	if os.Getenv("NETLOOP_ECHO") == "" {
		t.Skip("TestAProgramEndsWithItsInput starts it")
	}
	said, err := io.ReadAll(os.Stdin)
	fmt.Printf("before\nSAID %q %v and more\nafter\n", said, err)
}

// A started program ends with its input, and its output after the word is returned.
func TestAProgramEndsWithItsInput(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := Command(t, self, "TestEcho")
	cmd.Env = append(os.Environ(), "NETLOOP_ECHO=1")
	if said := Start(t, cmd, "SAID ")(); said != `"" <nil> and more` {
		t.Errorf("the program printed %q", said)
	}
}
