// Package refdecoder is a second reader of replicated state, written from docs/WIRE.md alone: one
// function for each rule of the page, in its order. It is slow, keeps bits as a list of bools and
// shares no code with the reader that it checks. If both agree on random worlds, the page is
// complete for the author of a client.
//
// No production code imports it. internal/netvar/refdecoder_test.go compares it with the real
// reader.
package refdecoder

import "fmt"

// refusal names the rule of docs/WIRE.md that some bytes violate. The functions below panic with
// it, and the few exported ones return it: this keeps the rules free of error handling.
type refusal string

// Error implements error.
func (r refusal) Error() string { return "refdecoder: " + string(r) }

func refuse(format string, args ...any) { panic(refusal(fmt.Sprintf(format, args...))) }

// caught turns a refusal into an error. It is deferred.
func caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case refusal:
		*err = r
	default:
		panic(r)
	}
}
