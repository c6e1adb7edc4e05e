#!/usr/bin/env bash
# Builds the container image of the Dockerfile with Debian's buildah, starts it as its own user with its own command line, and lets
# bots play on it for 5 s. No image is pulled: each base image of the Dockerfile is made here from the machine's Go and
# busybox. Modules come from the machine's module cache, which is filled first. It needs root; elsewhere it prints the reason and skips.
#
#   deploy/image.sh BIN    # BIN is the folder with the programs server and loadclient
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(realpath "${1:-bin}")

skip() { echo "image: skipped: $*"; exit 0; }
[ "$(uname -s)" = Linux ] || skip "it needs Linux"
[ "$(id -u)" = 0 ] || skip "it needs root"
command -v buildah >/dev/null || skip "buildah is not installed (Debian package buildah)"
busybox=$(command -v busybox) && ! ldd "$busybox" >/dev/null 2>&1 || skip "no static busybox (Debian package busybox-static)"
[ -s /etc/ssl/certs/ca-certificates.crt ] || skip "no certificates (Debian package ca-certificates)"

work=$(mktemp -d)
export BUILDAH_ISOLATION=chroot
buildah() { command buildah --storage-driver vfs --root "$work/root" --runroot "$work/runroot" "$@"; }
child=
# last is the process that buildah run has started through others: signals to buildah do not reach it.
last() {
	local pid=$1 next
	while next=$(grep -ls "^PPid:[[:space:]]*$pid\$" /proc/[0-9]*/status | head -1 | cut -d/ -f3) || true; [ -n "$next" ]; do pid=$next; done
	echo "$pid"
}
finish() {
	[ -z "$child" ] || { kill -KILL "$(last "$child")" && wait "$child"; } 2>/dev/null || true
	buildah rm --all >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap finish EXIT

# base makes the image $1 with the settings of Docker's official image: a shell, certificates, and an empty folder for Go.
base() {
	local container root
	container=$(buildah from scratch)
	root=$(buildah mount "$container")
	mkdir -p "$root"/{bin,go,root,tmp,etc,usr/local/go}
	cp -L "$busybox" "$root/bin/busybox"
	"$busybox" --list | while read -r applet; do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
	cp -a /etc/ssl "$root/etc/ssl"
	buildah config --env PATH=/go/bin:/usr/local/go/bin:/usr/bin:/bin --env GOPATH=/go --env GOTOOLCHAIN=local --env HOME=/root \
		--env GOPROXY=off --workingdir /go "$container"
	buildah umount "$container" >/dev/null
	buildah commit --quiet --rm "$container" "$1" >/dev/null
}

go mod download
sed -n 's/^FROM \([^ ]*\).*/\1/p' Dockerfile | sort -u | while read -r image; do
	[ "$image" = scratch ] || base "docker.io/library/$image"
done

# Go and its caches are mounted from the machine: copying Go took a minute, and the second run compiles no package.
began=$SECONDS
buildah bud --quiet --pull-never --volume "$(go env GOROOT):/usr/local/go:ro" --volume "$(go env GOMODCACHE):/go/pkg/mod" --volume "$(go env GOCACHE):/root/.cache/go-build" --tag netloop . >/dev/null
container=$(buildah from --pull-never netloop)
root=$(buildah mount "$container")
echo "image: built in $((SECONDS - began)) s, $(du -sm "$root" | cut -f1) MB"

# The image's own user, entry point and command run. Further flags only replace its ports with free ones.
config() { buildah inspect --type image --format "$1" netloop; }
[ "$(config '{{.OCIv1.Config.User}}')" = 65532:65532 ] || { echo "image: it does not run as 65532:65532" >&2; exit 1; }
readarray -t command < <(config '{{range .OCIv1.Config.Entrypoint}}{{println .}}{{end}}{{range .OCIv1.Config.Cmd}}{{println .}}{{end}}' | sed '/^$/d')
mkdir "$work/keys" "$work/run"
(cd "$work" && "$bin/server" token keygen login-1 >/dev/null && mv login-1.pub keys/)
chmod 755 "$work" "$work/keys" && chmod 644 "$work/keys/login-1.pub" && chown 65532:65532 "$work/run"
buildah run --env NETLOOP_AUTH_AUDIENCE=arena-1 --volume "$work/keys:/keys:ro" --volume "$work/run:/run" "$container" -- \
	"${command[@]}" --listen 127.0.0.1:0 --admin 127.0.0.1:0 --addr-file /run/addr.json 2>"$work/log" &
child=$!
for _ in $(seq 150); do [ -s "$work/run/addr.json" ] || sleep 0.1; done
address() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$work/run/addr.json"; }
fail() { echo "image: $*" >&2; cat "$work/log" >&2; exit 1; }

# Status 99: this machine was too busy for the bots, which is no fault of the image.
status=0
"$bin/loadclient" run --addr "$(address listen)" --admin "http://$(address admin)" --clients 5 --duration 5s \
	--token-key "$work/login-1.key" --token-audience arena-1 || status=$?
[ "$status" = 0 ] || [ "$status" = 99 ] || fail "the load client ended with $status"
kill -TERM "$(last "$child")"
wait "$child" || fail "the server ended with $? after SIGTERM"
child=
echo "image: built, played and stopped in $SECONDS s"
