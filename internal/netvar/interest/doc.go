// Package interest decides which objects each client sees, and which of their fields it may read.
//
//	Audience  determines the clients that see an object (audience.go)
//	Space     limits the view of a client to objects near one of its viewpoints (space.go)
//	Readers   decide which rules of fields a client is withheld (rules.go)
//	Views     the withheld rules of a client's objects (views.go)
//
// The results change only within a capture: Map.Publish checks new objects, and Map.Update checks
// all pairs of object and client that may have changed since the last capture. A Map informs each
// Client of the start and the end of an object's lifetime; package netvar turns these into records.
//
// A Map and its viewers belong to the goroutine of their World.
package interest
