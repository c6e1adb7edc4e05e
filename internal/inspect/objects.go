package inspect

import (
	"encoding/json"
	"time"

	"github.com/netloop/netloop/internal/netvar/state"
)

// Class describes a class of replicated objects.
type Class struct {
	Name   string   `json:"name"`   // as declared
	Fields []string `json:"fields"` // names, in the order of values
	Types  []string `json:"types"`  // of the fields, in Go
	Read   []string `json:"read"`   // the read rule of each field; empty without a rule
	Map    []string `json:"map"`    // the two fields of the map position; empty without a map
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
	ID     string          `json:"id"`     // slot and generation, such as 17.3
	Class  string          `json:"class"`  // of the object
	Owner  uint64          `json:"owner"`  // client that owns it; 0: none
	Values json.RawMessage `json:"values"` // in the order of the fields of its class
}

// Grid describes a grid on the map, and the view of a client in it. Lengths are in the game's unit.
type Grid struct {
	Classes []string `json:"classes"` // with a position on the map
	Cell    float64  `json:"cell"`    // edge of a cell, in the game's unit
	Inside  float64  `json:"inside"`  // up to this gap between cells a client gets an object
	Border  float64  `json:"border"`  // up to this gap it keeps one
	Eyes    []Eye    `json:"eyes"`    // viewpoints of the client
}

// Eye is a viewpoint: its cell on the map, and the object that it follows.
type Eye struct {
	Cell   [2]int32 `json:"cell"`   // x and y of the cell
	Object string   `json:"object"` // empty without
}

// Costs is the answer of /api/costs: the objects with the most bytes of records.
type Costs struct {
	Tick    uint64  `json:"tick"`    // after which the answer was made
	Seconds float64 `json:"seconds"` // for which records were counted: at most the last minute
	Bytes   uint64  `json:"bytes"`   // of all objects
	Objects []Cost  `json:"objects"` // the most bytes first
}

// Cost is the cost of an object: the records of it for all clients.
type Cost struct {
	ID      string `json:"id"`      // slot and generation
	Class   string `json:"class"`   // of the object
	Owner   uint64 `json:"owner"`   // client; 0: none
	Bytes   uint64 `json:"bytes"`   // of its records for all clients
	Records uint64 `json:"records"` // number of records
	Fulls   uint64 `json:"fulls"`   // full records, since counting began
}

// Traffic is the answer of /api/clients/traffic: the bytes of one client since counting began.
type Traffic struct {
	Tick    uint64          `json:"tick"`    // after which the answer was made
	Client  uint64          `json:"client"`  // id of the client
	Seconds float64         `json:"seconds"` // for which data was counted
	Classes []ClassTraffic  `json:"classes"` // sent; a class without a record is left out
	Inputs  Data            `json:"inputs"`  // packets received from the client
	Methods []MethodTraffic `json:"methods"` // a method without a message is left out
}

// ClassTraffic has the bytes of object records of a class; an empty Class is the ends of objects.
type ClassTraffic struct {
	Class string `json:"class"` // empty: the ends of objects
	Bytes uint64 `json:"bytes"` // of its records
}

// MethodTraffic has the messages of a method, answers included.
type MethodTraffic struct {
	Method   string `json:"method"`   // name of the method
	Received Data   `json:"received"` // from the client
	Sent     Data   `json:"sent"`     // to the client
}

// Data counts messages or packets, and their bytes without envelope.
type Data struct {
	Count uint64 `json:"count"` // messages or packets
	Bytes uint64 `json:"bytes"` // without envelopes
}

// Waits is the answer of /api/waits: how long messages of clients waited, from their arrival until
// their handlers ran.
type Waits struct {
	Tick    uint64  `json:"tick"`    // after which the answer was made
	Seconds float64 `json:"seconds"` // for which they were counted
	Methods []Wait  `json:"methods"` // a method without a message is left out
}

// Wait has the waits of a method's messages since counting began.
type Wait struct {
	Method string        `json:"method"` // name of the method
	Count  uint64        `json:"count"`  // messages
	Sum    time.Duration `json:"sum_ns"` // of all waits
	Max    time.Duration `json:"max_ns"` // the longest wait
}
