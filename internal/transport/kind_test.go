package transport

import (
	"errors"
	"testing"
)

// A Kind survives marshalling, and other names are refused.
func TestTransportNames(t *testing.T) {
	for c := range NumKinds {
		text, err := c.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		back := NumKinds
		if err := back.UnmarshalText(text); err != nil || back != c {
			t.Errorf("%q reads %v, %v", text, back, err)
		}
	}
	var c Kind
	for _, name := range []string{"", "QUIC", "tcp"} {
		if err := c.UnmarshalText([]byte(name)); !errors.Is(err, ErrKind) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := NumKinds.MarshalText(); !errors.Is(err, ErrKind) || NumKinds.String() != "transport 3" {
		t.Error(err, NumKinds)
	}
	if want := "use quic, webtransport or websocket"; ErrKind.Error() != want {
		t.Errorf("%q, want %q", ErrKind, want)
	}
}
