// Package boundedio provides a writer that never blocks its caller: a goroutine writes, and the
// bytes that wait for it are bounded.
//
//	Write   appends a whole piece, under the lock, to the pending buffer
//	run     swaps the pending buffer for the written one, and writes
//	Close   refuses further pieces, and waits for the pending ones
//
// So two buffers are all the memory in use, and the output receives whole pieces in order. The log
// (package logging) loses lines rather than fail, and a recording (package recording) fails rather
// than have a gap: Config selects the behaviour.
package boundedio
