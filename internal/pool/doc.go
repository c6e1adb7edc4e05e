// Package pool bounds the connections of an HTTP listener, all of them and those of one household
// or machine. When there are too many, a connection of the site that has the most is closed for a
// newcomer: one for which no answer is made, or one with an answer under way where a site has
// clearly more of those.
//
// The flow:
//
//	Accept       full? one of the largest site goes; or, if none may, the newcomer
//	With, Of     net/http puts the connection into the context of its requests
//	Work         an answer is being made: the connection is busy until it is
//	Leave        it is no HTTP connection any more, and somebody else bounds it
package pool
