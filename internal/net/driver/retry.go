package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// ErrDialerClosed is the error of a dial after the Close of its dialer. It differs from
// net.ErrClosed, because quic-go returns that for every ended connection, even after a timeout.
var ErrDialerClosed = errors.New("dialer is closed")

const (
	// dialAttempts is the number of times that a client dials a server that refuses it before its
	// handshake, because the server has too many unadmitted connections. The pauses begin with
	// DialPause, double, and are at most maxDialPause. Together they last some 20 s, in which 20
	// players behind one address can join over links of 40 kbit/s. The dial's context usually ends
	// before.
	dialAttempts = 50
	maxDialPause = 400 * time.Millisecond
)

// DialPause is the mean pause after the first attempt of Retry. Pauses vary by half.
const DialPause = 25 * time.Millisecond

// Retry calls dial, and again after a pause while refusedAtOnce reports that the server refused the
// client before its handshake: at most dialAttempts times. The pauses are random, so that clients
// that were refused together do not retry together.
func Retry[C any](ctx context.Context, dial func() (C, error), refusedAtOnce func(error) bool) (C, error) {
	pause, refused := DialPause, error(nil)
	for attempt := 1; ; attempt++ {
		conn, err := dial()
		switch {
		case err != nil && ctx.Err() != nil && refused != nil:
			return conn, refused // The refusal explains more than the end of ctx.
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
