// Package apidoc lists the fields of the JSON answers of the admin listener, for /api and
// docs/INSPECT-API.md.
//
// The flow:
//
//	comments of struct fields ─▶ comments.txt    by a test with -rewrite
//	type of an answer, comments.txt ─▶ Fields    at run time
//
// Names and types come from the Go type itself, so only the texts are copied, and the test compares
// these with the source.
package apidoc
