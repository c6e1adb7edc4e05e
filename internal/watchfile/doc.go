// Package watchfile reports changes of files that a server has read: certificates and keys that
// other programs renew.
//
// The files are read once a second, and only their content matters. So a file may be written,
// renamed into place, or reached through a symbolic link that changes, as Kubernetes and certbot do
// it, on any file system: events of the system would not report all of these.
package watchfile
