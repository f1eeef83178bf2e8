// A TCP server thread and three clients on loopback: bind to any port, accept,
// addresses, options, half close, large transfer.
#include "verdict.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

static struct sockaddr_in address;
static int listener;

static void *serve(void *argument)
{
    for (int i = 0; i < 3; i++) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        int client = accept4(listener, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC);
        CHECK(client >= 0 && length == sizeof peer && peer.sin_family == AF_INET);
        CHECK(peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
        char buffer[4096];
        ssize_t n;
        unsigned long sum = 0;
        while ((n = recv(client, buffer, sizeof buffer, 0)) > 0)
            for (ssize_t j = 0; j < n; j++) sum += (unsigned char)buffer[j];
        CHECK(send(client, &sum, sizeof sum, 0) == sizeof sum);
        close(client);
    }
    return argument;
}

int main(void)
{
    listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(listener >= 0);
    int yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(listener, 5) == 0);
    socklen_t length = sizeof address;
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0 && address.sin_port != 0);
    pthread_t server;
    pthread_create(&server, NULL, serve, NULL);
    static char data[300000];
    for (int i = 0; i < 3; i++) {
        int client = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(connect(client, (struct sockaddr *)&address, sizeof address) == 0);
        CHECK(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0);
        int set = 0;
        length = sizeof set;
        CHECK(getsockopt(client, IPPROTO_TCP, TCP_NODELAY, &set, &length) == 0 && set != 0);
        memset(data, i + 1, sizeof data);
        for (size_t done = 0; done < sizeof data;) done += (size_t)send(client, data + done, sizeof data - done, 0);
        shutdown(client, SHUT_WR);
        unsigned long sum = 0;
        CHECK(recv(client, &sum, sizeof sum, MSG_WAITALL) == sizeof sum);
        printf("sum %lu\n", sum);
        close(client);
    }
    pthread_join(server, NULL);
    close(listener);
    int refused = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(refused, (struct sockaddr *)&address, sizeof address) == -1 && errno == ECONNREFUSED);
    return verdict();
}
