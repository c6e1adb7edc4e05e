package netvar

import (
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/limits"
)

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.State: stateBounds(), limits.Client: {
		{
			Name:    "memory for state: objects, versions, blobs (once for all versions that share them), and live values",
			Default: limits.Bytes(maxStored), Unit: "a protobuf message by its decoded size",
			Full: "a packet that would go beyond is refused before any of that is allocated, though a protobuf message is decoded once to be checked",
		},
	}}
}

func stateBounds() []limits.Limit {
	return []limits.Limit{
		{
			Name: "objects", Default: MaxSlots, Unit: "objects", Full: "Spawn panics, which costs the running system its call",
		},
		{
			Name: "a value of an object", Default: limits.Bytes(MaxRecord), Unit: "on the wire",
			Full: "`NewClass` panics and names the largest field",
		},
		{
			Name: "versions of an object", Default: limits.Say("those of %v ticks and the newest older one; %v", Horizon, limits.Bytes(maxHistory)),
			Counter: `netloop_full_states_total{reason="evicted"}`, Full: "the oldest are dropped; a client that is that far behind gets a full record",
		},
		{
			Name: "entry of a client for one object", Default: limits.Bytes(unsafe.Sizeof(entry{})),
			Unit: "and " + limits.Written(limits.Bytes(codec.Allocated(int(unsafe.Sizeof(detail{}))))) + " more unless it is steady", Full: "not beyond: clients and objects have their limits",
		},
		{
			Name: "packets in flight, per client", Default: MaxInFlight, Unit: "packets", Full: "the oldest count as lost",
		},
		{
			Name:    "records larger than a packet that a client has not applied",
			Default: limits.Bytes(MaxOutstanding), Unit: "per client; none while half of its reliable mailbox waits",
			Counter: `netloop_snapshot_records_waited_total{reason="stream"}`, Full: "they remain pending",
		},
		{
			Name:    "bits that are shared in a tick",
			Default: limits.Say("%v variants of an object, %v runs of 64 neighbours", maxResiduals, maxRuns),
			Full:    "a new one replaces a random one; without a place a run is encoded for one client",
		},
		{
			Name:    "objects that clients far behind are sent, all clients",
			Default: limits.Say("%v; %v in the slow lane, %v of one client", wideRecords, slowRecords, slowTurn), Unit: "objects a tick",
			Full: "they wait, and the longest waiting client is first; changes of present objects are still sent; `Object.Explain` says `packets`",
		},
		{
			Name: "digests of a tick, of all clients", Default: digestSlots, Unit: "slots looked at, on average",
			Full: "in the order of the requests, with later snapshots",
		},
		{
			Name: "hashes of an object for clients with hidden fields", Default: maxMaskedHashes, Unit: "sets of rules",
			Full: "the oldest go; hashed again for the next digest",
		},
	}
}
