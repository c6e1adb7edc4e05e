// Package watchfile reports changes of files that a server has read: certificates and keys that
// other programs renew.
//
// The flow:
//
//	fsnotify ──▶ an event in a folder ───────────┐
//	             settle, so that writers finish  ├─▶ read the files ─▶ other content? changed
//	a timer ───▶ no event for a while ───────────┘
//
// An event of a folder only triggers a read: only the content matters. So a file may be written,
// renamed into place, or reached through a symbolic link that changes, as Kubernetes and certbot do
// it. On a file system without events, such as a network's, changes are only reported later.
package watchfile
