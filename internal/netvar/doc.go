// Package netvar replicates objects from a server to its clients.
package netvar
