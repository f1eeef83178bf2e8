// sigsuspend swaps the mask, sleeps, runs the handler, restores; pause too.
#include "verdict.h"
#include <pthread.h>
#include <signal.h>

static volatile int handled;
static pthread_t main_thread;
static void handle(int number) { (void)number; handled++; }
static void *send(void *argument)
{
    usleep(20000);
    pthread_kill(main_thread, (int)(long)argument);
    return NULL;
}

int main(void)
{
    main_thread = pthread_self();
    signal(SIGUSR1, handle);
    signal(SIGUSR2, handle);
    sigset_t block, none, now;
    sigemptyset(&block), sigemptyset(&none);
    sigaddset(&block, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &block, NULL);
    pthread_t sender;
    raise(SIGUSR1);
    CHECK(handled == 0);
    CHECK(sigsuspend(&none) == -1 && errno == EINTR && handled == 1); // already pending
    pthread_create(&sender, NULL, send, (void *)(long)SIGUSR1);
    CHECK(sigsuspend(&none) == -1 && errno == EINTR && handled == 2);
    pthread_join(sender, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    CHECK(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
    pthread_create(&sender, NULL, send, (void *)(long)SIGUSR2);
    CHECK(pause() == -1 && errno == EINTR && handled == 3);
    pthread_join(sender, NULL);
    return verdict();
}
