// Package watchfile tells when files that a server has read have changed: certificates
// and keys that somebody else renews.
//
// The flow:
//
//	fsnotify ──▶ something happened in a folder ─┐
//	             settle, so that writers finish  ├─▶ read the files ─▶ other content? Changed
//	a timer ───▶ nothing told us for a while ────┘
//
// What the system tells about a folder is only a reason to look: what counts is the
// content. So it makes no difference whether a file was written, renamed into place, or
// stands behind a symbolic link that now points elsewhere, as Kubernetes and certbot do it,
// and a file system that tells nothing, as those of networks do, is merely slower.
package watchfile
