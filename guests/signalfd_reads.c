// Signals read from a descriptor, also through poll.
#include "verdict.h"
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

int main(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1), sigaddset(&set, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int descriptor = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    CHECK(descriptor >= 0);
    struct signalfd_siginfo info[3];
    CHECK(read(descriptor, info, sizeof info[0]) == -1 && errno == EAGAIN);
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    CHECK(poll(&wait, 1, 0) == 0);
    kill(getpid(), SIGUSR1);
    union sigval value = {.sival_int = 5};
    sigqueue(getpid(), SIGRTMIN + 1, value);
    CHECK(poll(&wait, 1, 1000) == 1 && wait.revents == POLLIN);
    CHECK(read(descriptor, info, sizeof info) == 2 * sizeof info[0]);
    CHECK(info[0].ssi_signo == SIGUSR1 && info[0].ssi_pid == (unsigned)getpid());
    CHECK(info[1].ssi_signo == (unsigned)SIGRTMIN + 1 && info[1].ssi_int == 5);
    return verdict();
}
