package e2e_test

import (
	"time"

	"github.com/netloop/netloop"
)

// modelWord is a message of one room to another.
type modelWord struct {
	from, to string
	sent     time.Duration
	heard    int
	over     bool // it was heard, or its sender was told that it is lost
	woke     bool // the other room slept
}

// talk lets a room tell another one something, and go on.
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
				m.t.Errorf("message %d was heard %d times, and %q is told %v", number, word.heard, from, err)
			}
			word.over = true
		})
	})
}

// hear notes that a room gets a message, from whom it says.
func (m *ticketModel) hear(tick *netloop.Tick, from *netloop.Sender, said text) error {
	word := m.words[said.N]
	word.heard++
	word.over = true
	if name := tick.Room().Spec().Name; from.Room != word.from || name != word.to {
		m.t.Errorf("room %q hears from %q what %q has sent to %q", name, from.Room, word.from, word.to)
	}
	return nil
}

// checkWords holds that a message is heard at once, if there is who hears it, also by a room that
// sleeps: no room ticks less than ten times a second.
func (m *ticketModel) checkWords() {
	for number, word := range m.words {
		ended := m.since[word.to] > word.sent || m.since[word.from] > word.sent
		if !word.over && !ended && m.w.Now()-word.sent > 300*time.Millisecond {
			m.t.Errorf("message %d from %q to %q, asleep %v, is on its way for %v", number, word.from, word.to, word.woke, m.w.Now()-word.sent)
			word.over = true
		}
	}
}

// checkSleep holds that a room in which nobody is and nothing happens sleeps, if it may: ten
// ticks after the last one has left at the latest.
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

// checkHeard holds that each message was heard once, or counted as lost, and returns how many were
// heard.
func (m *ticketModel) checkHeard() (heard int) {
	for number, word := range m.words {
		if word.heard > 1 {
			m.t.Errorf("message %d was heard %d times", number, word.heard)
		}
		heard += word.heard
	}
	lost := sumOf(m.t, m.server, "netloop_queue_drops_total", `queue="room_message"`)
	if heard+lost != len(m.words) {
		m.t.Errorf("of %d messages %d were heard, and %d counted as lost", len(m.words), heard, lost)
	}
	return heard
}
