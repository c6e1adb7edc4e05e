// Package certificate holds the certificate that clients see, and replaces it while the
// server runs: TLS asks for it at every handshake, so who is connected notices nothing.
//
//	Files        two PEM files, read again when they change (internal/watchfile)
//	Development  a self-signed one for this machine, made anew before it ends
//	Given        the caller's own, which stays
//
// What cannot be used replaces nothing: the old one stays, the log says why, and a counter
// counts.
package certificate
