package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/netloop/netloop/cluster"
)

// A server's description is checked field by field, up to each limit.
func TestLimitsOfAServer(t *testing.T) {
	long := strings.Repeat("x", cluster.MaxText)
	of := func(a cluster.Address) cluster.Server {
		return cluster.Server{ID: "a", Addresses: []cluster.Address{{}, a}}
	}
	hashes := func(n, size int) (all [][]byte) {
		for range n {
			all = append(all, make([]byte, size))
		}
		return all
	}
	for name, c := range map[string]struct {
		server cluster.Server
		valid  bool
	}{
		"the characters of an id":    {cluster.Server{ID: "azAZ09-_"}, true},
		"a long id":                  {cluster.Server{ID: strings.Repeat("x", 64)}, true},
		"a longer id":                {cluster.Server{ID: strings.Repeat("x", 65)}, false},
		"no id":                      {cluster.Server{}, false},
		"an id with a dot":           {cluster.Server{ID: "a.b"}, false},
		"an id with a star":          {cluster.Server{ID: "a*"}, false},
		"an id in UTF-8":             {cluster.Server{ID: "é"}, false},
		"addresses":                  {cluster.Server{ID: "a", Addresses: make([]cluster.Address, cluster.MaxAddresses)}, true},
		"more addresses":             {cluster.Server{ID: "a", Addresses: make([]cluster.Address, cluster.MaxAddresses+1)}, false},
		"long texts":                 {cluster.Server{ID: "a", Region: long, Zone: long, Schema: long}, true},
		"a longer region":            {cluster.Server{ID: "a", Region: long + "x"}, false},
		"a longer zone":              {cluster.Server{ID: "a", Zone: long + "x"}, false},
		"a longer schema":            {cluster.Server{ID: "a", Schema: long + "x"}, false},
		"a region that is not UTF-8": {cluster.Server{ID: "a", Region: "\xff"}, false},
		"a long address":             {of(cluster.Address{Carrier: long, Addr: long, Name: long}), true},
		"a longer carrier":           {of(cluster.Address{Carrier: long + "x"}), false},
		"a longer address":           {of(cluster.Address{Addr: long + "x"}), false},
		"a longer name":              {of(cluster.Address{Name: long + "x"}), false},
		"hashes":                     {of(cluster.Address{Hashes: hashes(4, 32)}), true},
		"more hashes":                {of(cluster.Address{Hashes: hashes(5, 32)}), false},
		"a short hash":               {of(cluster.Address{Hashes: hashes(1, 31)}), false},
		"a long hash":                {of(cluster.Address{Hashes: hashes(1, 33)}), false},
	} {
		if err := c.server.Check(); (err == nil) != c.valid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLimitsOfNames(t *testing.T) {
	for name, valid := range map[string]bool{
		"": false, "a": true, "\xff": false,
		strings.Repeat("x", cluster.MaxName): true, strings.Repeat("x", cluster.MaxName+1): false,
	} {
		if err := cluster.CheckName(name); (err == nil) != valid {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
}

// A call gets an ID and a time unless it has them, and is checked field by field.
func TestLimitsOfCalls(t *testing.T) {
	long := strings.Repeat("x", cluster.MaxText)
	for _, c := range []struct {
		call  cluster.Call
		valid bool
	}{
		{cluster.Call{}, true},
		{cluster.Call{ID: long, Method: long, Body: make([]byte, cluster.MaxBody), Timeout: cluster.MaxCallTime}, true},
		{cluster.Call{Timeout: 1}, true},
		{cluster.Call{Timeout: -1}, false},
		{cluster.Call{Timeout: cluster.MaxCallTime + 1}, false},
		{cluster.Call{Body: make([]byte, cluster.MaxBody+1)}, false},
		{cluster.Call{ID: long + "x"}, false},
		{cluster.Call{Method: long + "x"}, false},
		{cluster.Call{Method: "\xff"}, false},
	} {
		made := 0
		got, err := c.call.Complete(func() string { made++; return "new" })
		if (err == nil) != c.valid {
			t.Errorf("a call for %v with %d bytes: %v", c.call.Timeout, len(c.call.Body), err)
		}
		if want := c.call.ID == ""; want != (got.ID == "new") || want != (made == 1) {
			t.Errorf("a call with the id %.9q gets %.9q", c.call.ID, got.ID)
		}
		if c.call.Timeout == 0 && got.Timeout != cluster.StoreTime || c.call.Timeout != 0 && got.Timeout != c.call.Timeout {
			t.Errorf("a call for %v gets %v", c.call.Timeout, got.Timeout)
		}
	}
}

// An answer arrives as it is, an error of the cluster as itself, and any other error as a bounded
// text.
func TestOutcomesOfCalls(t *testing.T) {
	for _, known := range []error{cluster.ErrBusy, cluster.ErrTaken, cluster.ErrGone} {
		body, err := cluster.Outcome([]byte("x"), fmt.Errorf("so: %w", known))
		if body != nil || err != known { //nolint:errorlint // It is the value itself.
			t.Errorf("%q, %v, want %v", body, err, known)
		}
	}
	own := errors.New("é" + strings.Repeat("x", cluster.MaxText-3) + "éx")
	if body, err := cluster.Outcome([]byte("x"), own); body != nil || errors.Is(err, own) || err.Error() != "é"+strings.Repeat("x", cluster.MaxText-3) {
		t.Errorf("%q, %v", body, err)
	}
	if body, err := cluster.Outcome(make([]byte, cluster.MaxBody), nil); len(body) != cluster.MaxBody || err != nil {
		t.Errorf("the largest answer: %d bytes, %v", len(body), err)
	}
	if body, err := cluster.Outcome(make([]byte, cluster.MaxBody+1), nil); body != nil || err == nil {
		t.Errorf("a larger answer: %d bytes, %v", len(body), err)
	}
}
