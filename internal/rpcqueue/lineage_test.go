package rpcqueue

import (
	"testing"

	"github.com/netloop/netloop/internal/loop"
)

// Cases in which earlier designs lost messages. A and B arrive in one packet, so in one poll.

func twoMessages(t *testing.T, stageA, stageB loop.Stage) (r *room, a, b Item) {
	all := loop.Stages()
	ma, mb := method(1, "a", all[:]...), method(2, "b", all[:]...)
	return newRoom(t, ma, mb), Item{Method: ma, From: 7, Stage: stageA, Msg: "A"}, Item{Method: mb, From: 7, Stage: stageB, Msg: "B"}
}

func TestFixedUpdateAndUpdateRunWithOneStep(t *testing.T) {
	r, a, b := twoMessages(t, loop.FixedUpdate, loop.Update)
	r.sent = []Item{a, b}
	r.step(1)
	r.wantRan("FixedUpdate A", "Update B")
}

func TestFixedUpdateWaitsBesideUpdateWithoutAStep(t *testing.T) {
	r, a, b := twoMessages(t, loop.FixedUpdate, loop.Update)
	r.sent = []Item{a, b}
	r.step(0)
	r.wantRan("Update B")
	r.step(0)
	r.wantRan()
	r.step(1)
	r.wantRan("FixedUpdate A")
}

func TestFixedUpdateWaitsWithoutAStep(t *testing.T) {
	r, a, _ := twoMessages(t, loop.FixedUpdate, 0)
	r.sent = []Item{a}
	r.step(0)
	r.wantRan()
	r.step(1)
	r.wantRan("FixedUpdate A")
}

// The queue's system may run before the poll: messages that the poll then pushes for EarlyUpdate
// are late, and not lost.
func TestMessagesPolledAfterTheDrainOfEarlyUpdateAreLate(t *testing.T) {
	r, a, _ := twoMessages(t, loop.EarlyUpdate, 0)
	r.add("second poll", (*room).poll, loop.EarlyUpdate) // after the drain
	early := a
	late := a
	late.Msg = "late"
	_, err := r.loop.Add(loop.Spec[*room]{Name: "sender", Place: loop.Head, After: []string{"rpc"}, Before: []string{"second poll"},
		Ask: func(s loop.Stage) func(*room) {
			if s == loop.EarlyUpdate && late.Msg != nil {
				return func(r *room) {
					if late.Msg != nil {
						r.sent = []Item{late}
						late.Msg = nil
					}
				}
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	r.sent = []Item{early}
	r.step(1)
	r.wantRan("EarlyUpdate A")
	r.step(1)
	r.wantRan("EarlyUpdate late")
	if r.count(Late) != 1 {
		t.Fatalf("%d late, want 1", r.count(Late))
	}
}

func TestInitializationWaitsBesideUpdate(t *testing.T) {
	r, a, b := twoMessages(t, loop.Initialization, loop.Update)
	r.sent = []Item{a, b}
	r.step(1)
	r.wantRan("Update B")
	r.step(1)
	r.wantRan("Initialization A")
}

func TestAMessageRunsInOneOfTwoSteps(t *testing.T) {
	r, a, _ := twoMessages(t, loop.FixedUpdate, 0)
	r.sent = []Item{a}
	r.step(2)
	r.wantRan("FixedUpdate A")
	r.step(2)
	r.wantRan()
}
