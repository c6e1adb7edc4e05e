// Package web serves the pages of a game, and says how a page finds the server: the same process
// that plays, on a TCP port of its own.
//
// The flow:
//
//	Listen(config)   reads the files, compresses each once, and binds the port
//	Serve(ctx)       answers until ctx ends, then waits briefly for answers under way
//
//	connection ─▶ toll     faster than its site may? closed before it costs anything
//	           ─▶ pool     full? one that is quiet goes, of the site with the most
//	request    ─▶ headers  what a browser may do with whatever is answered
//	           ─▶ /              the game's files, or a page of the server's own
//	              /connect.json  where the game is for the page, and what its certificate is
//	              /netloop       a WebSocket, which leaves the pool: Config.Socket
//
// Nothing here changes the server, and nothing is made for a request but /connect.json and the
// server's own page.
package web
