package token

// Reason is the reason why a token is rejected.
type Reason uint8

// The reasons, about in the order of the checks. Fine is the result of a check without an error.
const (
	Fine Reason = iota
	Missing
	Malformed
	Algorithm
	UnknownKey
	Signature
	Audience
	Expired
	NotYet
	TooLong
	Claims
	Room
	Spent
	Busy
	numReasons
)

// reasonNames are the values of a metric's label.
var reasonNames = [numReasons]string{
	Fine:       "accepted",
	Missing:    "missing",
	Malformed:  "malformed",
	Algorithm:  "algorithm",
	UnknownKey: "unknown_key",
	Signature:  "signature",
	Audience:   "audience",
	Expired:    "expired",
	NotYet:     "not_yet_valid",
	TooLong:    "lifetime",
	Claims:     "claims",
	Room:       "room",
	Spent:      "spent",
	Busy:       "busy",
}

// String returns the reason's name.
func (r Reason) String() string { return reasonNames[r] }

// Error describes why a token is rejected, in words for its owner: the text may repeat the token's
// claims, but reveals no data of the server.
type Error struct {
	Reason Reason
	Text   string
}

// Error implements error.
func (e *Error) Error() string { return e.Text }
