// Package boundedio is a writer that never makes its caller wait: a goroutine writes, and what
// waits for it has a bound.
//
//	Write   a whole piece, under the lock, into the buffer that waits
//	run     swaps that buffer for the one that it has written out, and writes
//	Close   refuses what comes, and waits for what is there
//
// So two buffers are all the memory that there is, and the output sees pieces whole and in order.
// The log (package logging) would rather lose lines than end, and a recording (package recording)
// would rather end than have a gap: Config says which.
package boundedio
