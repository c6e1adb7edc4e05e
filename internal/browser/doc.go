// Package browser has the tests of the arena's page: that it is built and steers as the server
// does, and, in the files beside this one, that a real browser plays it on the real server, over
// each of its ways in. Those need Chromium, Node and what npm installs, and are skipped where one
// is missing.
package browser
