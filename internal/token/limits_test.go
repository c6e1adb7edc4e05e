package token

import (
	"testing"

	"github.com/netloop/netloop/internal/golden"
)

// What the pages say of the limits of tokens is so.
func TestLimitsAreThoseOfTheTable(t *testing.T) {
	row := func(subject, says string, bounds ...any) {
		t.Helper()
		golden.Row(t, "../../docs/ARCHITECTURE.md", subject, says, bounds...)
	}
	row("a token", "%v, valid for an hour at most |", golden.Bytes(MaxToken))
	row("ids of used tokens", "%v (about 4 MiB)", maxSpent)
	row("public keys that sign tokens", "%v, of %v each", maxKeys, golden.Bytes(maxKeyFile))
}
