package netvar

// Stats are plain counters of one World, for its goroutine. All but Objects only grow.
type Stats struct {
	Objects  int    // alive
	Captured uint64 // edited objects looked at
	Versions uint64 // captures that found a change
	Clamped  uint64 // values cut or clamped to fit their field, NaN included

	BelowThreshold uint64 // changed fields that a capture held back: see HoldReason
	WithinInterval uint64

	Encoded   uint64 // residuals computed, as opposed to shared
	Snapshots uint64
	Packets   uint64
	Bytes     uint64
	Records   uint64 // of all kinds below
	Deltas    uint64 // records that carry a difference
	InRuns    uint64 // of them went with their neighbours: see run.go
	Despawns  uint64 // records that end a lifetime
	Large     uint64 // records that were larger than a packet
	Waited    uint64 // records that did not fit a snapshot

	// Records that a shortage has put in order of need, as opposed to all that were owed.
	Ranked      uint64
	Planned     uint64 // plans that were made
	OverBudget  uint64 // of those that waited: for the client's budget
	WaitedLarge uint64 // of those that waited: larger than a packet, for room on the stream
	Shed        uint64 // records left out while the world sheds; not among those that waited

	FullFirst     uint64 // full records: nothing acknowledged yet
	FullVisible   uint64 // full records: the object became visible
	FullRequested uint64 // full records: after RequestFull
	FullEvicted   uint64 // full records: the baseline was too old
	FullLarge     uint64 // full records: the difference was larger than a packet
	FullMasked    uint64 // full records: what the client may read of the object changed
	FullResumed   uint64 // full records: after a resume without copies

	// Pairs of object and client that were asked about after the object was published.
	Judged       uint64
	BadPositions uint64 // places in a space that are too far out, infinite or not a number

	Shown  uint64 // objects that became visible to a client by a judgement
	Hidden uint64 // objects that were hidden from a client by a judgement

	Masked uint64 // times that what a client may read of an object changed

	Acked         uint64 // packets
	Lost          uint64 // packets
	Overrun       uint64 // packets given up as lost because MaxInFlight were unanswered
	AckUnknown    uint64 // ranges with ids that were never sent
	AckStale      uint64 // ranges wholly of packets that are already decided
	AckOverlapped uint64 // calls cut short because their ranges overlap

	FullRequests   uint64 // calls of RequestFull
	DigestRequests uint64 // calls of RequestDigest
	Digests        uint64 // snapshots with a digest
	DigestSlots    uint64 // slots that digests have looked at
	Hashed         uint64 // values hashed for digests, as opposed to remembered
	Resumes        uint64 // calls of Resume
}
