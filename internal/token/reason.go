package token

// Reason is what is wrong with a token.
type Reason uint8

// The reasons, in the order in which a token is looked at. Fine is none.
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

// Error says why a token is not accepted, in words for whoever brought it: they tell what the
// token itself says, and nothing of the server.
type Error struct {
	Reason Reason
	Text   string
}

// Error implements error.
func (e *Error) Error() string { return e.Text }
