package schema

import (
	"errors"
	"strings"
	"testing"

	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A protobuf message is in the tables by its name alone, and matches if it has the same name on
// both sides: protobuf itself accepts other fields.
func TestAProtobufMessageIsKnownByItsName(t *testing.T) {
	s := New("chat", 1, 0)
	in, err := NewCodec[*arenav1.Said]()
	if err != nil {
		t.Fatal(err)
	}
	m := NewMethod(s, "said", in, false)
	if err := m.Settle(nil); err != nil {
		t.Fatal(err)
	}
	s.Claim("method", "said")
	s.AddMethod(m)
	s.Freeze()

	said := &netloopv1.Type{Kind: netloopv1.TypeKind_TYPE_KIND_PROTO, Proto: "arena.v1.Said"}
	if got := s.tables().GetMethods()[0].GetMessage(); got.String() != said.String() {
		t.Errorf("the table says %v, want %v", got, said)
	}
	for refused, there := range map[string]*netloopv1.Type{
		"": said,
		"is proto p.M on the server, but proto arena.v1.Said on the client": {Kind: netloopv1.TypeKind_TYPE_KIND_PROTO, Proto: "p.M"},
		"on the server, but proto arena.v1.Said on the client":              {Kind: netloopv1.TypeKind_TYPE_KIND_STRUCT},
	} {
		tables := s.tables()
		tables.Methods[0].Message = there
		f, err := s.Adapt(tables)
		var refusal *transport.Refusal
		switch {
		case refused == "":
			if err != nil || f.byOwn[0].in.Name != in.Name {
				t.Errorf("of the same name: %v", err)
			}
		case !errors.As(err, &refusal) || !strings.Contains(refusal.Text, refused):
			t.Errorf("the error is %v, want %s", err, refused)
		}
	}
}
