// Package connlimit bounds the connections of an HTTP listener, in total and for each site (a
// household or a machine). At the limit, a new connection replaces an idle connection of the site
// with the most connections, or a busy connection of a site with clearly more busy connections than
// all others.
//
// The flow:
//
//	Accept                 full? closes one of the largest site, or the new one
//	WithConn, FromContext  net/http puts the connection into the context of its requests
//	Busy                   the connection is busy while a request is answered
//	Serve                  serves HTTP until the server stops, and then closes the connections
//	Detach                 the connection is no longer one of HTTP; another package bounds it
package connlimit
