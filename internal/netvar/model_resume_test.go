package netvar

import (
	"fmt"

	"github.com/netloop/netloop/internal/netvar/state"
)

// Broken connections of the model.

// part breaks a client's connection. No message reaches the server any more; those in flight to the
// client may.
func (m *model) part(c *modelClient) {
	c.away = m.tick + 1 + uint64(m.rng.IntN([]int{1, 10, 2 * state.Horizon}[m.rng.IntN(3)]))
	c.up.queue, c.applied.queue = nil, nil
	if m.rng.IntN(2) == 0 {
		c.down.queue, c.stream.queue = nil, nil
	}
}

// resume connects the client again, sometimes more than once before a packet is sent.
func (m *model) resume(c *modelClient) error {
	for c.away = m.tick; c.away > 0; {
		kept := m.rng.IntN(2) == 0
		c.p.Resume(kept)
		if fault := c.p.unsound(); fault != "" {
			return fmt.Errorf("after a resume, copies kept %v: %s", kept, fault)
		}
		if kept {
			c.r.Resume()
		} else {
			m.empty(c, m.tick)
		}
		if m.rng.IntN(4) > 0 {
			c.away = 0
		}
	}
	// Messages of the old connection do not arrive on the new one.
	c.acks = nil
	c.up.queue, c.down.queue = nil, nil
	c.stream = pipe{rng: c.stream.rng, late: c.stream.late}
	c.applied = pipe{rng: c.applied.rng, late: c.applied.late}
	return nil
}
