// Package certificate holds the server's certificate, and replaces it while the server runs: TLS
// reads it at every handshake, so connected clients are not affected.
//
//	Files        two PEM files, read again when they change (internal/watchfile)
//	Development  a self-signed one for this machine, renewed before it ends
//	Given        the caller's own, never replaced
//
// If a new certificate cannot be used, the old one is kept, the reason is logged, and the failure
// is counted.
package certificate
