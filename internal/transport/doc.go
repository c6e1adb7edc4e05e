// Package transport is the core of every connection, without any I/O: sessions, their
// mailbox towards the network, the inbox towards the owner, and the ack window.
package transport
