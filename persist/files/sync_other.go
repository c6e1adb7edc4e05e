//go:build !unix

package files

// syncDir does nothing: a folder cannot be synced here, and the file system keeps its own order.
func syncDir(string) error { return nil }
