package loadtest_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/examples/arena/bot"
	"github.com/netloop/netloop/loadtest"
)

// full is an output without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space is left") }

// A result that cannot be written to stdout is an error.
func TestAResultThatCannotBeWritten(t *testing.T) {
	s, _ := serve(t, netloop.Config{}, arena.New())
	var stderr bytes.Buffer
	args := []string{"loadclient", "--addr", s.Addr().String(), "--clients", "1", "--ramp", "0s", "--warmup", "0s", "--duration", "100ms", "--out", "json", "--ui", "quiet"}
	if code := loadtest.Execute(t.Context(), args, full{}, &stderr, bot.New()); code != 1 || !strings.Contains(stderr.String(), "--out: no space is left") {
		t.Errorf("exit %d: %s", code, &stderr)
	}
}
