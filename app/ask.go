package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/netloop/netloop/internal/admin"
)

// The limits of reading from an admin listener, which may belong to another server: an answer
// arrives with the next tick, and describes at most some thousand systems.
const (
	viewTimeout = 10 * time.Second
	maxView     = 64 << 20
)

// adminFlags are the flags that select the running server to which a command sends its request.
type adminFlags struct {
	address string
	tokens  string
	flag    string // by which the address was given; "" is admin
}

// name returns the flag of the address.
func (f *adminFlags) name() string { return "--" + cmp.Or(f.flag, "admin") }

func (f *adminFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "admin", "", "admin address of a running server, host:port or a URL")
	flags.StringVar(&f.tokens, "admin-token-file", "", "file with a token for --admin, as the server's")
}

// url returns the URL of a server's page. The flag may be a URL or only a host and port.
func (f *adminFlags) url(page string, query url.Values) (*url.URL, error) {
	full := f.address
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	at, err := url.Parse(full)
	if err != nil || !hostPort(f.address) && full != f.address || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("%s: %q is not the address of an admin listener: use host:port or a URL, for instance http://127.0.0.1:8080", f.name(), f.address)
	}
	at = at.JoinPath(page)
	at.RawQuery = query.Encode()
	return at, nil
}

// open requests a page, and returns an answer of status OK, and the page's URL for messages. With a
// file of tokens it sends one of the tokens, of the write role unless the method is GET.
func (f *adminFlags) open(ctx context.Context, method, page string, query url.Values) (resp *http.Response, from string, err error) {
	at, err := f.url(page, query)
	if err != nil {
		return nil, "", err
	}
	token := ""
	if f.tokens != "" {
		if token, err = admin.ReadToken(f.tokens, method != http.MethodGet); err != nil {
			return nil, "", fmt.Errorf("--admin-token-file: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", f.name(), err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		return nil, "", &failure{fmt.Errorf("%s: no answer: %w: give the address that the server prints as its admin listener", f.name(), err)}
	}
	if answer.StatusCode != http.StatusOK {
		defer func() { _ = answer.Body.Close() }() // It is only read.
		body, _ := io.ReadAll(io.LimitReader(answer.Body, maxView))
		said, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
		return nil, "", &failure{fmt.Errorf("%s: %s says %s: %.200s", f.name(), at.Redacted(), answer.Status, said)}
	}
	return answer, at.Redacted(), nil
}

// ask returns the server's answer for a page, and the page's URL for messages.
func (f *adminFlags) ask(ctx context.Context, method, page string, query url.Values) (body []byte, from string, err error) {
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	resp, from, err := f.open(ctx, method, page, query)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }() // It was only read.
	if body, err = io.ReadAll(io.LimitReader(resp.Body, maxView)); err != nil {
		return nil, "", &failure{fmt.Errorf("%s: %s: %w", f.name(), from, err)}
	}
	return body, from, nil
}

// errNoAdmin is the error of a command that needs a running server if --admin is missing.
var errNoAdmin = errors.New("--admin is missing: give the admin address of a running server, for instance --admin 127.0.0.1:8080")
