package room

import (
	"github.com/netloop/netloop/internal/limits"
	"github.com/netloop/netloop/internal/netvar"
)

// Bounds returns the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{
		limits.Door:      doorBounds(),
		limits.Queues:    queueBounds(),
		limits.State:     stateBounds(),
		limits.Answers:   answerBounds(),
		limits.Operation: operationBounds(),
	}
}

func doorBounds() []limits.Limit {
	return []limits.Limit{
		{
			Name: "players thrown out with `CODE_FLOOD`", Default: floodPenalty, Unit: "until one is let in again",
			Counter: "admission/flood", Full: "refused (`CODE_FLOOD`)",
		},
		{
			Name: "joins without a subject from the address of an expelled client, for " + limits.Written(floodPenalty),
			Default: limits.Say("each waits %v, and %v after the one before; %v at most",
				floodWait, floodSpacing, maxFloodWait),
			Counter: "admission/flood", Full: "refused (`CODE_FLOOD`)",
		},
		{
			Name: "such players and addresses", Default: maxPenalties, Unit: "remembered",
			Counter: "penalties/evicted", Full: "the oldest is let in early",
		},
		{
			Name: "seats of a full room that a player, or an address without one, keeps by dropped clients", Default: limits.Say("1/%v", heldShare),
			Unit: "of the seats of its kind, at least one", Counter: "seats/yielded", Full: "a newcomer from elsewhere gets the seat of the client that was dropped first",
		},
	}
}

func queueBounds() []limits.Limit {
	return []limits.Limit{
		{
			Name: "joins and returns of all clients", Default: maxEntering, Unit: "a tick",
			Counter: "netloop_queue_depth", Full: "they wait in order, with their messages",
		},
		{
			Name: "… by the objects of the world", Default: limits.Say("%v, or one client", enteringSlots), Unit: "objects a tick",
			Counter: "netloop_queue_depth", Full: "the same",
		},
		{
			Name: "delay buffer of a room's spectators", Default: limits.Bytes(maxReel), Unit: "a room, exceeded by one tick at most",
			Counter: "reel/full, reel/message", Full: "it takes no further tick until there is space; then the spectators see the changes, and miss the messages",
		},
		{
			Name: "deadlines that may wake a sleeping room", Default: maxInstants, Unit: "of game time, and of scaled time",
			Full: "the room does not sleep before the latest",
		},
		{
			Name: "short visits of a player, or of an address", Default: limits.Say("%v of less than %v within %v", freeVisits, shortVisit, visitMemory),
			Unit: "of game time", Full: "it catches up in the slow lane",
		},
		{
			Name: "… players and addresses of such", Default: maxVisitors, Unit: "remembered", Full: "the oldest is forgotten",
		},
		{
			Name: "acknowledgements of unsent packets, per client", Default: maxUnsentAcks, Unit: "ranges",
			Counter: "acks/never_sent", Full: "kicked (`CODE_PROTOCOL`)",
		},
		{
			Name: "posted messages", Default: maxPosts, Unit: "messages; none once the room has ended",
			Counter: "post/full, post/closed", Full: "`ErrBusy`, `*Closed`",
		},
		{
			Name: "messages that a room sends to others", Default: limits.Say("%v, and %v", maxMails, limits.Bytes(maxMailBytes)), Unit: "a tick",
			Counter: "room_message/too_many", Full: "not sent; the sender gets `CodeBusy`",
		},
		{
			Name: "messages of rooms that wait for a room, or for the program", Default: limits.Say("%v, of one room %v, and %v of all", maxLetters, lettersEach, limits.Bytes(maxWaiting)), Unit: "encoded; none once it has ended",
			Counter: "room_message/queue_full, room_message/room_gone", Full: "not sent; the sender gets `CodeBusy`, `CodeRoomUnknown`",
		},
		{
			Name: "work given to `Go`, and messages to rooms of which something waits for the end", Default: maxAsync, Unit: "under way",
			Counter: "async/full", Full: "`ErrTooMuchWork`",
		},
	}
}

func stateBounds() []limits.Limit {
	return []limits.Limit{
		{
			Name: "budget for records that a client saves up", Default: limits.Say("%v, or the time of two snapshots", budgetTicks), Unit: "ticks",
			Counter: `netloop_snapshot_records_waited_total{reason="budget"}`, Full: "no more is saved",
		},
		{
			Name: "digests, per client", Default: limits.Say("one request in %v, of %v snapshots", askEvery, maxDigests), Unit: "of game time",
			Counter: "digest/too_often", Full: "not granted",
		},
		{
			Name:    "full states, per client",
			Default: limits.Say("one request in %v, then in %v, up to %v", askEvery, 2*askEvery, askSeldom),
			Unit:    "of game time; the gap halves after a quiet one", Counter: "full_state/too_often", Full: "not granted",
		},
		{
			Name: "snapshots that a view may be of", Default: limits.Say("those of the last %v ticks that the client has", netvar.Horizon),
			Counter: `netloop_views_total{outcome="unseen"}, netloop_views_total{outcome="apart"}`, Full: "the nearest view that can be true counts",
		},
		{
			Name: "how a client's view moves against game time", Default: limits.Say("within %v; beyond that one part in %v of the time, saved up to %v", viewBand, jumpShare, maxJump),
			Counter: `netloop_views_total{outcome="jumped"}`, Full: "the nearest view that can be true counts",
		},
		{
			Name: "full states, all clients", Default: maxFulls, Unit: "a tick", Full: "they wait, in the order of asking",
		},
	}
}

func answerBounds() []limits.Limit {
	return []limits.Limit{
		{
			Name: "answers to calls that reach no handler", Default: maxRefusals, Unit: "per client and tick",
			Counter: "rpc/unanswered", Full: "not answered",
		},
	}
}

func operationBounds() []limits.Limit {
	return []limits.Limit{
		{
			Name: "lines of the log about stalls", Default: limits.Say("one each, one in %v while it lasts; %v clients by name", stallLongest, stallNames),
			Unit: "of game time", Counter: "netloop_dropped_ticks_total", Full: "added up",
		},
		{
			Name: "questions for `/loop` and `/explain`", Default: limits.Say("%v at once; %v of a tick on average", maxQuestions, questionTime),
			Unit: "questions", Full: "answered 503; a loop of many systems is described over several ticks",
		},
	}
}
