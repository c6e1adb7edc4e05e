// Package token verifies the tokens by which players prove to a server who they are, and makes
// them for tools and tests. A token is a JSON Web Token (RFC 7519) that a login service has signed
// with EdDSA (RFC 8037); no other algorithm is known here. docs/SECURITY.md is its standard.
//
// The flow:
//
//	files ──▶ LoadKeys ──▶ Keys ─┐
//	token ──▶ examine ───────────┴▶ findings, claim by claim ──▶ Explain, for people
//	             │
//	             └─ nothing is wrong ──▶ spent: used before? ──▶ Verify: *Identity or *Error
//
// A server and the command that explains tokens use the same examination, so they never differ.
// The package reads no clock: the time is an argument.
package token
