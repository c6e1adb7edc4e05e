// Package pool bounds the connections of an HTTP listener. There is always room for one that
// comes: another one goes, which nothing is made for and which has been quiet for longest, of
// the household or machine that has the most.
//
// The flow:
//
//	Accept       full? one that is quiet goes; or, if none may, the newcomer
//	With, Of     net/http puts the connection into the context of its requests
//	Work         an answer is being made: the connection stays until it is
//	Leave        it is no HTTP connection any more, and somebody else bounds it
package pool
