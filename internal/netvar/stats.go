package netvar

import "github.com/netloop/netloop/internal/netvar/interest"

// Stats are the counters of one World, for its goroutine. All but Objects only increase.
type Stats struct {
	Objects  int    // alive
	Captured uint64 // edited objects that were compared
	Versions uint64 // captures that found a change
	Clamped  uint64 // values cut or clamped to fit their field, NaN included

	BelowThreshold uint64 // changed fields that a capture held back: see HoldReason
	WithinInterval uint64

	Encoded   uint64 // residuals encoded; shared ones are not counted
	Snapshots uint64
	Packets   uint64
	Bytes     uint64
	Records   uint64 // of all kinds below
	Deltas    uint64 // records that carry a difference
	InRuns    uint64 // records that were sent in runs: see run.go
	Despawns  uint64 // records that end a lifetime
	Large     uint64 // records that were larger than a packet
	Waited    uint64 // records that did not fit a snapshot

	// Records that were ordered by priority in a shortage.
	Ranked      uint64
	Planned     uint64 // plans made
	OverBudget  uint64 // of Waited: for the client's budget
	WaitedLarge uint64 // of Waited: larger than a packet, for room on the stream
	Shed        uint64 // records left out while the world sheds; not in Waited

	FullFirst     uint64 // full records: nothing acknowledged yet
	FullVisible   uint64 // full records: the object became visible
	FullRequested uint64 // full records: after RequestFull
	FullEvicted   uint64 // full records: the baseline was too old
	FullLarge     uint64 // full records: the difference was larger than a packet
	FullMasked    uint64 // full records: the readable fields changed
	FullResumed   uint64 // full records: after a resume without copies

	interest.Stats

	Acked         uint64 // packets
	Lost          uint64 // packets
	Overrun       uint64 // packets declared lost because MaxInFlight were undecided
	AckUnknown    uint64 // ranges with ids that were never sent
	AckStale      uint64 // ranges of decided packets only
	AckOverlapped uint64 // calls aborted because their ranges overlap

	FullRequests   uint64 // calls of RequestFull
	DigestRequests uint64 // calls of RequestDigest
	Digests        uint64 // snapshots with a digest
	DigestSlots    uint64 // slots visited by digests
	Hashed         uint64 // values hashed for digests; cached hashes are not counted
	Resumes        uint64 // calls of Resume
}
