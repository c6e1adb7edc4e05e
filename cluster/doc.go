// Package cluster connects the servers of several processes: it tells them of each other, makes
// names unique, lists the rooms of all, and carries calls.
//
// The flow, with the owner of each fact:
//
//	fact                        owner             copies
//	seats, clients of a room    the room alone    none: ask the room by Call
//	life, addresses, load       the server        Servers of all members, by heartbeats
//	published rooms             the server        Boards of all members, whole and then changes
//	the holder of a name        the store         leases, which the holder's heartbeats renew
//
//	OpenRoom   Claim(name) ─▶ Epoch = the room's incarnation ─▶ Announce ─▶ Boards of all
//	Reserve    Find(name) or Boards ─▶ Call(holder) ─▶ Serve: the room decides ─▶ answer
//	admission  Hold(name, epoch): nil admits, ErrBusy waits, ErrTaken ends the room
//	the end    Announce(nil), Release
//
// No member takes a decision of a room from a copy: a board may be late, and a call asks.
//
// # Time
//
// A server sends a heartbeat in each [Beat]. After [SuspectBeats] missed ones the others show it
// as suspect, and delete nothing. After [LeaseBeats] missed ones its leases expire, so others may
// claim its names. Only intervals are measured, each on one machine, so the clocks of machines may
// differ.
//
// [Memory] is the implementation for one process and for simulations. Package nats connects
// processes. Package clustertest tests implementations.
package cluster
