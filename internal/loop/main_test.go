package loop

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets NETLOOP_SEEDS raise the number of rapid's cases too.
func TestMain(m *testing.M) {
	flag.Parse()
	if n := os.Getenv("NETLOOP_SEEDS"); n != "" {
		if err := flag.Set("rapid.checks", n); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
