package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// ErrDialerClosed is the error of a dial after the Close of its dialer. It differs from
// net.ErrClosed, because quic-go returns that for every ended connection, timeouts included.
var ErrDialerClosed = errors.New("dialer is closed")

const (
	// dialAttempts is how often a client dials a server that refuses it before its handshake,
	// because it has too many unadmitted connections. The pauses begin with DialPause, double, and
	// are at most maxDialPause: some 20 s together, in which 20 players behind one address join
	// over links of 40 kbit/s. The dial's context usually ends before.
	dialAttempts = 50
	maxDialPause = 400 * time.Millisecond
)

// DialPause is the mean pause after the first attempt of Retry. Pauses vary by half.
const DialPause = 25 * time.Millisecond

// Retry calls dial, and again after a pause while refusedAtOnce reports that the server refused the
// client before its handshake: at most dialAttempts times. Random pauses keep clients that were
// refused together from retrying together.
func Retry[C any](ctx context.Context, dial func() (C, error), refusedAtOnce func(error) bool) (C, error) {
	pause, refused := DialPause, error(nil)
	for attempt := 1; ; attempt++ {
		conn, err := dial()
		switch {
		case err != nil && ctx.Err() != nil && refused != nil:
			return conn, refused // It explains more than the deadline does.
		case !refusedAtOnce(err), attempt == dialAttempts:
			return conn, err
		}
		refused = err
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return conn, refused
		}
		pause = min(2*pause, maxDialPause)
	}
}
