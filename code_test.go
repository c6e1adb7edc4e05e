package netloop

import "testing"

// The text of a refusal does not repeat the name of its code.
func TestRefusalsSayNothingTwice(t *testing.T) {
	for want, r := range map[string]*Refusal{
		"internal error":           {CodeInternal, "internal error"},
		"the server is closing":    {CodeClosing, "the server is closing"},
		CodeFull.String():          {Code: CodeFull},
		CodeFull.String() + ": 64": {CodeFull, "64"},
	} {
		if got := r.Error(); got != want {
			t.Errorf("%v reads %q, want %q", *r, got, want)
		}
	}
}
