// The peer ENet: a server that broadcasts the world, and its clients.
//
//   enet serve ADDR RATE WORLD
//   enet play ADDR RATE WORLD CLIENTS
//
// An update is a packet that is sent once: unreliable, and in unreliable fragments, since it is
// larger than a datagram. ENet would otherwise send the fragments reliably.
#include <arpa/inet.h>
#include <enet/enet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ENTITIES = 100, HEAD = 12, PAYLOAD = HEAD + ENTITIES * 16, PER_HOST = 10, MOST_PEERS = 4095 };

// Body is an entity, as in bench/world.
typedef struct { float x, y, vx, vy; } Body;

static Body circle(uint64_t tick, int i) {
	double radius = 20 + i / 3.0, angle = tick / 120.0 + i, s = sin(angle), c = cos(angle);
	return (Body){(float)(100 + radius * c), (float)(-50 + radius * s), (float)(-radius * s / 2), (float)(radius * c / 2)};
}

static Body move(const char *world, uint64_t tick, int i) {
	if (strcmp(world, "tenth") == 0 && i % 10 != 0) return circle(0, i);
	Body b = circle(tick, i);
	if (strcmp(world, "flips") == 0 && tick % 2 == 1)
		b = (Body){b.x + b.vx / 60, b.y + b.vy / 60, -b.vx, -b.vy};
	return b;
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *why) {
	fprintf(stderr, "enet: %s\n", why);
	exit(1);
}

static ENetAddress address(char *text) {
	ENetAddress a;
	char *colon = strrchr(text, ':');
	if (!colon) fail("the address has no port");
	*colon = 0;
	enet_address_set_host_ip(&a, text);
	a.port = atoi(colon + 1);
	return a;
}

static volatile sig_atomic_t stalls, ended;
static void on_stall(int s) { (void)s, stalls = 1; }
static void on_end(int s) { (void)s, ended = 1; }

// The order of bytes in an update and in a record is little-endian, as that of all machines here.
static void fill(unsigned char *p, const char *world, uint32_t tick, int64_t sent) {
	memcpy(p, &tick, 4);
	memcpy(p + 4, &sent, 8);
	for (int i = 0; i < ENTITIES; i++) {
		Body b = move(world, tick, i);
		memcpy(p + HEAD + 16 * i, &b, 16);
	}
}

static int serve(ENetAddress a, int rate, const char *world) {
	ENetHost *host = enet_host_create(&a, MOST_PEERS, 1, 0, 0);
	if (!host) fail("the address cannot be used");
	int64_t period = 1000000000 / rate, due = now();
	unsigned char update[PAYLOAD];
	for (uint32_t tick = 1; !ended; tick++, due += period) {
		ENetEvent e;
		for (int64_t left; (left = due - now()) > 0 && !ended;) {
			if (left < 1000000) { // ENet waits in milliseconds.
				struct timespec t = {0, left};
				nanosleep(&t, NULL);
			} else if (enet_host_service(host, &e, left / 1000000) > 0 && e.type == ENET_EVENT_TYPE_RECEIVE) {
				enet_packet_destroy(e.packet);
			}
		}
		int64_t sent = now();
		if (stalls) {
			stalls = 0;
			sleep(2);
		}
		fill(update, world, tick, sent);
		enet_host_broadcast(host, 0, enet_packet_create(update, PAYLOAD, ENET_PACKET_FLAG_UNRELIABLE_FRAGMENT));
		enet_host_flush(host);
	}
	enet_host_destroy(host);
	return 0;
}

// Record is an update that a client has received, as in player.go.
typedef struct { uint32_t client, tick; int64_t sent, at; } Record;

typedef struct {
	int clients, hosts, lost, wrong, started;
	char *seen; // by client
	ENetHost **host;
	Record *records;
	size_t count, room;
	uint64_t bytes;
	const char *world;
} Players;

static void update(Players *p, int client, ENetPacket *packet) {
	if (packet->dataLength != PAYLOAD) fail("an update has another size");
	Record r = {.client = client, .at = now()};
	memcpy(&r.tick, packet->data, 4);
	memcpy(&r.sent, packet->data + 4, 8);
	if (p->count == p->room) {
		p->room = p->room ? 2 * p->room : 4096;
		if (!(p->records = realloc(p->records, p->room * sizeof r))) fail("no memory");
	}
	p->records[p->count++] = r;
	if (!p->seen[client]) p->seen[client] = 1, p->started++;
	if (client == 0) {
		unsigned char want[PAYLOAD];
		fill(want, p->world, r.tick, r.sent);
		p->wrong += memcmp(want, packet->data, PAYLOAD) != 0;
	}
}

static void receive(Players *p, int h) {
	ENetEvent e;
	while (enet_host_service(p->host[h], &e, 0) > 0) {
		if (e.type == ENET_EVENT_TYPE_RECEIVE) {
			update(p, h * PER_HOST + (int)(e.peer - p->host[h]->peers), e.packet);
			enet_packet_destroy(e.packet);
		} else if (e.type == ENET_EVENT_TYPE_DISCONNECT) {
			p->lost++;
		}
	}
	p->bytes += p->host[h]->totalReceivedData;
	p->host[h]->totalReceivedData = 0;
}

// obey runs the commands of a line from the measurement: see control in player.go.
static void obey(Players *p, char *line) {
	if (strncmp(line, "begin", 5) == 0) {
		p->count = p->bytes = p->wrong = 0;
	} else if (strncmp(line, "end ", 4) == 0) {
		line[strcspn(line, "\n")] = 0;
		FILE *f = fopen(line + 4, "wb");
		if (!f || fwrite(p->records, sizeof(Record), p->count, f) != p->count || fclose(f)) fail("the records cannot be written");
		printf("done %llu %d %d\n", (unsigned long long)p->bytes, p->lost, p->wrong);
		fflush(stdout);
	}
}

static int play(ENetAddress a, const char *world, int clients) {
	Players p = {.clients = clients, .hosts = (clients + PER_HOST - 1) / PER_HOST, .world = world, .seen = calloc(clients, 1)};
	p.host = calloc(p.hosts, sizeof *p.host);
	struct pollfd *fds = calloc(p.hosts + 1, sizeof *fds);
	fds[p.hosts] = (struct pollfd){.fd = 0, .events = POLLIN};
	fcntl(0, F_SETFL, O_NONBLOCK);
	for (int h = 0; h < p.hosts; h++) {
		p.host[h] = enet_host_create(NULL, PER_HOST, 1, 0, 0);
		if (!p.host[h]) fail("no socket");
		fds[h] = (struct pollfd){.fd = p.host[h]->socket, .events = POLLIN};
		for (int n = h * PER_HOST; n < clients && n < (h + 1) * PER_HOST; n++) enet_host_connect(p.host[h], &a, 1, 0);
	}
	for (int ready = 0;;) {
		int timeout = 5; // ENet acknowledges and repeats when it is called.
		poll(fds, p.hosts + 1, timeout);
		for (int h = 0; h < p.hosts; h++) receive(&p, h);
		if (!ready && p.started == clients) {
			ready = 1;
			printf("ready\n");
			fflush(stdout);
		}
		if (fds[p.hosts].revents) {
			char line[1024];
			ssize_t n = read(0, line, sizeof line - 1);
			if (n == 0) return 0;
			if (n > 0) line[n] = 0, obey(&p, line);
		}
	}
}

int main(int argc, char **argv) {
	if (argc < 5 || enet_initialize()) fail("serve ADDR RATE WORLD, or play ADDR RATE WORLD CLIENTS");
	signal(SIGIO, on_stall);
	signal(SIGINT, on_end);
	signal(SIGTERM, on_end);
	ENetAddress a = address(argv[2]);
	if (strcmp(argv[1], "serve") == 0) return serve(a, atoi(argv[3]), argv[4]);
	if (argc < 6) fail("how many clients?");
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	return play(a, argv[4], atoi(argv[5]));
}
