// Package nats connects the servers of several processes through NATS: an implementation of
// [cluster.Cluster]. It needs NATS 2.11 or newer with JetStream.
//
//	subject            kept by     message
//	P.lease.ID         the store   Lease: the heartbeat of a server renews its lease
//	P.name.HASH        the store   Name: the holder of a name, and the epoch
//	P.board.ID         nobody      Changes: changed rooms of a server
//	P.to.ID            nobody      Direct: calls, answers, whole boards for one server
//
// P is netloop. and the name of the cluster. The store is one stream of JetStream with the last
// message of each subject. All writes are compare-and-set with the revision, which is the
// message's sequence number. A heartbeat is one message: all servers hear it, also while the store
// has no quorum, and the store keeps it, which confirms the lease.
//
//	beat ─▶ P.lease.ID ─┬─▶ peers: heard
//	                    └─▶ stored ─▶ confirmed: Hold is nil for HoldBeats from the sending on
//	Claim ─▶ P.name.HASH expects no message ─▶ the revision is the epoch
//	           └─ taken ─▶ is the holder's lease ended, or was it silent for LeaseBeats?
//	                         └─▶ P.lease.HOLDER ended, expects the silent revision ─▶ the next try
//
// A lease that was ended does not begin again: its server begins the next term, and claims the
// names again that nobody else has claimed, with their old epochs. So an old answer of the store
// refuses a claim, but never grants one.
//
// Messages are bounded and checked (wire.go), and time is an argument (peers.go, board.go); the
// goroutines are in nats.go.
package nats
