package transport

import (
	"runtime"
	"testing"
	"time"
)

// A client with reliable data that does not move for ten seconds is disconnected, however little it
// is; a client that reads a byte now and then is kept, and so is one after a pause of its server.
func TestAQueueThatDoesNotMoveIsGivenUp(t *testing.T) {
	const period = 20 * time.Millisecond
	for _, c := range []struct {
		name    string
		client  bool
		step    time.Duration // between two flushes
		every   int           // flushes between two sent bytes; 0: never
		flushes int
		gone    bool
	}{
		{"never", false, period, 0, int(maxStuck / period), true},
		{"not for long enough", false, period, 0, int(maxStuck/period) - 1, false},
		{"now and then", false, period, 400, 5000, false},
		{"a server that stood still", false, time.Hour, 0, 3, false},
		{"a client's own", true, period, 0, 5000, false},
	} {
		e := newEnd(c.client, SessionConfig{})
		at := time.Hour
		e.Flush(at)
		e.Send(Message{Method: 1, Reliable: true, Payload: make([]byte, 1000)})
		e.Flush(at) // Here it begins to wait.
		for n := 1; n <= c.flushes; n++ {
			if c.every > 0 && n%c.every == 0 {
				e.AppendStream(nil, 1)
			}
			at += c.step
			e.Flush(at)
		}
		if why, gone := e.Cause(); gone != c.gone || gone && why.Code != CodeSlow {
			t.Errorf("%s: gone %v, %v", c.name, gone, why)
		}
	}
}

// A client that reads, but never confirms its messages, is disconnected too.
func TestABacklogThatDoesNotMoveIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		messages int
		confirms bool
		gone     bool
	}{{stuckBacklog, false, true}, {stuckBacklog - 1, false, false}, {2 * stuckBacklog, true, false}} {
		m := newMate(false)
		m.connect()
		for range c.messages {
			m.session.Send(Message{Method: 1, Reliable: true})
		}
		at, said := time.Hour, uint64(0)
		for range int(maxStuck/stuckStep) + 1 {
			m.session.Flush(at)
			m.link.AppendStream(nil, 1<<20)
			if at += stuckStep; c.confirms {
				said++
				m.backlog.Confirm(said)
			}
		}
		if why, gone := m.session.Cause(); gone != c.gone || gone && why.Code != CodeSlow {
			t.Errorf("%+v: gone %v, %v", c, gone, why)
		}
	}
}

// All queues of a session filled at once take no more memory than docs/LIMITS.md lists, 1 MiB:
// those of its arrivals, of its messages under way, and of its unread data.
func TestTheWorstMemoryOfAClientIsThatOfThePage(t *testing.T) {
	const arrivals = 256 + 2000 // of a room as configured by default
	worst := int(worstMemory())
	if worst > 1<<20 {
		t.Errorf("a client may take %d bytes", worst)
	}
	inUse := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	const sessions = 4 // so that other memory of the process counts little
	for _, decoded := range []int{1, 40, 16 << 10} {
		var all [sessions]*mate
		var queued []Arrival
		before := inUse()
		for i := range all {
			m := newMate(false)
			m.inbox = NewInbox(arrivals, nil)
			m.connect()
			taken := fillQueues(m, decoded)
			if small := maxInboxBytesPerSession / (entryBytes + decoded); taken != min(small, arrivals) {
				t.Errorf("%d messages of %d bytes are taken", taken, decoded)
			}
			m.inbox.Each(func(a *Arrival) { // As if they waited for a stage that does not run.
				queued = append(queued, *a)
				a.Held = 0
			})
			if again := fillQueues(m, decoded); taken < arrivals && again > 0 {
				t.Errorf("%d more messages of %d bytes are taken", again, decoded)
			}
			all[i] = m
		}
		took := (inUse() - before - cap(queued)*wholeBytes) / sessions
		if took > worst || took < worst/3 {
			t.Errorf("messages of %d bytes: one client takes %d bytes, of at most %d", decoded, took, worst)
		}
		t.Logf("messages of %d bytes: %d bytes of %d", decoded, took, worst)
		runtime.KeepAlive(all)
		runtime.KeepAlive(queued)
	}
}

// fillQueues fills all queues that a client can fill, and returns the number of messages in the
// inbox.
func fillQueues(m *mate, decoded int) (taken int) {
	for m.inbox.push(&Arrival{Kind: MessageArrived, Session: m.session, Decoded: make([]byte, decoded)}, decoded) {
		taken++
	}
	for m.inbox.push(&Arrival{Kind: DigestRequest, Session: m.session}, 0) {
	}
	_ = m.link.ReceiveStream(0, appendFrameHead(nil, frameMessage, MaxFrame-8))
	_ = m.link.ReceiveStream(0, make([]byte, MaxFrame-64))
	for range maxUnreliable {
		m.session.Send(Message{Method: 1, Payload: make([]byte, 50)})
	}
	for m.backlog.kept.size() < maxBacklogBytes-10<<10 {
		m.session.Send(Message{Method: 1, Reliable: true, Payload: make([]byte, 8<<10)})
	}
	m.session.Flush(0)
	for range 4 {
		m.session.SendRecord(make([]byte, 12<<10))
	}
	m.session.Flush(0)
	for range maxUnreliable {
		m.session.Send(Message{Method: 1, Payload: make([]byte, 50)})
	}
	return taken
}
