package loop

import "time"

// SetSteps sets a timeline for fixed steps, from the next Step on: each fixed step then shows the
// tick of this timeline that runs it, with that tick's game time and scaled time. It is for the
// loop of a client, whose frame may run the steps of several ticks of its server, before or after
// the frame's own time. Without it, and with the zero Timeline, steps belong to the running tick,
// as on a server.
func (l *Loop[C]) SetSteps(t Timeline) { l.steps = t }

// fixed runs FixedUpdate: the Once systems once, and then all other systems in each step.
func (l *Loop[C]) fixed(in *Input) {
	if in.FixedSteps <= 0 {
		return
	}
	ofTick := l.delta
	l.beginStep(in, 0)
	l.stage(FixedUpdate, &l.lists[onceList])
	for i := 0; i < in.FixedSteps && l.err == nil; i++ {
		if i > 0 {
			l.beginStep(in, i)
		}
		l.stepPasses(in)
		l.collect(perStep)
		l.stage(FixedUpdate, &l.lists[FixedUpdate.list()])
	}
	l.show(ofTick)
	l.showTick(in.Tick, in.GameTime)
	l.now.FixedStep = in.FirstFixedStep + uint64(in.FixedSteps) - 1
}

// beginStep writes the state that all calls of a fixed step see. The Once systems, which run before
// the steps, see the state of the first step.
func (l *Loop[C]) beginStep(in *Input, i int) {
	l.show(moment{in.FixedDelta, l.kinds[perStep].advance(in.FixedDelta)})
	l.now.FixedStep = in.FirstFixedStep + uint64(i)
	if l.steps.Rate.Num != 0 {
		tick := l.steps.StepTick(l.now.FixedStep)
		l.showTick(tick, l.steps.GameTime(tick))
	}
}

// showTick writes the tick that calls see, and its time on both clocks.
func (l *Loop[C]) showTick(tick uint64, game time.Duration) {
	l.now.Tick, l.now.GameTime, l.now.ScaledTime = tick, game, l.scale.At(game)
}
