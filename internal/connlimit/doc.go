// Package connlimit bounds the connections of an HTTP listener, in total and for each site (a
// household or a machine). At the limit, a new connection replaces an idle one of the site with the
// most connections, or a busy one if that site has clearly more busy connections than the others.
//
// The flow:
//
//	Accept       full? one of the largest site goes; or, if none may, the newcomer
//	With, Of     net/http puts the connection into the context of its requests
//	Work         an answer is being made: the connection is busy until it is
//	Leave        it is no HTTP connection any more, and somebody else bounds it
package connlimit
