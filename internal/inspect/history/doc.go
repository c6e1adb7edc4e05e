// Package history answers questions about any tick of a recording.
//
//	recording ─▶ room.Replay.Step ─▶ tracker: the changes of the tick ─▶ temporary file
//	   │              one goroutine        and now and then a keyframe      append-only
//	   │                                                │ offsets, counts
//	   │                                                ▼
//	   │              HTTP goroutines        index: lists that grow, with an atomic length
//	   │                                                │ position of a tick
//	   │                                                ▼
//	   │              State, Diff: a keyframe and the changes since, by ReadAt
//	   │              Find: the changes of one class, in order
//	   ├─────────────▶ Messages: the record of the tick
//	   └─────────────▶ Ticks: counts of the index; of few ticks the records, for lanes by client
//
//	store.go      the temporary file and the index
//	list.go       the append-only lists of the index
//	tracker.go    the changes of a world between two captures, as bytes
//	state.go      the same bytes as objects; differences between two states
//	facts.go      the arrivals of a tick: counts, and lanes by client
//	recording.go  Recording: the replay, its outcome, and its end
//	ring.go       Ring: the last ticks of a running room, and a Recording of them
//	query.go      the language of Find
//	find.go       Find
//	answers.go    the answers as JSON: the recording, State, Diff
//	ticks.go      Ticks
//	messages.go   Messages
//	recordings.go Recordings: the recording that is open, and the files that can be opened
//	http.go       handlers of HTTP
//
// A replay runs a recording from its first tick, and no game can save a copy of its state. So the
// history keeps the replicated state only, which is complete for an observer: each change once, and
// keyframes, so that a step to any tick reads a bounded part of the file (docs/adr/0062).
//
// A Ring has no replay: the room adds its changes after each tick, and a Recording of them is in
// memory.
package history
