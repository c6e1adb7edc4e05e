package clock

import "time"

// Sync estimates the server's monotonic clock on a client.
type Sync struct{ local, server time.Duration }

// Sample takes the four timestamps of one exchange.
func (s *Sync) Sample(t1, t2, t3, t4 time.Duration) bool { panic("clock: not yet") }

// Ready reports whether the estimate may be used.
func (s *Sync) Ready() bool { panic("clock: not yet") }

// Server is the server's time at the client's time local.
func (s *Sync) Server(local time.Duration) time.Duration { panic("clock: not yet") }

// RTT is the least round trip of the window.
func (s *Sync) RTT() time.Duration { panic("clock: not yet") }
