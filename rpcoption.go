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
// The receiver checks a client's message in this order. The first check that fails decides: the
// message is dropped and counted in netloop_rpcs_total under the outcome, and a call is answered
// with the code.
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

// AtStage names the stages at which a method may run. It runs at the first of them, unless the
// sender selects another one with [RunAt]. Without AtStage a method runs at Update.
func AtStage(first Stage, others ...Stage) RPCOption {
	return RPCOption{func(m *schema.Method) { m.Queue.Stages = append([]Stage{first}, others...) }}
}

// Unreliable sends a method's messages in datagrams: a lost message is not sent again, and messages
// may overtake each other.
func Unreliable() RPCOption { return RPCOption{func(m *schema.Method) { m.Queue.Reliable = false }} }

// ForSpectators lets spectators send the message too, see [Client.Spectator]: to chat, for
// instance.
func ForSpectators() RPCOption { return RPCOption{func(m *schema.Method) { m.Spectators = true }} }

// Secret keeps a method's payloads out of the inspector, which shows messages of rooms and
// recordings to operators: for passwords, tokens, tickets and private talk. The file of a recording
// contains them.
func Secret() RPCOption { return RPCOption{func(m *schema.Method) { m.Secret = true }} }

// LateDrop drops a message that arrives after its stage has run in this tick; without it the
// message waits for the next tick. Messages arrive in EarlyUpdate. So a message for a later stage
// is never late, and a message for [Initialization] is always late: with LateDrop it runs only if
// the sender selects another stage with [RunAt].
func LateDrop() RPCOption { return RPCOption{func(m *schema.Method) { m.Queue.LateDrop = true }} }

// Limit bounds the messages of this kind that each client may send: burst messages at once (1 to 65
// 536), and perSecond messages a second on average (one an hour to a million), in game time. A
// further message is dropped; a call is refused with [CodeFlood].
func Limit(perSecond float64, burst int) RPCOption {
	return RPCOption{func(m *schema.Method) { m.Queue.Limit = rpcqueue.Bucket{PerSecond: perSecond, Burst: burst} }}
}

// LimitPerTick bounds the messages of this kind that one tick accepts from each client: n is from 1
// to 65 536. A further message is dropped; a call is refused with [CodeFlood]. Messages that were
// sent evenly may arrive together, so choose a higher number, or use [Limit]. If both are set, both
// apply.
func LimitPerTick(n int) RPCOption {
	return RPCOption{func(m *schema.Method) {
		if n < 1 || n > rpcqueue.MaxBurst {
			panic(fmt.Sprintf("netloop: method %q: LimitPerTick(%d): use 1 to %d", m.Queue.Name, n, rpcqueue.MaxBurst))
		}
		m.Queue.PerTick = n
	}}
}

// Timeout sets the time for which the client waits for the answer to a call, and for which the
// server accepts a [Reply] of [Call.HandleLater]. The default is 10 s; from 1 ms to an hour.
func Timeout(d time.Duration) RPCOption {
	return RPCOption{func(m *schema.Method) {
		if d < time.Millisecond || d > schema.MaxTimeout {
			panic(fmt.Sprintf("netloop: method %q: Timeout(%v): use %v to %v", m.Queue.Name, d, time.Millisecond, schema.MaxTimeout))
		}
		m.Timeout = d
	}}
}

// ServerOnly is for an RPC that only the server sends: to clients, from room to room, or to itself.
// If a client sends such a message, it does not run, even if there is a handler. A client of this
// build panics if it sends one.
func ServerOnly() RPCOption {
	return RPCOption{func(m *schema.Method) {
		m.ServerOnly = true
		withCheck("ServerOnly", nil, func(*Tick, *Client, any) error {
			return &rpcqueue.Rejection{Why: rpcqueue.Forbidden, Err: Refuse(CodeRefused, "only the server may send it")}
		}).apply(m)
	}}
}

// MinRole rejects the message from clients whose [Join.Role] is less than role.
func MinRole(role int) RPCOption {
	return withCheck("MinRole", nil, func(_ *Tick, from *Client, _ any) error {
		if from.join.Role() >= role {
			return nil
		}
		return &rpcqueue.Rejection{Why: rpcqueue.Forbidden, Err: Refuse(CodeRefused, "role is too low")}
	})
}

// Validate checks each message of a client before its handler runs. For an invalid call, the client
// gets the text of a [Refuse] error, or [CodeInvalid] for any other error. fn must depend only on
// the message, because all rooms share it.
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
// the message names. Ownership is checked when the message runs; if the object no longer exists,
// the message is rejected.
func OwnerOnly[M, S any](ref func(m M) Ref[S]) RPCOption {
	return withCheck("OwnerOnly", reflect.TypeFor[M](), func(t *Tick, from *Client, msg any) error {
		if o, ok := ref(schema.Open[M](msg)).Get(t); ok && o.Owner() == from.ID() {
			return nil
		}
		return &rpcqueue.Rejection{Why: rpcqueue.NotOwner, Err: Refuse(CodeRefused, "not the owner of the object")}
	})
}

// withCheck returns an option that adds a check. Checks run in the order of RPCOption's table, not
// in the order of the options.
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
