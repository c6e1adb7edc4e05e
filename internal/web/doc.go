// Package web serves the pages of a game, and tells a page the address of the game server: it is
// the same process, on a TCP port of its own.
//
// The flow:
//
//	Listen(config)   reads the files, compresses each once, and binds the port
//	Serve(ctx)       answers until ctx ends, then waits briefly for answers under way
//
//	connection ─▶ rate     above the rate of its site? closed before TLS
//	           ─▶ limit    full? closes a quiet one, of the site with the most
//	request    ─▶ headers  restrictions for the browser, on every answer
//	           ─▶ /              the game's files, or a page of the server's own
//	              /connect.json  the game's address for the page, and its certificate's hash
//	              /netloop       a WebSocket, which leaves the limit: Config.Socket
//
// No request changes the server, and only /connect.json and the server's own page are generated per
// request.
package web
