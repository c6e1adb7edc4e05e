package codec

import (
	"reflect"
	"testing"
)

func TestLerpIsCheckedAgainstTheKind(t *testing.T) {
	for _, c := range []struct {
		of   any
		want string
	}{
		{struct {
			A int32 `net:"lerp=cubic"`
		}{}, "struct.A: lerp=cubic is not none, linear, angle or degrees"},
		{struct {
			A int32 `net:"lerp=angle"`
		}{}, "struct.A: lerp=angle on a type without numbers that can be drawn so"},
		{struct {
			A bool `net:"lerp=linear"`
		}{}, "struct.A: lerp=linear on a type"},
		{struct {
			A string `net:"lerp=linear"`
		}{}, "struct.A: lerp=linear on a type"},
		{struct {
			A []float32 `net:"lerp=linear"`
		}{}, "struct.A: lerp=linear on a type"},
		{struct {
			A [4]float32 `net:"quat=9,lerp=linear"`
		}{}, "struct.A: lerp=linear on a type"},
		{struct {
			A struct{ B, C int8 } `net:"lerp=angle"`
		}{}, "struct.A: lerp=angle on a type"},
		{struct {
			A [2]Ref `net:"lerp=linear"`
		}{}, "struct.A: lerp=linear on a type"},
		{struct {
			A []struct {
				B float32 `net:"lerp=none"`
			}
		}{}, "struct.A[].B: lerp inside a slice or map"},
	} {
		refused(t, c.of, c.want)
	}
}

func TestLerpHoldsForTheNumbersInside(t *testing.T) {
	type vec struct{ X, Y float32 }
	type all struct {
		Plain  float64
		Steps  float32 `net:"quant=1/4,lerp=none"`
		Whole  int16   `net:"lerp=linear"`
		Count  int16
		Yaw    float32    `net:"quant=1/64,range=0:7,lerp=angle"`
		Course uint16     `net:"lerp=degrees"`
		Turn   [4]float32 `net:"quat=9"`
		Fixed  [4]float32 `net:"quat=9,lerp=none"`
		Pos    vec
		Joints [2]struct {
			A  float32
			B  float32 `net:"lerp=none"`
			On bool
		} `net:"lerp=angle"`
		Name string `net:"lerp=none"`
	}
	p, err := Compile(reflect.TypeFor[all]())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range p.DescribeLeaves() {
		got = append(got, l.Name+" "+l.Lerp.String())
	}
	want := []string{
		"Plain linear", "Steps none", "Whole linear", "Count none", "Yaw angle", "Course degrees", "Turn rotation", "Fixed none",
		"Pos.X linear", "Pos.Y linear", "Joints[0].A angle", "Joints[0].B none", "Joints[0].On none",
		"Joints[1].A angle", "Joints[1].B none", "Joints[1].On none", "Name none",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}
