package netlooptest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// robot has a field of each kind that cases can have.
type robot struct {
	X     float32 `net:"quant=1/8"`
	Heat  float64 `net:"quant=0.1,range=-20:90"`
	Far   float64
	Exact float32
	Arm   struct{ Joint, Grip float32 } `net:"name=Limb"`
	Legs  [2]struct{ X int16 }
	Rot   [4]float32 `net:"quat=10"`
	Turns uint8
	Total int64
	Step  uint64
	Ready netloop.Deadline
	Slow  netloop.Deadline
	Name  string `net:"max=16"`
	Key   []byte
	Hash  [3]byte
	Mate  netloop.Ref[robot]
	Bag   []item           `net:"max=4"`
	Path  []int16          `net:"max=4"`
	Ammo  map[string]int32 `net:"max=4"`
	Seen  map[uint16]struct{}
	Mind  int `net:"-"`
}

type item struct {
	ID   uint16
	At   [2]float32
	Used netloop.Deadline
}

type sign struct{ Text *wrapperspb.StringValue }

type lever struct {
	By   float32 `net:"quant=1/4"`
	Load bool
}

var (
	factory = netloop.NewSchema("factory", 1, 0)
	robots  = netloop.NewClass[robot](factory, "robot", netloop.Predicted())
	screws  = netloop.NewClass[item](factory, "screw", netloop.Predicted())
	bolts   = netloop.NewClass[item](factory, "bolt")
	signs   = netloop.NewClass[sign](factory, "sign", netloop.Predicted())
	levers  = netloop.NewInput[lever](factory, nil)
)

// step uses every clock of a Tick. stepRobot of clients/ts/test/vectors.test.ts is its copy.
func (r *robot) step(t *netloop.Tick, in lever) {
	r.X += in.By
	r.Heat += 0.07
	r.Far *= 1.5
	r.Exact += float32(t.Delta().Seconds()) * in.By
	r.Arm.Grip += 0.1
	r.Legs[1].X -= 30000
	r.Turns += 100
	r.Total -= 1 << 40
	r.Step = t.FixedStep()<<20 | t.Number()
	if !in.Load || !r.Ready.Passed(t) {
		return
	}
	r.Ready = t.In(50 * time.Millisecond)
	r.Slow = t.InScaled(time.Second)
	r.Name += "é"
	r.Bag = append(r.Bag, item{ID: uint16(len(r.Bag)), At: [2]float32{r.X, 1}, Used: t.In(time.Duration(1-len(r.Bag)) * 600 * time.Millisecond)})
	r.Path = append(r.Path, int16(len(r.Bag)))
	r.Ammo[fmt.Sprint(len(r.Bag))]++
	r.Seen[uint16(len(r.Bag))] = struct{}{}
}

func start(r *rand.Rand, i int, s *robot) lever {
	if i%20 == 0 {
		*s = robot{
			Far: 1e300, Rot: [4]float32{0, 0, 0, 1}, Total: math.MinInt64 + 1<<41, Name: "bob", Key: []byte{1, 2, 255}, Hash: [3]byte{9, 8, 7}, Mind: 1,
			Ammo: map[string]int32{"1": 7}, Seen: map[uint16]struct{}{50: {}}, Exact: r.Float32(),
		}
	}
	return lever{By: r.Float32()*4 - 2, Load: i%20 < 4}
}

// The file is that of clients/ts/test/vectors.test.ts, which runs the cases in TypeScript.
func TestVectorsHaveEachKindOfField(t *testing.T) {
	rates := netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(20), FixedRate: netloop.Rate{Num: 30000, Den: 1001}})
	netlooptest.Vectors(t, "../clients/ts/test/vectors.json", 40, robots, levers, (*robot).step, start, rates)
}

// A changed step function, or another seed, fails the test until the file is written anew.
func TestVectorsFailUntilTheFileIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "robot.json")
	run := func(step func(*robot, *netloop.Tick, lever), o ...netlooptest.Option) string {
		rec := &failureRecorder{TB: t}
		netlooptest.Vectors(rec, file, 40, robots, levers, step, start, o...)
		return strings.Join(rec.failures, "\n")
	}
	if got := run((*robot).step); !strings.Contains(got, "no such file") || !strings.Contains(got, "NETLOOP_REWRITE=1 go test -run '^"+t.Name()+"$'") {
		t.Errorf("without a file: %q", got)
	}
	t.Setenv("NETLOOP_REWRITE", "1")
	if got := run((*robot).step); got != "" {
		t.Fatal(got)
	}
	t.Setenv("NETLOOP_REWRITE", "")
	if got := run((*robot).step); got != "" {
		t.Errorf("the same cases: %q", got)
	}
	if b, err := os.ReadFile(file); err != nil || strings.Count(string(b), "\n") != 42 || strings.Count(string(b), `"state"`) != 2 {
		t.Errorf("the file has not a line for each case and the two starts: %v\n%s", err, b)
	}
	if got := run((*robot).step, netlooptest.Seed(7)); !strings.Contains(got, "robot.json has others") {
		t.Errorf("another seed: %q", got)
	}
	changed := func(r *robot, t *netloop.Tick, in lever) {
		r.step(t, in)
		r.Turns++
	}
	if got := run(changed); !strings.Contains(got, "the step function or its cases have changed") {
		t.Errorf("another step: %q", got)
	}
}

// The cases have the objects that a step spawns, in their order.
func TestSpawnVectorsHaveTheSpawns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spawns.json")
	t.Setenv("NETLOOP_REWRITE", "1")
	netlooptest.SpawnVectors(t, file, 2, robots, levers, func(r *robot, t *netloop.Tick, in lever, spawns *netlooptest.Spawns) {
		if in.Load {
			netlooptest.AddSpawn(spawns, screws, item{ID: 7, Used: t.In(time.Second)})
			netlooptest.AddSpawn(spawns, robots, *r)
		}
	}, func(_ *rand.Rand, i int, _ *robot) lever { return lever{Load: i == 1} })
	text, err := os.ReadFile(file)
	lines := strings.Split(string(text), "\n")
	if err != nil || strings.Contains(lines[1], "spawns") || !strings.Contains(lines[2], `"spawns":[{"class":"screw","state":{"ID":7,`) ||
		!strings.Contains(lines[2], `},{"class":"robot","state":{"X":`) {
		t.Errorf("%v\n%s", err, text)
	}
}

// fatalRecorder is a test that records the text with which it ends.
type fatalRecorder struct {
	testing.TB
	text string
}

func (l *fatalRecorder) Fatalf(format string, a ...any) {
	l.text = fmt.Sprintf(format, a...)
	runtime.Goexit()
}

// A class that clients may not predict has no step of a page, and is not spawned by one.
func TestVectorsNeedAPredictedClass(t *testing.T) {
	const predicted = `: class "bolt" is not declared as predicted: add netloop.Predicted()`
	for want, run := range map[string]func(testing.TB){
		`Vectors: class "sign" has a protobuf message`: func(tb testing.TB) {
			netlooptest.Vectors(tb, "unused", 1, signs, levers, func(*sign, *netloop.Tick, lever) {}, func(*rand.Rand, int, *sign) lever { return lever{} })
		},
		"Vectors" + predicted: func(tb testing.TB) {
			netlooptest.Vectors(tb, "unused", 1, bolts, levers, func(*item, *netloop.Tick, lever) {}, func(*rand.Rand, int, *item) lever { return lever{} })
		},
		"AddSpawn" + predicted: func(tb testing.TB) {
			netlooptest.SpawnVectors(tb, "unused", 1, robots, levers, func(_ *robot, _ *netloop.Tick, _ lever, spawns *netlooptest.Spawns) {
				netlooptest.AddSpawn(spawns, bolts, item{})
			}, func(*rand.Rand, int, *robot) lever { return lever{} })
		},
	} {
		rec := &fatalRecorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(rec)
		}()
		<-done
		if !strings.Contains(rec.text, want) {
			t.Errorf("it says %q, want %q", rec.text, want)
		}
	}
}
