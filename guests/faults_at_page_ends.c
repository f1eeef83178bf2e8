// Accesses that fault half-way: stores and loads across the end of a page, string
// instructions that stop in the middle, maps that go on beyond their file; calls get
// EFAULT for the same; the code and address are the kernel's.
#include "verdict.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

static sigjmp_buf back;
static int number, code;
static unsigned long address;
static greg_t registers[NGREG];

static void handle(int n, siginfo_t *info, void *context)
{
    number = n, code = info->si_code, address = (unsigned long)info->si_addr;
    memcpy(registers, ((ucontext_t *)context)->uc_mcontext.gregs, sizeof registers);
    siglongjmp(back, 1);
}

static char *base;
#define FAULTS(what)                                                           \
    do {                                                                       \
        number = 0;                                                            \
        if (!sigsetjmp(back, 1)) {                                             \
            what;                                                              \
        }                                                                      \
        printf("%-30s signal %d code %d at %+ld\n", #what, number, code,       \
               number ? (long)(address - (unsigned long)base) : 0);            \
    } while (0)

static char *pages(int count, int last)
{
    char *at = mmap(NULL, (size_t)(count + 1) * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED && mprotect(at + count * 4096, 4096, last) == 0);
    return at;
}

static void store8(char *at) { __asm__ volatile("movq %1, (%0)" : : "r"(at), "r"(-1L) : "memory"); }
static long load8(char *at) { long v; __asm__ volatile("movq (%1), %0" : "=r"(v) : "r"(at)); return v; }
static void store32(char *at) { __asm__ volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0; vmovdqu %%ymm0, (%0)" : : "r"(at) : "memory", "xmm0"); }
static void add8(char *at) { __asm__ volatile("lock addq $1, (%0)" : : "r"(at) : "memory", "cc"); }
static void push8(char *at) { __asm__ volatile("mov %%rsp, %%r8; mov %0, %%rsp; push %%rax; mov %%r8, %%rsp" : : "r"(at) : "r8", "memory"); }
static void fill(char *at, long n) { __asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(7) : "memory"); }
static void copy(char *to, char *from, long n) { __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory"); }

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    base = pages(1, PROT_NONE);
    memset(base, 1, 4096);
    FAULTS(store8(base + 4092));
    CHECK(load8(base + 4088) == 0x0101010101010101);
    FAULTS((void)load8(base + 4093));
    FAULTS(store32(base + 4080));
    CHECK(base[4095] == 1 && base[4080] == 1);
    FAULTS(add8(base + 4094));
    FAULTS(push8(base + 4100));
    FAULTS(fill(base + 4000, 200));
    CHECK(registers[REG_RCX] == 104 && registers[REG_RDI] == (greg_t)base + 4096 && base[4095] == 7 && base[3999] == 1);
    FAULTS(copy(base + 100, base + 4090, 100));
    CHECK(registers[REG_RCX] == 94 && registers[REG_RSI] == (greg_t)base + 4096);
    munmap(base + 4096, 4096);
    FAULTS(store8(base + 4092));
    FAULTS(store8(base + 4096));
    CHECK(mprotect(base, 4096, PROT_READ) == 0);
    FAULTS(store8(base + 8));
    base = NULL;
    FAULTS((void)load8((char *)0x8000000000000000));
    puts("beyond a file");
    int file = open("short", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(write(file, "file", 4) == 4);
    for (int shared = 0; shared < 2; shared++) {
        base = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, file, 0);
        FAULTS((void)load8(base + 4092));
        FAULTS((void)load8(base + 8000));
        FAULTS(store8(base + 4096));
        // The kernel says EFAULT where the program would get SIGBUS.
        CHECK(write(file, base + 4096, 10) == -1 && errno == EFAULT);
        CHECK(open(base + 4096, O_RDONLY) == -1 && errno == EFAULT);
        struct iovec part = {base + 4000, 200};
        CHECK(pwritev(file, &part, 1, 0) == 96 && pread(file, base + 5000, 4, 0) == -1 && errno == EFAULT);
        CHECK(syscall(SYS_rt_sigaction, SIGUSR1, base + 4096, NULL, 8) == -1 && errno == EFAULT);
    }
    // Code beyond the end of its file.
    base = mmap(NULL, 2 * 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    FAULTS(((void (*)(void))(base + 4096 + 16))());
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], base + 4096, 5) == -1 && errno == EFAULT);
    return verdict();
}
