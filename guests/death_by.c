// Dies in the way its argument names, after some output.
#include "verdict.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

static volatile int zero;
static char *volatile null;
__attribute__((noinline)) static long overflow(long n)
{
    volatile char frame[1024];
    frame[n % 1024] = 1;
    return overflow(n + 1) + frame[n % 1024];
}
// Writes over its own return address, as a buffer overflow would.
__attribute__((noinline, optimize("no-stack-protector", "no-omit-frame-pointer"))) static void smash(void)
{
    volatile unsigned long *frame = __builtin_frame_address(0);
    frame[1] = 0x4141414141414141UL;
}
__attribute__((noinline, optimize("no-stack-protector", "no-omit-frame-pointer"))) static void smash_canonical(void)
{
    volatile unsigned long *frame = __builtin_frame_address(0);
    frame[1] = 0x41414140UL;
}
static void *crash_in_thread(void *argument) { *null = 1; return argument; }
static void *wait_in_thread(void *argument) { for (;;) pause(); return argument; }

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const char *how = argv[1];
    printf("dies by %s\n", how);
    fflush(stdout);
    // What nohup ignores would not kill: the guest starts from the default.
    signal(SIGHUP, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "null")) *null = 1;
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "term")) kill(getpid(), SIGTERM);
    if (!strcmp(how, "hup")) raise(SIGHUP);
    if (!strcmp(how, "usr1")) raise(SIGUSR1);
    if (!strcmp(how, "realtime")) raise(SIGRTMIN + 3);
    if (!strcmp(how, "divide")) return 100 / zero;
    if (!strcmp(how, "stack_overflow")) return (int)overflow(0);
    if (!strcmp(how, "jump")) ((void (*)(void))0x12345678UL)();
    if (!strcmp(how, "jump_to_data")) {
        static char data[16] = "\xc3";
        ((void (*)(void))(void *)data)();
    }
    if (!strcmp(how, "smashed_return")) smash();
    if (!strcmp(how, "smashed_return_canonical")) smash_canonical();
    if (!strcmp(how, "ud2")) __asm__ volatile("ud2");
    if (!strcmp(how, "int3")) __asm__ volatile("int3");
    if (!strcmp(how, "alarm")) { alarm(1); for (;;) __asm__ volatile(""); }
    if (!strcmp(how, "bus")) {
        int file = open("empty", O_RDWR | O_CREAT, 0600);
        char *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
        return *(volatile char *)mapped;
    }
    if (!strcmp(how, "read_only")) *(volatile char *)"text" = 'x';
    if (!strcmp(how, "thread")) {
        pthread_t other, crashing;
        pthread_create(&other, NULL, wait_in_thread, NULL);
        pthread_create(&crashing, NULL, crash_in_thread, NULL);
        pthread_join(other, NULL);
    }
    if (!strcmp(how, "blocked_segv")) { // a blocked fault cannot wait: it kills
        sigset_t all;
        sigfillset(&all);
        signal(SIGSEGV, SIG_IGN);
        sigprocmask(SIG_SETMASK, &all, NULL);
        *null = 1;
    }
    if (!strcmp(how, "free_twice")) { // glibc notices, prints, aborts
        char *volatile block = malloc(40);
        free(block);
        free(block);
    }
    puts("FAILED: alive");
    return 1;
}
