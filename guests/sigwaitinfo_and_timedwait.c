// Signals taken synchronously: sigwait, sigwaitinfo, sigtimedwait with timeout.
#include "verdict.h"
#include <pthread.h>
#include <signal.h>
#include <time.h>

static pthread_t main_thread;
static void *send(void *argument)
{
    (void)argument;
    usleep(20000);
    pthread_kill(main_thread, SIGUSR2);
    return NULL;
}

int main(void)
{
    main_thread = pthread_self();
    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1), sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    struct timespec soon = {0, 20000000}, zero = {0, 0};
    CHECK(sigtimedwait(&set, &info, &zero) == -1 && errno == EAGAIN);
    CHECK(sigtimedwait(&set, &info, &soon) == -1 && errno == EAGAIN);
    kill(getpid(), SIGUSR1);
    CHECK(sigwaitinfo(&set, &info) == SIGUSR1 && info.si_code == SI_USER && info.si_pid == getpid());
    union sigval value = {.sival_int = 77};
    sigqueue(getpid(), SIGUSR1, value);
    CHECK(sigtimedwait(&set, &info, &zero) == SIGUSR1 && info.si_code == SI_QUEUE && info.si_value.sival_int == 77);
    pthread_t sender;
    pthread_create(&sender, NULL, send, NULL);
    int number = 0;
    CHECK(sigwait(&set, &number) == 0 && number == SIGUSR2);
    pthread_join(sender, NULL);
    return verdict();
}
