// Package plain is the second reader of replicated state: docs/WIRE.md in Go, written from that
// page alone, one function for each of its rules and in its order. It is slow, keeps
// bits as a list of bools and shares nothing with the code that it checks, so where both agree on
// random worlds the page says all that the author of a client needs.
//
// It is for tests: no production code imports it. Those that compare it with the real
// reader stand beside that one (internal/netvar/plain_test.go).
package plain

import "fmt"

// refusal says which rule of the page some bytes break. The functions below panic with it, and
// the few exported ones return it: this keeps the rules free of error handling.
type refusal string

// Error implements error.
func (r refusal) Error() string { return "plain: " + string(r) }

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
