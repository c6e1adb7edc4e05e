// Package persist keeps the state of rooms in a store, across the ends of rooms and processes.
//
// [Keep] loads the record of a room in Open, before any client joins. Later it stores changes
// behind the ticks: a tick only encodes the state, at most once in an interval, and another
// goroutine writes it. A save that fails is tried again until it succeeds. The end of the room
// stores the last changes. The example shows a whole game.
//
// Each save carries the room's incarnation ([netloop.Room.Incarnation]), and a store refuses one
// that is older than the last load. So a room that the watchdog has given up, or a process that was
// cut off, cannot overwrite the state of its successor. The room that is refused closes.
//
// A recording of the room contains the loaded record, so a replay makes no calls to a store.
//
// After a crash the store has the state of the last save: a room loses at most the changes of
// [Config] Every, and those that a failing store did not take. Stores are in the packages below
// this one: files keeps a folder of files, and sqlstore a table of a database.
package persist
