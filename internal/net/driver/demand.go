package driver

import "sync"

// onDemand runs work on a goroutine that exists only while there is work. Any goroutine may call
// ask. work runs at least once after each call, and never twice at the same time.
type onDemand struct {
	work func() bool // reports false when it must not run again

	mu      sync.Mutex
	running bool
	again   bool // ask was called while work ran
	done    bool // work must not run again
	left    sync.WaitGroup
}

// ask starts work, or makes it run again. It never blocks.
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

// goesOn reports whether to run work again.
func (d *onDemand) goesOn(more bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = d.done || !more
	d.running = d.again && !d.done
	d.again = false
	return d.running
}

// stop cancels a pending run and waits for a running one.
func (d *onDemand) stop() {
	d.mu.Lock()
	d.done = true
	d.mu.Unlock()
	d.left.Wait()
}
