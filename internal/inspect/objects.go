package inspect

import (
	"encoding/json"
	"time"

	"github.com/netloop/netloop/internal/netvar/state"
)

// Class describes a class of replicated objects.
type Class struct {
	Name   string   `json:"name"`
	Fields []string `json:"fields"`
	Types  []string `json:"types"`
	Read   []string `json:"read"` // the read rule of each field; empty without a rule
	Map    []string `json:"map"`  // the two fields of the map position; empty without a map
}

// Classes describes the classes of a schema.
func Classes(classes []*state.Class) []Class {
	list := make([]Class, len(classes))
	for i, c := range classes {
		list[i] = Class{Name: c.Name(), Fields: []string{}, Types: []string{}, Read: []string{}, Map: []string{}}
		if x, y := c.Map(); x != "" {
			list[i].Map = []string{x, y}
		}
		for _, l := range c.DescribeLeaves() {
			list[i].Fields, list[i].Types = append(list[i].Fields, l.Name), append(list[i].Types, l.Type)
			list[i].Read = append(list[i].Read, l.Read)
		}
	}
	return list
}

// Object is a replicated object, with its values in the order of its class's fields. A value that
// the request may not read is null.
type Object struct {
	ID     string          `json:"id"`
	Class  string          `json:"class"`
	Owner  uint64          `json:"owner"`
	Values json.RawMessage `json:"values"`
}

// Grid describes a grid on the map, and the view of a client in it. Lengths are in the game's unit.
type Grid struct {
	Classes []string `json:"classes"` // with a position on the map
	Cell    float64  `json:"cell"`
	Inside  float64  `json:"inside"` // up to this gap between cells a client gets an object
	Border  float64  `json:"border"` // up to this gap it keeps one
	Eyes    []Eye    `json:"eyes"`   // viewpoints of the client
}

// Eye is a viewpoint: its cell on the map, and the object that it follows.
type Eye struct {
	Cell   [2]int32 `json:"cell"`
	Object string   `json:"object"` // empty without
}

// Costs is the answer of /api/costs: the objects with the most bytes of records.
type Costs struct {
	Tick    uint64  `json:"tick"`
	Seconds float64 `json:"seconds"` // for which records were counted: at most the last minute
	Bytes   uint64  `json:"bytes"`   // of all objects
	Objects []Cost  `json:"objects"`
}

// Cost is the cost of an object: the records of it for all clients.
type Cost struct {
	ID      string `json:"id"`
	Class   string `json:"class"`
	Owner   uint64 `json:"owner"`
	Bytes   uint64 `json:"bytes"`
	Records uint64 `json:"records"`
	Fulls   uint64 `json:"fulls"` // full records, since counting began
}

// Traffic is the answer of /api/clients/traffic: the bytes of one client since counting began.
type Traffic struct {
	Tick    uint64          `json:"tick"`
	Client  uint64          `json:"client"`
	Seconds float64         `json:"seconds"` // for which data was counted
	Classes []ClassTraffic  `json:"classes"` // sent; a class without a record is left out
	Inputs  Data            `json:"inputs"`  // packets received from the client
	Methods []MethodTraffic `json:"methods"` // a method without a message is left out
}

// ClassTraffic has the bytes of object records of a class; an empty Class is the ends of objects.
type ClassTraffic struct {
	Class string `json:"class"`
	Bytes uint64 `json:"bytes"`
}

// MethodTraffic has the messages of a method, answers included.
type MethodTraffic struct {
	Method   string `json:"method"`
	Received Data   `json:"received"` // from the client
	Sent     Data   `json:"sent"`     // to the client
}

// Data counts messages or packets, and their bytes without envelope.
type Data struct {
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

// Waits is the answer of /api/waits: how long messages of clients waited, from their arrival until
// their handlers ran.
type Waits struct {
	Tick    uint64  `json:"tick"`
	Seconds float64 `json:"seconds"` // for which they were counted
	Methods []Wait  `json:"methods"` // a method without a message is left out
}

// Wait has the waits of a method's messages since counting began.
type Wait struct {
	Method string        `json:"method"`
	Count  uint64        `json:"count"`
	Sum    time.Duration `json:"sum_ns"`
	Max    time.Duration `json:"max_ns"`
}
