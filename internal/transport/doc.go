// Package transport is the core of every connection, without any I/O and without a
// clock: the drivers (quicnet over QUIC, memnet in memory and virtual time) feed it
// bytes and take bytes from it, and the owner (a room, or a client) meets it once a tick.
//
// # The flow of a connection
//
//  1. The driver reads a Hello (ReadFrame, DecodeHello), asks the Handler, and writes a
//     Welcome (AppendWelcome) or a Refused (AppendRefused).
//  2. It makes a Session, calls Admission.Joined, and starts to read.
//  3. ReceiveDatagram and ReceiveStream check what arrives and push it as Arrivals into
//     the owner's Inbox. Nothing unchecked is ever queued.
//  4. The owner swaps its Inbox once a tick and finds all arrivals in order.
//  5. Send, Slot, AckState and the requests collect what the owner wants to send, without
//     a lock; Flush hands it to the mailbox under one lock and wakes the driver's writers.
//  6. SendDatagrams hands the writer one datagram after the other and notes what became of
//     each; AppendStream gives the next bytes of the stream.
//  7. Close, Shutdown or the end of the link lead to End, and End to the arrival Gone.
//
// # Who may call what
//
// The owner's goroutine calls Send, Slot, AckState, PublishEpoch, PublishOverload,
// PublishTimeScale, RequestDigest, RequestFullState, Flush, Close and Link. One goroutine of the driver calls
// ReceiveDatagram, one ReceiveStream, one SendDatagrams, one AppendStream. Shutdown, RequestTime, SetRTT, Wake, Closing and CloseRequested are for
// any goroutine. No call ever waits for the network.
//
// # The mailbox
//
// What waits for one peer is bounded: a queue of unreliable messages that drops its
// oldest entries (in a game the newer message is the one that still matters), one slot
// for a snapshot (the owner does not encode another while it is taken, so nothing encoded
// is thrown away), and a queue of reliable data, whose overflow closes the connection
// with CodeSlow. Nobody else notices any of it.
package transport
