// inotify reports what the program itself does in a folder.
#include "verdict.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

int main(void)
{
    mkdir("watched", 0700);
    int watcher = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int watch = inotify_add_watch(watcher, "watched", IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVE | IN_DELETE);
    CHECK(watcher >= 0 && watch >= 0);
    int file = open("watched/file", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(write(file, "x", 1) == 1);
    close(file);
    rename("watched/file", "watched/other");
    unlink("watched/other");
    char buffer[4096] __attribute__((aligned(8)));
    struct pollfd wait = {watcher, POLLIN, 0};
    CHECK(poll(&wait, 1, 1000) == 1);
    ssize_t n = read(watcher, buffer, sizeof buffer);
    CHECK(n > 0);
    for (char *at = buffer; at < buffer + n;) {
        struct inotify_event *event = (struct inotify_event *)at;
        CHECK(event->wd == watch);
        printf("%x %s\n", event->mask, event->len ? event->name : "-");
        at += sizeof *event + event->len;
    }
    CHECK(inotify_rm_watch(watcher, watch) == 0);
    rmdir("watched");
    return verdict();
}
