package membership_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/membership"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// mailRig is a server that gets batches from another one, which the test makes.
type mailRig struct {
	*testing.T
	from *server
	mu   sync.Mutex
	got  []string
	done []func(error)
}

func newMailRig(t *testing.T) *mailRig {
	b := newBed(t)
	m := &mailRig{T: t}
	y := membership.New(membership.Config{Via: b.hub.Member(), Load: func() cluster.Load { return cluster.Load{} }, Now: func() time.Duration { return 0 }})
	y.HandleMail(func(l membership.Mail) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.got = append(m.got, string(l.GetPayload()))
		if string(l.GetTo()) == "waits" {
			m.done = append(m.done, l.Done)
			return
		}
		l.Done(nil)
	})
	if err := y.Join(t.Context(), cluster.Server{ID: "y", Schema: "s"}); err != nil {
		t.Fatal(err)
	}
	m.from = b.server("x", "")
	return m
}

// batch sends a batch with one message, and returns its outcome.
func (m *mailRig) batch(number, first uint64, to string) (string, error) {
	q := &clusterv1.RoomMail{Number: number, First: first, Schema: []byte("s"), Messages: []*clusterv1.RoomMessage{
		{To: []byte(to), Payload: fmt.Append(nil, number)},
	}}
	ctx, cancel := context.WithTimeout(context.Background(), cluster.StoreTime)
	defer cancel()
	var answer clusterv1.RoomOutcomes
	if err := m.from.Call(ctx, "y", "mail", q, &answer); err != nil {
		return "", err
	}
	return fmt.Sprint(answer.GetOutcomes()[0].GetCode(), " ", string(answer.GetOutcomes()[0].GetText())), nil
}

// codeOf returns the code of a refusal, or 0 for other errors.
func codeOf(err error) transport.Code {
	var refused *transport.Refusal
	if errors.As(err, &refused) {
		return refused.Code
	}
	return 0
}

func (m *mailRig) wants(want ...string) {
	m.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.got, want) {
		m.Errorf("queued %q, want %q", m.got, want)
	}
}

// Batches are queued in the order of their numbers, also if they arrive in another one. A batch
// that is missing for too long is skipped, and refused when it arrives. A batch before the first
// one without an answer is not awaited.
func TestBatchesAreQueuedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailRig(t)
		var sent sync.WaitGroup
		for _, number := range []uint64{4, 2, 3} {
			sent.Go(func() {
				if out, err := m.batch(number, 1, "oak"); out != "0 " {
					t.Errorf("batch %d: %q, %v", number, out, err)
				}
			})
			synctest.Wait()
		}
		m.wants()
		if out, _ := m.batch(1, 1, "oak"); out != "0 " {
			t.Errorf("batch 1: %q", out)
		}
		sent.Wait()
		m.wants("1", "2", "3", "4")

		began := time.Now()
		for _, number := range []uint64{8, 7} { // Batch 6 is lost, and 5 has no answer.
			sent.Go(func() {
				if out, err := m.batch(number, 6, "oak"); out != "0 " {
					t.Errorf("batch %d: %q, %v", number, out, err)
				}
			})
			synctest.Wait()
		}
		sent.Wait()
		m.wants("1", "2", "3", "4", "7", "8")
		if waited := time.Since(began); waited < time.Second || waited > 3*time.Second {
			t.Errorf("waited %v for a lost batch", waited)
		}
		if _, err := m.batch(6, 6, "oak"); codeOf(err) != transport.CodeBusy {
			t.Errorf("a skipped batch: %v", err)
		}
		m.wants("1", "2", "3", "4", "7", "8")
	})
}

// A batch whose handlers do not return in time is answered as busy in time; a late outcome has no
// effect.
func TestABatchIsAnsweredInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailRig(t)
		began := time.Now()
		out, err := m.batch(1, 1, "waits")
		if err != nil || out != fmt.Sprint(int64(transport.CodeBusy), " ", membership.ErrNoAnswer) || time.Since(began) >= cluster.StoreTime {
			t.Errorf("%q, %v after %v", out, err, time.Since(began))
		}
		m.done[0](nil)
	})
}

// Each message has one outcome: also those for a room that no server has, those above the limit of
// messages that wait for its look-up, and those after Close.
func TestEachMailHasOneOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailRig(t)
		var mu sync.Mutex
		codes := map[transport.Code]int{}
		send := func(n int) {
			for range n {
				m.from.Send(membership.Mail{
					RoomMessage: &clusterv1.RoomMessage{To: []byte("nowhere"), From: []byte("oak")},
					Done: func(err error) {
						mu.Lock()
						defer mu.Unlock()
						codes[codeOf(err)]++
					},
				})
			}
		}
		send(3000)
		synctest.Wait()
		if codes[transport.CodeRoomUnknown]+codes[transport.CodeBusy] != 3000 || codes[transport.CodeRoomUnknown] == 0 {
			t.Errorf("outcomes %v", codes)
		}
		if err := m.from.Close(t.Context()); err != nil {
			t.Error(err)
		}
		send(1)
		if codes[transport.CodeRoomUnknown]+codes[transport.CodeBusy] != 3001 {
			t.Errorf("outcomes %v", codes)
		}
	})
}
