package driver

import "sync"

// onDemand runs work on a goroutine that there is only while there is work. Many may ask at once;
// the work runs at least once after each, and never twice at the same time.
type onDemand struct {
	work func() bool // reports false when there is never anything to do any more

	mu      sync.Mutex
	running bool
	again   bool // asked for while it ran
	done    bool // there will be no more
	left    sync.WaitGroup
}

// ask lets the work run. It never waits.
func (d *onDemand) ask() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.done:
	case d.running:
		d.again = true
	default:
		d.running = true
		d.left.Go(d.run)
	}
}

func (d *onDemand) run() {
	for d.goesOn(d.work()) {
	}
}

// goesOn reports whether the work is to run once more.
func (d *onDemand) goesOn(more bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = d.done || !more
	d.running = d.again && !d.done
	d.again = false
	return d.running
}

// stop ends what is still asked for, and waits for what runs.
func (d *onDemand) stop() {
	d.mu.Lock()
	d.done = true
	d.mu.Unlock()
	d.left.Wait()
}
