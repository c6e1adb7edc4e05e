//go:build unix

package embed_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/cluster/nats"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

const (
	crowdVariable = "NETLOOP_TEST_CROWD"
	crowdRooms    = 100
	// crowdEvery is the time between two changes of a room: a player joins or leaves.
	crowdEvery = 10 * time.Second
)

// crowdEntry returns the entry of a room with a number of players.
func crowdEntry(players int) []byte {
	data, err := proto.Marshal(&clusterv1.Entry{Kind: []byte("table"), Players: uint32(players), MaxClients: 8, Info: make([]byte, 40)})
	if err != nil {
		panic(err) // The message is valid.
	}
	return data
}

// runCrowd sends the messages of a number of servers, which listen to none: with their heartbeats
// and rooms, a member of the cluster has as much work as among that many processes.
func runCrowd(value string) error {
	count, url, _ := strings.Cut(value, " ")
	servers, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	conn, err := natsgo.Connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	publish := func(subject string, m proto.Message) {
		data, e := proto.Marshal(m)
		err = errors.Join(err, e, conn.Publish("netloop.netloop."+subject, data))
	}
	id := func(n int) string { return fmt.Sprint("crowd-", n) }
	began, beats, versions := time.Now(), make([]uint64, servers), make([]uint64, servers)
	beat := func(n int) {
		beats[n]++
		publish("lease."+id(n), &clusterv1.Lease{
			Id: id(n), Term: 1, Count: beats[n], Uptime: int64(time.Since(began)), Board: versions[n],
			Server: &clusterv1.Server{Region: "eu", Rooms: crowdRooms, MaxRooms: 1000, MaxClients: 1000, Addresses: []*clusterv1.Address{
				{Carrier: "quic", Addr: "10.0.0.7:4433"}, {Carrier: "webtransport", Addr: "https://10.0.0.7:4433/netloop"}, {Carrier: "websocket", Addr: "wss://10.0.0.7/netloop"},
			}},
		})
	}
	change := func(n int, rooms ...*clusterv1.Room) {
		publish("board."+id(n), &clusterv1.Changes{Id: id(n), From: versions[n], To: versions[n] + 1, Rooms: rooms})
		versions[n]++
	}
	name := func(n, room int) string { return fmt.Sprintf("table-%04d-%03d", n, room) }
	for n := range servers {
		beat(n)
	}
	err = errors.Join(err, conn.Flush())
	time.Sleep(time.Second) // A change of an unknown server is dropped.
	for n := range servers {
		var rooms []*clusterv1.Room
		for r := range crowdRooms {
			rooms = append(rooms, &clusterv1.Room{Name: name(n, r), Entry: crowdEntry(1)})
		}
		change(n, rooms...)
	}
	fmt.Fprintln(os.Stdout, "ready")
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	const step = 10 * time.Millisecond
	// As members do.
	interval := min(max(crowdEvery/crowdRooms, time.Duration(servers)*4*time.Millisecond), time.Second)
	changed := int(interval * crowdRooms / crowdEvery)
	for i := 1; err == nil; i++ { // Each server in turn, evenly over the time.
		for n := range servers {
			if (i+n)%int(time.Second/step) == 0 {
				beat(n)
			}
			if (i+n)%int(interval/step) == 0 {
				var rooms []*clusterv1.Room
				for k := range changed {
					rooms = append(rooms, &clusterv1.Room{Name: name(n, (i+k)%crowdRooms), Entry: crowdEntry(i % 8)})
				}
				change(n, rooms...)
			}
		}
		time.Sleep(time.Until(began.Add(time.Duration(i) * step)))
	}
	return err
}

// BenchmarkServerInACluster measures the share of a core, the memory and the bytes that a server
// with 100 rooms spends on its cluster of so many servers with 100 rooms each, of which each
// changes every 10 s. An iteration is a second. The server lists all rooms. It is compared with a
// server without a cluster.
func BenchmarkServerInACluster(b *testing.B) {
	for _, servers := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(servers, "-servers"), func(b *testing.B) { benchmarkServer(b, servers) })
	}
}

func benchmarkServer(b *testing.B, servers int) {
	p := natsProcess(b)
	open := func(c netloop.Cluster) (s *netloop.Server, stop func()) {
		s, stop = serve(b, netloop.Config{Offline: true, MaxRooms: crowdRooms + 1, Cluster: c})
		for n := range crowdRooms {
			if _, err := s.OpenRoom(b.Context(), netloop.RoomSpec{Name: fmt.Sprint("own ", n), Rate: netloop.Hz(1), Sleep: true, CloseEmpty: netloop.NeverClose}); err != nil {
				b.Fatal(err)
			}
		}
		return s, stop
	}
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc+m.StackInuse) / 1e6
	}
	spend := func(seconds int) float64 {
		cpu := cpuTime(b)
		time.Sleep(time.Duration(seconds) * time.Second)
		return 100 * (cpuTime(b) - cpu).Seconds() / float64(seconds)
	}
	_, stop := open(netloop.Cluster{})
	time.Sleep(time.Second)
	memory, alone := heap(), spend(5)
	stop()
	via, err := nats.New(nats.Config{URL: p.said})
	if err != nil {
		b.Fatal(err)
	}
	s, stop := open(netloop.Cluster{Via: via})
	defer stop()
	startProcess(b, crowdVariable, fmt.Sprint(servers-1, " ", p.said))
	last := fmt.Sprintf("table-%04d-%03d", servers-2, crowdRooms-1)
	for late := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if _, ok := s.RoomServer(last); ok {
			break
		}
		if time.Now().After(late) {
			b.Fatalf("the server does not know room %s, and has %d boards", last, len(via.Boards()))
		}
	}
	time.Sleep(2 * time.Second)
	sum, n := 0.0, 0
	for b.Loop() {
		sum += spend(1) - alone
		n++
	}
	b.ReportMetric(sum/float64(n), "%core")
	b.ReportMetric(heap()-memory, "MB")
	listener, err := natsgo.Connect(p.said)
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	if _, err := listener.Subscribe("netloop.netloop.>", func(*natsgo.Msg) {}); err != nil {
		b.Fatal(err)
	}
	spend(5)
	b.ReportMetric(float64(listener.Stats().InBytes)/5000, "kB/s")
}
