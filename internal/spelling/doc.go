// Package spelling finds the name that a user has mistyped.
//
// The flow:
//
//	a flag, key or command that is not known ──▶ Nearest(wrote, names) ──▶ the error suggests it
package spelling
