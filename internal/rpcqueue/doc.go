// Package rpcqueue holds the messages of a room or a client between the moment
// at which they arrive and the stage at which they run.
//
// # The flow of one message
//
//	Push      from the poll, or from a handler or system: the message is checked,
//	          in this order; one that fails is counted and touches no other
//	            what its sender may push in all  ClientLimited
//	            the method                       UnknownMethod
//	            the stage                        UnknownStage, StageNotAllowed
//	            a handler                        NoHandler
//	            what its sender may push of it   MethodLimited, TickLimited
//	            too late, if it minds            LateDropped
//	            room in the queue                Full
//	queue     one FIFO per stage, which persists across ticks
//	Drain     takes what was queued when it began, or as much of it as its budget
//	          allows, and hands each message to the handler of its method; a panic
//	          or an error costs that message only
//
// # What holds
//
//   - The stage of a message is a wish. The method allows some; the first is its
//     default, and Update if it names none.
//   - Nothing but Drain and Forget takes a message out of a queue. A stage that
//     does not run in a tick (FixedUpdate with 0 steps) keeps what it has.
//   - A message whose stage has already run this tick is late: it runs in the
//     next tick, or is dropped if its method says so, and is counted either way.
//   - A drain takes only what was queued when it began. A handler that queues
//     for its own stage is not late; it runs in the next tick.
//   - Every message ends in exactly one count:
//     Accepted + Late = Ran + Failed + Panicked + Forbidden + Invalid + NotOwner +
//     ClientGone + queued, and pushed = Accepted + Late + every other outcome of
//     Push.
//   - Messages of one sender for one stage run in the order in which they came.
//     When a budget cuts a drain short, every sender gets an equal share of it:
//     of its messages, and of its time, by the prices of the messages.
//   - What runs follows from Push, Begin, SetPrices and Drain alone. What messages
//     have taken goes to a Tariff, and comes back as SetPrices if its owner wants.
//
// A queue is owned by one goroutine, decodes nothing, and knows no time but that
// of the game, which Begin tells.
package rpcqueue
