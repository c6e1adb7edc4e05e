package netvar

// Why is the state of the last change of a field with respect to one client.
type Why uint8

// The reasons. World.Explain returns the first reason that applies.
const (
	WhyGone      Why = 1 + iota // the object is despawned
	WhyNew                      // the object was spawned after the last capture
	WhyHidden                   // the client may not see the object
	WhyWithheld                 // the client may not read the field
	WhyThreshold                // the change is below the field's threshold
	WhyInterval                 // the field's interval is not over
	WhyUnnoticed                // the value was changed without Edit
	WhyUnedited                 // the field has not changed since the object became visible
	WhyUnchanged                // the object was edited, and the field has the same value
	WhyAcked                    // the client has acknowledged the change
	WhySent                     // the change is in the last snapshot
	// The object's last record fits no packet, and is in flight on the stream.
	WhyStream
	WhyInFlight   // the change was sent, and is neither acknowledged nor lost
	WhyNoSnapshot // no snapshot was cut for the client after the last capture
	WhyShed       // the world sheds load
	WhyBudget     // the client's budget was used up
	// The packets of the snapshot were full, or the plans of other clients were served first: see
	// catchup.go.
	WhyPackets
	WhyStreamFull // the record fits no packet, and the stream had no room
	// The packet was lost, or the record waited for a packet that was lost: the next snapshot has
	// it.
	WhyNext
)
