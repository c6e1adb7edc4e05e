// Package transport is the core of every connection, without any I/O and without a
// clock: the drivers (quicnet over QUIC, memnet in memory and virtual time) feed it
// bytes and take bytes from it, and the owner (a room, or a client) meets it once a tick.
// A connection has two sides: the owner holds a Session, the driver a Link, and neither
// reaches the methods of the other.
//
// # The flow of a connection
//
//  1. The driver reads a Hello (ReadFrame, DecodeHello), asks the Handler, and writes a
//     Welcome (AppendWelcome) or a Refused (AppendRefused).
//  2. It calls NewSession, gives the Session to Admission.Joined, keeps the Link, and starts
//     to read.
//  3. Link.ReceiveDatagram and Link.ReceiveStream check what arrives and push it as Arrivals
//     into the owner's Inbox. Nothing unchecked is ever queued.
//  4. The owner swaps its Inbox once a tick and finds all arrivals in order.
//  5. Session.Send, Slot, AckState and the requests collect what the owner wants to send,
//     without a lock; Session.Flush hands it to the mailbox under one lock and wakes the
//     driver's writers.
//  6. Link.SendDatagrams hands the writer one datagram after the other and notes what became
//     of each; Link.AppendStream gives the next bytes of the stream.
//  7. Session.Close, Link.Shutdown or the end of the network's connection lead to Link.End,
//     and that to the arrival Gone.
//
// # Who may call what
//
//	goroutine         calls
//	owner             Session: all of it; Window
//	datagram reader   Link.ReceiveDatagram
//	stream reader     Link.ReceiveStream
//	datagram writer   Link.SendDatagrams
//	stream writer     Link.AppendStream, Link.CloseRequested
//	any               Link.OnWake, SetRTT, Shutdown, Closing, Cause, End;
//	                  Session.ID, Inbox, RequestTime, Cause; Inbox.Push
//
// No call ever waits for the network, but for the function that is given to SendDatagrams.
//
// # The mailbox
//
// What waits for one peer is bounded: a queue of unreliable messages that drops its
// oldest entries (in a game the newer message is the one that still matters), one slot
// for a snapshot (the owner does not encode another while it is taken, so nothing encoded
// is thrown away), and a queue of reliable data, whose overflow closes the connection
// with CodeSlow. Nobody else notices any of it.
package transport
