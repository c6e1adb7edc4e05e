// Package rpcqueue holds the messages of a room or a client from their arrival to the stage that
// runs them.
//
// # The flow of one message
//
//	Push      from the poll, or from a handler or system: the message is checked,
//	          in this order; one that fails is counted and affects no other
//	            the limit of its sender          ClientLimited
//	            the method                       UnknownMethod
//	            the stage                        UnknownStage, StageNotAllowed
//	            a handler                        NoHandler
//	            the sender's limit of the method MethodLimited, TickLimited
//	            too late, with LateDrop          LateDropped
//	            room in the queue                Full
//	queue     one FIFO per stage, which persists across ticks
//	Drain     runs the messages queued when it began, or as many as its budget
//	          allows, with the handlers of their methods; a panic or an error
//	          affects that message only
//
// # Invariants
//
//   - The stage of a message is a request. The method allows some; the first is its default, and
//     Update if it names none.
//   - Only Drain and Forget remove a message from a queue. If a stage does not run in a tick
//     (FixedUpdate with 0 steps), its queue is unchanged.
//   - A message for a stage that has already run this tick is late: it runs in the next tick, or is
//     dropped if its method has LateDrop, and is counted either way.
//   - A drain runs only the messages queued when it began. A message that a handler queues for its
//     own stage is not late; it runs in the next tick.
//   - Every message is counted exactly once at its end: Accepted + Late = Ran + Failed + Panicked +
//     Forbidden + Invalid + NotOwner + ClientGone + queued, and pushed = Accepted + Late + every
//     other outcome of Push.
//   - Messages of one sender for one stage run in the order of arrival. When a budget cuts a drain
//     short, every sender gets an equal share of it: of its messages, and of its time, by the
//     prices of the messages.
//   - The selection of messages depends on Push, Begin, SetPrices and Drain alone. Measured times
//     are passed to a Tariff, and return as SetPrices if the owner of the queue calls it.
//
// Only one goroutine may use a queue. It decodes no messages, and its only time is the game time
// passed to Begin.
package rpcqueue
