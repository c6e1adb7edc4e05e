// Package director finds rooms of a cluster for login services and matchmakers, over HTTP.
//
//	POST /match ─▶ fullest room that fits, of the boards ─▶ call "reserve" ─▶ tickets
//	                └─ none ─▶ Place ─▶ call "open" ─▶ call "reserve" ─▶ tickets
//
// A director has no rooms and keeps no state but names of the rooms that it has opened in the last
// seconds, so any number of them may run.
package director
