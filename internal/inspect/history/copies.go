package history

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/netloop/netloop/internal/admin"
)

const (
	// maxCopies bounds the copies of kept ticks: each is what one operator looks at.
	maxCopies = 4
	// maxCopied bounds their bytes together, except that the newest copy is always kept.
	maxCopied = maxKept
)

// Copies are copies of the kept ticks of rooms, each with a number of its own. A new copy ends the
// oldest one if there are too many. Any goroutine may use it.
type Copies struct {
	taking sync.Mutex // held while a copy is made
	mu     sync.Mutex
	all    []numbered // under mu: the oldest first
	last   uint64     // under mu: the newest number
}

// numbered is a copy, which never changes.
type numbered struct {
	number uint64
	rec    *Recording
}

// bytes returns the memory of a copy.
func (n *numbered) bytes() int64 { return n.rec.cfg.Size + n.rec.store.size }

// Taken is the answer about a new copy.
type Taken struct {
	Past  uint64 `json:"past"`  // number of the copy
	First uint64 `json:"first"` // its first tick
	Last  uint64 `json:"last"`  // its last tick
}

// Take copies the ticks that a ring has now.
func (c *Copies) Take(g *Ring) (Taken, error) {
	if !c.taking.TryLock() {
		return Taken{}, refusef(http.StatusConflict, "other ticks are being copied: try again")
	}
	defer c.taking.Unlock()
	r, err := g.freeze()
	if err != nil {
		return Taken{}, err
	}
	h := r.Head()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.all = append(c.all, numbered{c.last, r})
	c.dropLocked()
	return Taken{c.last, h.First, h.Last}, nil
}

// dropLocked drops the oldest copies beyond the limits.
func (c *Copies) dropLocked() {
	sum := int64(0)
	for i := range c.all {
		sum += c.all[i].bytes()
	}
	for len(c.all) > 1 && (len(c.all) > maxCopies || sum > maxCopied) {
		sum -= c.all[0].bytes()
		c.all[0] = numbered{} // release its memory
		c.all = c.all[1:]
	}
}

// Find returns the copy that the parameter past of a query names, or the newest one.
func (c *Copies) Find(query url.Values) (*Recording, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) == 0 {
		return nil, errNone
	}
	if !query.Has("past") {
		return c.all[len(c.all)-1].rec, nil
	}
	n, err := strconv.ParseUint(query.Get("past"), 10, 64)
	if err != nil || n == 0 || n > c.last {
		return nil, refusef(http.StatusNotFound, "past: there is no copy %.40q: /api/recording/past lists them", query.Get("past"))
	}
	for i := range c.all {
		if c.all[i].number == n {
			return c.all[i].rec, nil
		}
	}
	return nil, refusef(http.StatusNotFound, "copy %d of past ticks has ended, because others were taken since: the server keeps the last %d at most", n, maxCopies)
}

// PastAnswer lists the copies of past ticks, and the ended rooms whose ticks can still be taken.
type PastAnswer struct {
	Copies []CopyRow  `json:"copies"` // the newest first
	Ended  []EndedRow `json:"ended"`  // the newest first
}

// CopyRow is a copy of past ticks.
type CopyRow struct {
	Past  uint64 `json:"past"`  // number of the copy
	Name  string `json:"name"`  // for people
	First uint64 `json:"first"` // its first tick
	Last  uint64 `json:"last"`  // its last tick
}

// EndedRow is a room that has ended.
type EndedRow struct {
	Room string `json:"room"` // its name
	Last uint64 `json:"last"` // its last tick
}

// Rows lists the copies, the newest first.
func (c *Copies) Rows() []CopyRow {
	c.mu.Lock()
	defer c.mu.Unlock()
	rows := make([]CopyRow, len(c.all))
	for i := range c.all {
		h := c.all[i].rec.Head()
		rows[len(rows)-1-i] = CopyRow{c.all[i].number, h.Name, h.First, h.Last}
	}
	return rows
}

// Export writes the copy that a query names as a file.
func (c *Copies) Export(w io.Writer, query url.Values) error {
	r, err := c.Find(query)
	if err != nil {
		return err
	}
	return r.export(w)
}

// Routes returns the pages about the copy that the parameter past of a query names.
func (c *Copies) Routes() []admin.Route {
	return answerRoutes("past=1", func(ctx context.Context, query url.Values, answer func(*Recording) (any, error)) (any, error) {
		r, err := c.Find(query)
		if err != nil {
			return nil, err
		}
		if !admin.MayWrite(ctx) {
			r = r.restricted()
		}
		return answer(r)
	})
}
