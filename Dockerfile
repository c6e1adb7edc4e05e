# The server as one static binary that runs as nobody, on nothing.
#
#   docker build -t netloop .
#   docker run --rm -p 4433:4433/udp -v ./keys:/keys:ro -e NETLOOP_AUTH_AUDIENCE=arena-1 netloop
#
# keys is a folder with the public keys of the login service, and the audience is the name that
# its tokens give this server: docs/SECURITY.md. To let everybody in, for a try, put
# run --listen 0.0.0.0:4433 --insecure-no-auth behind the image's name, and no -v and -e.
#
# deploy/image.sh (make image, part of make check) builds it with buildah, runs it and lets bots play on it.

FROM golang:1.26-bookworm AS build
WORKDIR /src
# The dependencies are a layer of their own: they change less often than the code.
COPY go.mod go.sum ./
RUN go mod download && go mod verify
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/server ./cmd/server

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/server /server
# A number, because there is no /etc/passwd to look a name up in.
USER 65532:65532
# Game traffic is UDP. The admin listener stays inside: to reach it from outside, mount a file of
# tokens and add --admin 0.0.0.0:8080 --admin-token-file /run/secrets/admin (docs/OPERATING.md).
EXPOSE 4433/udp
# Browsers: with --web 0.0.0.0:8443 --web-tls --tls-cert /tls/cert.pem --tls-key /tls/key.pem the
# server serves the game's pages too, and takes in who plays on them.
# EXPOSE 8443/tcp
# The server tells every client why, lets the game save, and exits 0.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/server"]
CMD ["run", "--listen", "0.0.0.0:4433", "--auth", "token", "--auth-keys", "/keys", "--admin", "127.0.0.1:8080", "--log-format", "json"]
# No HEALTHCHECK: there is no shell or curl to run one. With tokens, probe GET /healthz (are ticks
# running?) and GET /readyz (may clients come?) on port 8080 from outside: these two ask for none.
