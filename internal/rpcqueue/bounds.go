package rpcqueue

import "github.com/netloop/netloop/internal/limits"

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Queues: {
		{
			Name: "messages that wait for one stage", Default: limits.Say("%v; beyond it %v of each sender", StageCapacity, SenderShare),
			Unit: "messages", Counter: `netloop_rpcs_total{outcome="full"}`, Full: "not queued; a call is answered",
		},
		{
			Name: "accounts of departed clients with a debt to a limit", Default: MaxOwed, Unit: "accounts, each until its debt is 0",
			Counter: "accounts/evicted", Full: "the account that would expire next is dropped",
		},
	}}
}
