/* Many kinds of events in few instructions: no library, so that a replay takes no time.
   With an argument, a process of several. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#define CALL(number, a, b, c) call(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)

struct action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

static volatile int caught;

static void handler(int signal)
{
    caught = signal;
}

__attribute__((naked)) static void restorer(void)
{
    __asm__("mov $15, %eax; syscall");
}

static void files(char *buffer)
{
    long fd = CALL(SYS_open, "/etc/hostname", O_RDONLY, 0);
    CALL(SYS_fstat, fd, buffer, 0);
    long len = CALL(SYS_read, fd, buffer, 64);
    CALL(SYS_lseek, fd, 0, 0);
    call(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    CALL(SYS_close, fd, 0, 0);
    CALL(SYS_write, 1, buffer, len > 0 ? len : 0);
}

static void surprises(char *buffer)
{
    CALL(SYS_clock_gettime, CLOCK_MONOTONIC, buffer, 0);
    CALL(SYS_getrandom, buffer, 16, 0);
    CALL(SYS_getcwd, buffer, 64, 0);
    __asm__ volatile("rdtsc" ::: "eax", "edx");
    struct action action = {handler, 0x04000000, restorer, 0};
    call(SYS_rt_sigaction, SIGUSR1, (long)&action, 0, 8, 0, 0);
    CALL(SYS_kill, CALL(SYS_getpid, 0, 0, 0), SIGUSR1, 0);
    for (volatile int i = 0; i < 100; i++)
        ;
    CALL(SYS_write, 2, caught ? "caught\n" : "missed\n", 7);
}

static void processes(char *buffer)
{
    int ends[2], status;
    CALL(SYS_pipe, ends, 0, 0);
    long child = CALL(SYS_fork, 0, 0, 0);
    if (child == 0) {
        CALL(SYS_write, ends[1], "child\n", 6);
        files(buffer);
        CALL(SYS_exit_group, 3, 0, 0);
    }
    CALL(SYS_write, 1, buffer, CALL(SYS_read, ends[0], buffer, 64));
    call(SYS_wait4, child, (long)&status, 0, 0, 0, 0);
}

__attribute__((used)) static void begin(long *stack)
{
    static char buffer[4096];
    files(buffer);
    surprises(buffer);
    if (stack[0] > 1)
        processes(buffer);
    CALL(SYS_exit_group, 0, 0, 0);
}

__attribute__((naked)) void _start(void)
{
    __asm__("mov %rsp, %rdi; and $-16, %rsp; call begin");
}
