package transport

import (
	"errors"
	"fmt"
	"testing"
)

// A code has a text of its own up to netloop's last one; codes from CodeGame on are the game's, and
// those between belong to later versions.
func TestCodesInWords(t *testing.T) {
	for code, want := range map[Code]string{
		CodeLeft:      "left",
		CodeMoved:     codeTexts[CodeMoved],
		CodeMoved + 1: "code 23",
		CodeGame - 1:  "code 999",
		CodeGame:      "game code 1000",
		CodeGame + 1:  "game code 1001",
	} {
		if got := code.String(); got != want {
			t.Errorf("%d reads %q, want %q", uint32(code), got, want)
		}
	}
}

// A text equal to the code's own is not repeated.
func TestEndsAndRefusalsInWords(t *testing.T) {
	for want, err := range map[string]error{
		"transport: refused: full":                      &Refusal{Code: CodeFull},
		"transport: refused: full: 64 clients":          &Refusal{Code: CodeFull, Text: "64 clients"},
		"transport: closed: left":                       &Closed{Code: CodeLeft, Text: "left"},
		"transport: closed: left: for good":             &Closed{Code: CodeLeft, Text: "for good"},
		"transport: closed by the peer: left":           &Closed{Code: CodeLeft, Remote: true},
		"transport: closed by the peer: left: for good": &Closed{CodeLeft, "for good", true},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Every code of a peer has a counter and a name, also where int has 32 bits.
func TestEveryCodeIsCounted(t *testing.T) {
	for _, c := range []Code{0, CodeMoved, CodeMoved + 1, CodeGame, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		if n := c.counter(); n < 0 || n >= numCodes || c.Name() == "" {
			t.Errorf("code %d has counter %d", uint32(c), n)
		}
	}
}

// A refusal reaches the peer as it is, also within another error; the text of any other error does
// not, and the server should log it.
func TestOnlyRefusalsReachThePeer(t *testing.T) {
	full := &Refusal{Code: CodeFull, Text: "later"}
	if r, said := Declined(fmt.Errorf("asking: %w", full)); r != full || !said {
		t.Errorf("%v, said %v", r, said)
	}
	if r, said := Declined(errors.New("secret")); r.Code != CodeInternal || r.Text != "internal error" || said {
		t.Errorf("%v, said %v", r, said)
	}
}
