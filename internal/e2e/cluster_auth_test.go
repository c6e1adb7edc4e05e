package e2e_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/token"
	"github.com/netloop/netloop/netlooptest"
)

// A token is accepted by one server of a cluster, once. While the cluster does not answer, a server
// refuses players with tokens as busy, or accepts each token once by itself: Cluster.LocalTokens.
func TestATokenIsUsedOnceInACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, auth := login(t)
		b := newClusterBed(t)
		server := func(id string, local bool) *clusterServer {
			return b.serverOf(id, schema, still, netlooptest.Auth(auth), netlooptest.Configure(func(c *netloop.Config) { c.Cluster.LocalTokens = local }))
		}
		x, y, local := server("x", false), server("y", false), server("local", true)
		b.step(10)
		at := now(x.World)
		grant := func() string {
			return signedToken(t, service, token.Grant{Subject: "anna", From: at, For: time.Minute})
		}
		join := func(s *clusterServer, text string) netloop.Code {
			c := s.Join(text, nil, netlooptest.Link{})
			b.step(10)
			if why := c.Closed(); why != nil {
				return why.Code
			}
			if c.State().Phase != client.Playing {
				t.Errorf("a client is %v", c.State().Phase)
			}
			return 0
		}
		first := grant()
		if code := join(x, first); code != 0 {
			t.Fatalf("at the first server: %v", code)
		}
		for _, s := range []*clusterServer{x, y, local} {
			if code := join(s, first); code != netloop.CodeUnauthenticated {
				t.Errorf("a used token: %v", code)
			}
		}
		b.hub.StoreGone(true)
		b.step(60 * 15)
		late := grant()
		if code := join(x, late); code != netloop.CodeBusy {
			t.Errorf("without the cluster: %v", code)
		}
		if code := join(local, late); code != 0 {
			t.Errorf("with LocalTokens: %v", code)
		}
		if code := join(local, late); code != netloop.CodeUnauthenticated {
			t.Errorf("again with LocalTokens: %v", code)
		}
		b.hub.StoreGone(false)
		b.step(60)
		if code := join(y, grant()); code != 0 {
			t.Errorf("after the return of the cluster: %v", code)
		}
	})
}
