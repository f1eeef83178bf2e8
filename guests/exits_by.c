// Ends in the way its argument names.
#include "verdict.h"
#include <pthread.h>
#include <sys/syscall.h>

static void first(void) { puts("registered first"); }
static void second(void) { puts("registered second"); }
static void *exit_all(void *argument) { (void)argument; exit(33); }
static void *sleep_on(void *argument) { sleep(1000); return argument; }
static void *spin_on(void *argument) { for (;;) __asm__ volatile(""); return argument; }
static void *finish_later(void *argument)
{
    usleep(20000);
    puts("last thread");
    return argument;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const char *how = argv[1];
    pthread_t thread;
    atexit(first), atexit(second);
    if (!strcmp(how, "return")) return 3;
    if (!strcmp(how, "exit")) exit(300); // only the low eight bits count
    if (!strcmp(how, "_exit")) _exit(5);
    if (!strcmp(how, "quick_exit")) quick_exit(6);
    if (!strcmp(how, "thread")) {
        for (int i = 0; i < 4; i++) pthread_create(&thread, NULL, i < 2 ? sleep_on : spin_on, NULL);
        pthread_create(&thread, NULL, exit_all, NULL);
        pause();
    }
    if (!strcmp(how, "main_pthread_exit")) {
        pthread_create(&thread, NULL, finish_later, NULL);
        puts("main ends first");
        pthread_exit(NULL);
    }
    if (!strcmp(how, "return_with_threads")) {
        for (int i = 0; i < 4; i++) pthread_create(&thread, NULL, i < 2 ? sleep_on : spin_on, NULL);
        return 8;
    }
    if (!strcmp(how, "exit_of_one_thread")) syscall(SYS_exit, 9); // the only thread: the process ends
    return 1;
}
