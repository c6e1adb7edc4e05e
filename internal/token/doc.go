// Package token verifies the tokens by which players identify themselves to a server, and makes
// tokens for tools and tests. A token is a JSON Web Token (RFC 7519) that a login service has
// signed with EdDSA (RFC 8037); no other algorithm is accepted. docs/SECURITY.md is its standard.
//
// The flow:
//
//	files ──▶ LoadKeys ──▶ Keys ─┐
//	token ──▶ newVerification ───────────┴▶ findings, claim by claim ──▶ Explain, for people
//	             │
//	             └─ all claims are valid ──▶ spent: used before? ──▶ Verify: *Identity or *Error
//
// A server and the command that explains tokens use the same verification, so their results never
// differ. The package reads no clock: the time is an argument.
package token
