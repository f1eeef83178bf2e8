// AF_UNIX stream by path and by abstract name, with the peer's credentials.
#include "verdict.h"
#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static int listener;
static void *serve(void *argument)
{
    int client = accept(listener, NULL, NULL);
    struct ucred who;
    socklen_t length = sizeof who;
    CHECK(getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.pid == getpid());
    CHECK(write(client, "welcome", 7) == 7);
    close(client);
    return argument;
}
static void meet(struct sockaddr_un *address, socklen_t length)
{
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)address, length) == 0);
    CHECK(listen(listener, 1) == 0);
    pthread_t thread;
    pthread_create(&thread, NULL, serve, NULL);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(client, (struct sockaddr *)address, length) == 0);
    char buffer[20] = {0};
    CHECK(read(client, buffer, 20) == 7);
    puts(buffer);
    pthread_join(thread, NULL);
    close(client), close(listener);
}

int main(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    unlink("socket");
    meet(&address, sizeof address);
    CHECK(unlink("socket") == 0);
    memset(address.sun_path, 0, sizeof address.sun_path);
    int n = snprintf(address.sun_path + 1, 40, "why-guest-%d", getpid());
    meet(&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
    return verdict();
}
