// Package transport is the core of every connection, without I/O and without a clock. Drivers
// (quicnet over QUIC, memnet in memory and virtual time) pass received bytes to it and get bytes to
// send from it. The owner (a room, or a client) uses it once a tick. A connection has two sides:
// the owner holds a Session and the driver a Link, and neither can call the methods of the other.
//
// # The flow of a connection
//
//  1. The driver reads a Hello (ReadFrame, DecodeHello), asks the Handler, and writes a Welcome
//     (AppendWelcome) or a Refused (AppendRefused).
//  2. It calls NewSession, passes the Session to Admitted.Joined, keeps the Link, and starts to
//     read.
//  3. Link.ReceiveDatagram and Link.ReceiveStream check received bytes and push them as Arrivals
//     into the owner's Inbox. Only checked data is queued.
//  4. The owner swaps its Inbox once a tick and gets all arrivals in order.
//  5. Session.Send, Slot, AckState and the requests collect the owner's data, without a lock;
//     Session.Flush moves it to the mailbox under one lock and wakes the driver's writers.
//  6. Link.SendDatagrams passes the writer one datagram after the other and records the outcome of
//     each; Link.AppendStream returns the next bytes of the stream.
//  7. Session.Close, Link.Shutdown or the end of the network's connection lead to Link.End, and
//     that to the arrival Gone.
//
// # Goroutines and calls
//
//	goroutine         calls
//	owner             Session: all of it; Window
//	datagram reader   Link.ReceiveDatagram, ReceiveWaited, ReceiveBorrowed
//	stream reader     Link.ReceiveStream
//	stream writer     Link.AppendStream, Link.CloseRequested
//	any               Link.SendDatagrams, OnWake, SetRTT, Shutdown, Closing, Cause, End;
//	                  Session.ID, Inbox, RequestTime, Cause; Inbox.Push
//
// No call waits for the network, except for the function that is passed to SendDatagrams.
//
// # The mailbox
//
// The data queued for one peer is bounded: a queue of unreliable messages that drops its oldest
// entries (in a game the newer message matters more), one slot for a snapshot (the owner does not
// encode another while it is taken, so no encoded snapshot is dropped), and a queue of reliable
// data. An overflow of the queue of reliable data closes the connection with CodeSlow. Other
// clients are not affected.
package transport
