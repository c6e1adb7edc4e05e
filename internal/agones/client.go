package agones

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// requestTime is the limit of a request. The sidecar is on the same machine, and answers from
	// its memory.
	requestTime = 2 * time.Second
	// watchTime is the limit of a watch: a new one begins with the present state. A watch costs the
	// sidecar a goroutine that outlives it, so that they are few.
	watchTime = 10 * time.Minute
	// maxAnswer is the limit of an answer, and of a message of a watch: a GameServer has at most
	// 256 KiB of annotations, and lists of 1 000 values.
	maxAnswer = 1 << 20
	// maxHeader is the limit of the headers of an answer.
	maxHeader = 16 << 10
	// maxReason is the number of bytes of a refusal that errors quote.
	maxReason = 200
)

// client sends requests to the sidecar. Any goroutine may use it.
type client struct {
	base string
	http *http.Client
}

// newClient returns a client of the sidecar on a port of this machine. dial is nil, except in
// tests.
func newClient(port int, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *client {
	return &client{
		base: "http://localhost:" + strconv.Itoa(port),
		http: &http.Client{
			Transport: &http.Transport{ // Without a proxy.
				DialContext: dial, ResponseHeaderTimeout: requestTime, MaxResponseHeaderBytes: maxHeader,
				DisableCompression: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// send sends a request with a body in JSON, and returns the answer. A nil body is none.
func (c *client) send(ctx context.Context, method, path string, body any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	r, err := c.open(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	answer, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("%s: the answer is larger than %d bytes", path, maxAnswer)
	}
	return answer, nil
}

// open sends a request, and returns the body of a positive answer, which the caller closes.
func (c *client) open(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			// Without the method and the URL, which path repeats.
			err = failed.Err
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer func() { _ = resp.Body.Close() }()
		return nil, refusal(path, resp)
	}
	return resp.Body, nil
}

// refusal returns an error with the status and the message of a negative answer.
func refusal(path string, resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4*maxReason)) // Only for the message.
	var answer struct{ Message string }
	if json.Unmarshal(text, &answer) == nil && answer.Message != "" {
		text = []byte(answer.Message)
	}
	return fmt.Errorf("%s: answer %d: %.*q", path, resp.StatusCode, maxReason, text)
}

// empty is the body of requests without data. The sidecar refuses an empty health request without
// a body.
type empty struct{}

// post sends a request without data.
func (c *client) post(ctx context.Context, path string) error {
	_, err := c.send(ctx, http.MethodPost, path, empty{})
	return err
}

// keyValue is a label or an annotation. Agones puts agones.dev/sdk- before the key.
type keyValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// setMetadata sets a label or an annotation: kind is label or annotation.
func (c *client) setMetadata(ctx context.Context, kind string, kv keyValue) error {
	_, err := c.send(ctx, http.MethodPut, "/metadata/"+kind, kv)
	return err
}

// setCounter sets the count of a counter. Its capacity is that of the fleet.
func (c *client) setCounter(ctx context.Context, name string, count int64) error {
	_, err := c.send(ctx, http.MethodPatch, "/v1beta1/counters/"+name, struct {
		Count string `json:"count"`
	}{strconv.FormatInt(count, 10)})
	return err
}

// setList replaces the values of a list. Its capacity is that of the fleet.
func (c *client) setList(ctx context.Context, name string, values []string) error {
	_, err := c.send(ctx, http.MethodPatch, "/v1beta1/lists/"+name, struct {
		Values []string `json:"values"`
	}{values})
	return err
}

// gameServer requests the present GameServer.
func (c *client) gameServer(ctx context.Context) (*gameServer, error) {
	answer, err := c.send(ctx, http.MethodGet, "/gameserver", nil)
	if err != nil {
		return nil, err
	}
	g, err := decodeGameServer(answer)
	if err != nil {
		return nil, fmt.Errorf("/gameserver: %w", err)
	}
	return g, nil
}

var errSilent = fmt.Errorf("no GameServer arrived within %v", requestTime)

// watch calls saw with the present GameServer and each later one, until the sidecar or ctx ends it,
// and after watchTime. It returns an error with the reason, nil only after watchTime.
func (c *client) watch(ctx context.Context, saw func(*gameServer)) error {
	const path = "/watch/gameserver"
	limited, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	limited, end := context.WithCancelCause(limited)
	defer end(nil)
	first := time.AfterFunc(requestTime, func() { end(errSilent) })
	defer first.Stop()
	r, err := c.open(limited, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		first.Stop()
		g, err := decodeWatched(lines.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		saw(g)
	}
	err = lines.Err()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(limited), errSilent):
		err = errSilent
	case limited.Err() != nil:
		return nil
	case err == nil:
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%s: %w", path, err)
}
