package nats

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

const (
	// maxMessage is the limit of a message, below the 1 MiB that NATS permits by default.
	maxMessage = 512 << 10
	// partSize is the size at which a message about a board is full: one more entry fits.
	partSize = 256 << 10
	// maxPart is the limit of rooms in a message.
	maxPart = 4096
	// recursionLimit is the depth of nested messages.
	recursionLimit = 8
)

var errMessage = errors.New("cluster/nats: malformed message")

// decode reads a message of another server.
func decode(data []byte, m proto.Message) error {
	if len(data) > maxMessage {
		return fmt.Errorf("%w: %d bytes", errMessage, len(data))
	}
	o := proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: recursionLimit}
	if err := o.Unmarshal(data, m); err != nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}
	return nil
}

// encode writes a message, which this server has checked.
func encode(m proto.Message) []byte {
	data, err := proto.Marshal(m)
	if err != nil { // Only for texts that are not UTF-8.
		panic("cluster/nats: " + err.Error())
	}
	return data
}

// decodeLease reads a heartbeat of a server, or the record of its lease.
func decodeLease(id string, data []byte) (*clusterv1.Lease, error) {
	l := &clusterv1.Lease{}
	if err := decode(data, l); err != nil {
		return nil, err
	}
	if err := serverOf(l).Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", errMessage, err)
	}
	if l.GetId() != id {
		return nil, fmt.Errorf("%w: from %s for %s", errMessage, l.GetId(), id)
	}
	return l, nil
}

// serverOf returns the server of a heartbeat.
func serverOf(l *clusterv1.Lease) cluster.Server {
	v := l.GetServer()
	s := cluster.Server{
		ID: l.GetId(), Region: v.GetRegion(), Zone: v.GetZone(), Schema: v.GetSchema(),
		Load: cluster.Load{
			Rooms: int(v.GetRooms()), MaxRooms: int(v.GetMaxRooms()), Clients: int(v.GetClients()), MaxClients: int(v.GetMaxClients()),
			Overload: int(v.GetOverload()), Draining: v.GetDraining(),
		},
	}
	for _, a := range v.GetAddresses() {
		s.Addresses = append(s.Addresses, cluster.Address{Carrier: a.GetCarrier(), Addr: a.GetAddr(), Name: a.GetName(), Hashes: a.GetHashes()})
	}
	return s
}

// serverMessage is the inverse of serverOf.
func serverMessage(s cluster.Server, l cluster.Load) *clusterv1.Server {
	v := &clusterv1.Server{
		Region: s.Region, Zone: s.Zone, Schema: s.Schema,
		Rooms: uint32(l.Rooms), MaxRooms: uint32(l.MaxRooms), Clients: uint32(l.Clients), MaxClients: uint32(l.MaxClients),
		Overload: uint32(l.Overload), Draining: l.Draining,
	}
	for _, a := range s.Addresses {
		v.Addresses = append(v.Addresses, &clusterv1.Address{Carrier: a.Carrier, Addr: a.Addr, Name: a.Name, Hashes: a.Hashes})
	}
	return v
}

// decodeName reads the record of a name.
func decodeName(data []byte) (*clusterv1.Name, error) {
	n := &clusterv1.Name{}
	if err := decode(data, n); err != nil {
		return nil, err
	}
	if cluster.CheckName(n.GetName()) != nil || n.GetHolder() != "" && (cluster.Server{ID: n.GetHolder()}).Check() != nil || n.GetEpoch() >= 1<<63 {
		return nil, errMessage
	}
	return n, nil
}

// decodeChanges reads changes of a server's board.
func decodeChanges(id string, data []byte) (*clusterv1.Changes, error) {
	c := &clusterv1.Changes{}
	if err := decode(data, c); err != nil {
		return nil, err
	}
	if c.GetTo() <= c.GetFrom() || c.GetId() != id {
		return nil, errMessage
	}
	return c, checkRooms(c.GetRooms())
}

// decodeDirect reads a message to this server.
func decodeDirect(data []byte) (*clusterv1.Direct, error) {
	d := &clusterv1.Direct{}
	if err := decode(data, d); err != nil {
		return nil, err
	}
	call, answer := d.GetCall(), d.GetAnswer()
	switch {
	case (cluster.Server{ID: d.GetFrom()}).Check() != nil,
		max(len(call.GetId()), len(call.GetMethod()), len(answer.GetId()), len(answer.GetText())) > cluster.MaxText,
		max(len(call.GetBody()), len(answer.GetBody())) > cluster.MaxBody,
		call.GetTimeout() < 0 || call.GetTimeout() > int64(cluster.MaxCallTime):
		return nil, errMessage
	}
	return d, checkRooms(d.GetPart().GetRooms())
}

func checkRooms(rooms []*clusterv1.Room) error {
	if len(rooms) > maxPart {
		return errMessage
	}
	for _, r := range rooms {
		if cluster.CheckName(r.GetName()) != nil || len(r.GetEntry()) > cluster.MaxEntry {
			return errMessage
		}
	}
	return nil
}

// hashOf returns the end of a name's subject: a name may have any bytes.
func hashOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// answerOf converts an answer of a handler.
func answerOf(id string, body []byte, err error) *clusterv1.Answer {
	a := &clusterv1.Answer{Id: id, Body: body}
	switch {
	case err == nil:
	case errors.Is(err, cluster.ErrBusy):
		a.Error = clusterv1.Error_ERROR_BUSY
	case errors.Is(err, cluster.ErrTaken):
		a.Error = clusterv1.Error_ERROR_TAKEN
	case errors.Is(err, cluster.ErrGone):
		a.Error = clusterv1.Error_ERROR_GONE
	default:
		a.Error, a.Text = clusterv1.Error_ERROR_TEXT, err.Error()
	}
	return a
}

// errorOf is the inverse of answerOf.
func errorOf(a *clusterv1.Answer) error {
	switch a.GetError() {
	case clusterv1.Error_ERROR_UNSPECIFIED:
		return nil
	case clusterv1.Error_ERROR_BUSY:
		return cluster.ErrBusy
	case clusterv1.Error_ERROR_TAKEN:
		return cluster.ErrTaken
	case clusterv1.Error_ERROR_GONE:
		return cluster.ErrGone
	}
	return errors.New(a.GetText())
}
