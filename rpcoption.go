package netloop

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
)

// RPCOption is an option of [NewRPC] and [NewCall].
//
// The receiver checks a client's message in this order; the first check that fails decides. Each
// failure is counted in netloop_rpcs_total under its outcome, drops this message only, and answers
// a call with the code.
//
//	check                                          outcome            code
//	the client's own rate (Config RPC)             client_limited     CodeFlood
//	the method exists                              unknown_method     CodeUnknownMethod
//	the stage exists, and the method allows it     unknown_stage      CodeStageNotAllowed
//	                                               stage_not_allowed  CodeStageNotAllowed
//	the room handles it                            no_handler         CodeUnknownMethod
//	Limit                                          method_limited     CodeFlood
//	LimitPerTick                                   tick_limited       CodeFlood
//	LateDrop                                       late_dropped       CodeRefused
//	the stage's queue has room                     full               CodeBusy
//	when its stage runs: its sender is still here  client_gone        none
//	its sender plays, or ForSpectators             forbidden          CodeRefused
//	ServerOnly, or HandleRoom                      forbidden          none
//	MinRole                                        forbidden          CodeRefused
//	Validate                                       invalid            CodeInvalid
//	OwnerOnly                                      not_owner          CodeRefused
//	HandleLater: not too many answers are pending  failed             CodeBusy
type RPCOption struct{ apply func(*schema.Method) }

// AtStage names the stages at which a method may run. The first is the one at
// which it runs unless the sender picks another of them with [RunAt]. Without
// AtStage a method runs at Update.
func AtStage(first Stage, others ...Stage) RPCOption {
	return RPCOption{func(m *schema.Method) { m.Queue.Stages = append([]Stage{first}, others...) }}
}

// Unreliable sends a method's messages in datagrams: a lost message is not sent again, and messages
// may overtake each other.
func Unreliable() RPCOption { return RPCOption{func(m *schema.Method) { m.Queue.Reliable = false }} }

// ForSpectators lets spectators send the message too, see [Client.Spectator]: to chat, for
// instance.
func ForSpectators() RPCOption { return RPCOption{func(m *schema.Method) { m.Spectators = true }} }

// LateDrop drops a message that arrives when its stage has already run in this tick, instead of
// keeping it for the next one. Messages arrive in EarlyUpdate: a message for a later stage is never
// late, and a message for [Initialization] always is, so with LateDrop it runs only if the sender
// picks another stage with [RunAt].
func LateDrop() RPCOption { return RPCOption{func(m *schema.Method) { m.Queue.LateDrop = true }} }

// Limit bounds how many messages of this kind each client may send: burst at once (1 to 65 536),
// and perSecond of them a second for ever (one an hour to a million), in game time. A message
// beyond is dropped; a call is refused with [CodeFlood].
func Limit(perSecond float64, burst int) RPCOption {
	return RPCOption{func(m *schema.Method) { m.Queue.Limit = rpcqueue.Bucket{PerSecond: perSecond, Burst: burst} }}
}

// LimitPerTick bounds how many messages of this kind one tick takes of each client, from 1 to 65
// 536. A message beyond is dropped; a call is refused with [CodeFlood]. The network bunches
// messages that were sent evenly, so leave room, or use [Limit]. If both are set, the stricter
// applies.
func LimitPerTick(n int) RPCOption {
	return RPCOption{func(m *schema.Method) {
		if n < 1 || n > rpcqueue.MaxBurst {
			panic(fmt.Sprintf("netloop: method %q: LimitPerTick(%d): use 1 to %d", m.Queue.Name, n, rpcqueue.MaxBurst))
		}
		m.Queue.PerTick = n
	}}
}

// Timeout is how long the client waits for the answer to a call, and the server for a [Reply] of
// [Call.HandleLater]: 10 s unless this option is given, from 1 ms to an hour.
func Timeout(d time.Duration) RPCOption {
	return RPCOption{func(m *schema.Method) {
		if d < time.Millisecond || d > schema.MaxTimeout {
			panic(fmt.Sprintf("netloop: method %q: Timeout(%v): use %v to %v", m.Queue.Name, d, time.Millisecond, schema.MaxTimeout))
		}
		m.Timeout = d
	}}
}

// ServerOnly is for an RPC that the server sends, to clients, from room to room or to itself, and
// that clients must not send: a client's message of it does not run, although there is a handler. A
// client of this build panics before it sends one.
func ServerOnly() RPCOption {
	return RPCOption{func(m *schema.Method) {
		m.ServerOnly = true
		withCheck("ServerOnly", nil, func(*Tick, *Client, any) error {
			return &rpcqueue.Rejection{Why: rpcqueue.Forbidden, Err: Refuse(CodeRefused, "only the server may send it")}
		}).apply(m)
	}}
}

// MinRole rejects the message from clients with a [Join.Role] less than the given one.
func MinRole(role int) RPCOption {
	return withCheck("MinRole", nil, func(_ *Tick, from *Client, _ any) error {
		if from.join.Role() >= role {
			return nil
		}
		return &rpcqueue.Rejection{Why: rpcqueue.Forbidden, Err: Refuse(CodeRefused, "role is too low")}
	})
}

// Validate checks each message of a client before its handler runs. For an invalid call, the client
// gets the text of a [Refuse] error, or [CodeInvalid] for any other error. fn must judge the
// message alone: all rooms share it.
func Validate[M any](fn func(m M) error) RPCOption {
	return withCheck("Validate", reflect.TypeFor[M](), func(_ *Tick, _ *Client, msg any) error {
		err := fn(schema.Open[M](msg))
		if err == nil {
			return nil
		}
		if refusal := (*Refusal)(nil); !errors.As(err, &refusal) {
			err = fmt.Errorf("%w: %w", Refuse(CodeInvalid, "message is invalid"), err)
		}
		return &rpcqueue.Rejection{Why: rpcqueue.Invalid, Err: err}
	})
}

// OwnerOnly lets only the owner of an object send a message about it: ref returns the object that
// the message names. Ownership is checked when the message runs; if the object does not exist any
// more, the message is rejected.
func OwnerOnly[M, S any](ref func(m M) Ref[S]) RPCOption {
	return withCheck("OwnerOnly", reflect.TypeFor[M](), func(t *Tick, from *Client, msg any) error {
		if o, ok := ref(schema.Open[M](msg)).Get(t); ok && o.Owner() == from.ID() {
			return nil
		}
		return &rpcqueue.Rejection{Why: rpcqueue.NotOwner, Err: Refuse(CodeRefused, "not the owner of the object")}
	})
}

// withCheck returns an option that adds a check. Checks run in the order of RPCOption's table, not
// in that of the options.
func withCheck(option string, message reflect.Type, fn func(*Tick, *Client, any) error) RPCOption {
	return RPCOption{func(m *schema.Method) {
		c := schema.Check{Option: option, Message: message, Ask: func(tick, from, msg any) error {
			return fn(tick.(*Tick), from.(*Client), msg)
		}}
		at := 0
		for at < len(m.Checks) && checkOrder[m.Checks[at].Option] <= checkOrder[option] {
			at++
		}
		m.Checks = slices.Insert(slices.Clip(m.Checks), at, c)
	}}
}

var checkOrder = map[string]int{"ServerOnly": 0, "MinRole": 1, "Validate": 2, "OwnerOnly": 3}
