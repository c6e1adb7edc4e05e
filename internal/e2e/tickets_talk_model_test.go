package e2e_test

import (
	"time"

	"github.com/netloop/netloop"
)

// modelWord is a message between rooms.
type modelWord struct {
	from, to string
	sent     time.Duration
	heard    int
	over     bool // it ran, or its sender was notified of its loss
	woke     bool // the receiving room slept
}

// talk lets a room send a message to another one.
func (m *ticketModel) talk(from string) {
	r := m.running(from)
	if r == nil {
		return
	}
	word := &modelWord{from: from, to: roomNames[m.rng.IntN(len(roomNames))], sent: m.w.Now()}
	if to := m.running(word.to); to != nil {
		word.woke = to.Asleep()
	}
	number := uint64(len(m.words))
	m.words = append(m.words, word)
	r.Tick(func(tick *netloop.Tick) {
		echo.SendRoom(tick, word.to, text{N: number}, func(_ *netloop.Tick, err error) {
			if (err == nil) != (word.heard == 1) {
				m.t.Errorf("message %d ran %d times, and %q got %v", number, word.heard, from, err)
			}
			word.over = true
		})
	})
}

// hear records an arriving message, and checks its sender.
func (m *ticketModel) hear(tick *netloop.Tick, from *netloop.Sender, said text) error {
	word := m.words[said.N]
	word.heard++
	word.over = true
	if name := tick.Room().Spec().Name; from.Room != word.from || name != word.to {
		m.t.Errorf("room %q got from %q the message of %q to %q", name, from.Room, word.from, word.to)
	}
	return nil
}

// checkWords checks that a message to a running room arrives at once, also in a sleeping one: no
// room has less than ten ticks per second.
func (m *ticketModel) checkWords() {
	for number, word := range m.words {
		ended := m.since[word.to] > word.sent || m.since[word.from] > word.sent
		if !word.over && !ended && m.w.Now()-word.sent > 300*time.Millisecond {
			m.t.Errorf("message %d from %q to %q, asleep %v, is in flight for %v", number, word.from, word.to, word.woke, m.w.Now()-word.sent)
			word.over = true
		}
	}
}

// checkSleep checks that an empty, idle room sleeps, if it may, at most ten ticks after the last
// leave.
func (m *ticketModel) checkSleep() {
	awake := map[string]bool{}
	for look := range 2 {
		for info := range m.server.Rooms() {
			r, name := m.w.Room(info.Spec.Name), info.Spec.Name
			if r.Asleep() {
				m.slept++
			}
			switch was := awake[name]; {
			case r.Asleep() && !info.Spec.Sleep:
				m.t.Errorf("room %q is asleep, and may not be", name)
			case look == 1 && was && !r.Asleep():
				m.t.Errorf("room %q, %+v, does not sleep", name, info)
			}
			awake[name] = info.Spec.Sleep && info.Clients == 0 && !r.Asleep()
		}
		m.w.Step(10)
	}
}

// checkHeard checks that each message ran once or was counted as lost, and returns the number
// that ran.
func (m *ticketModel) checkHeard() (heard int) {
	for number, word := range m.words {
		if word.heard > 1 {
			m.t.Errorf("message %d ran %d times", number, word.heard)
		}
		heard += word.heard
	}
	lost := sumOf(m.t, m.server, "netloop_queue_drops_total", `queue="room_message"`)
	if heard+lost != len(m.words) {
		m.t.Errorf("of %d messages %d ran, and %d counted as lost", len(m.words), heard, lost)
	}
	return heard
}
