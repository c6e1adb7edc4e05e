package room

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/transport"
)

// maxCommands bounds the commands that wait for a tick. People send commands, one at a time.
// maxArrivals bounds those of other servers: one for each client that has moved there.
const (
	maxCommands = 16
	maxArrivals = 1024
)

// Commands are the operator's commands to a room. A command is an outside fact: transport.poll
// executes it, and a recording contains it.
type Commands struct {
	*core
	room    *Room
	mu      sync.Mutex
	waiting []command // under mu
}

// command is a command and the channel for its outcome. The channel is nil in a replay.
type command struct {
	recording.Command
	done chan<- error
}

// Execute passes a command to the next tick, and returns its error. It also returns an error if
// maxCommands commands wait already, or if ctx ends first. Any goroutine may call it.
func (c *Commands) Execute(ctx context.Context, cmd recording.Command) error {
	done := make(chan error, 1) // Size 1: a caller that no longer waits does not block the tick.
	c.mu.Lock()
	limit := maxCommands
	if cmd.Kind == recording.Arrived {
		limit = maxArrivals
	}
	if c.countLocked(cmd.Kind == recording.Arrived) >= limit {
		c.mu.Unlock()
		return errors.New("too many commands wait: try again")
	}
	c.waiting = append(c.waiting, command{cmd, done})
	c.mu.Unlock()
	c.Sleep.rouse()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.New("no tick ended meanwhile: the command may still be executed")
	}
}

// countLocked returns the number of waiting arrivals, or of all other waiting commands.
func (c *Commands) countLocked(arrivals bool) (n int) {
	for i := range c.waiting {
		if (c.waiting[i].Kind == recording.Arrived) == arrivals {
			n++
		}
	}
	return n
}

// some reports whether a command waits. Any goroutine may call it.
func (c *Commands) some() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) > 0
}

// take removes and returns the waiting commands.
func (c *Commands) take() []command {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.waiting
	c.waiting = nil
	return all
}

// deliver executes the commands of the tick.
func (c *Commands) deliver() {
	for _, cmd := range c.source.commands() {
		err := c.execute(cmd.Command)
		if cmd.done != nil {
			cmd.done <- err
		}
	}
}

func (c *Commands) execute(cmd recording.Command) error {
	switch cmd.Kind {
	case recording.Kick:
		client, ok := c.clients.get(cmd.Client)
		if !ok {
			return fmt.Errorf("there is no client %d", cmd.Client)
		}
		client.Kick(transport.Code(cmd.Code), cmd.Text)
		return nil
	case recording.Disable, recording.Enable:
		return c.loop.SetDisabled(cmd.System, cmd.Kind == recording.Disable)
	case recording.Lock, recording.Unlock:
		c.room.Admission.Lock(cmd.Kind == recording.Lock)
		return nil
	case recording.NameLost:
		c.game.NameLost()
		return nil
	case recording.Arrived:
		return c.room.connections.arrived(cmd.Client, cmd.Text)
	}
	return fmt.Errorf("there is no command %d", cmd.Kind)
}
