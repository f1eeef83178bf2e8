// Datagrams on loopback between two sockets and a thread.
#include "verdict.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>

static int server;
static void *echo(void *argument)
{
    for (int i = 0; i < 10; i++) {
        char buffer[2000];
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        ssize_t n = recvfrom(server, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &length);
        CHECK(n > 0);
        sendto(server, buffer, (size_t)n, 0, (struct sockaddr *)&from, length);
    }
    return argument;
}

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    server = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(bind(server, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(getsockname(server, (struct sockaddr *)&address, &length) == 0);
    pthread_t thread;
    pthread_create(&thread, NULL, echo, NULL);
    int client = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(connect(client, (struct sockaddr *)&address, sizeof address) == 0);
    char buffer[2000];
    for (int i = 0; i < 10; i++) {
        memset(buffer, i, sizeof buffer);
        CHECK(send(client, buffer, (size_t)(100 * (i + 1)), 0) == 100 * (i + 1));
        memset(buffer, 99, sizeof buffer);
        CHECK(recv(client, buffer, sizeof buffer, 0) == 100 * (i + 1) && buffer[0] == i);
    }
    pthread_join(thread, NULL);
    struct timeval soon = {0, 20000};
    CHECK(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) == 0);
    CHECK(recv(client, buffer, sizeof buffer, 0) == -1 && errno == EAGAIN);
    return verdict();
}
