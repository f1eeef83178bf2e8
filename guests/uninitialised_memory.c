// Prints a hash of stack and heap bytes nobody initialised, of AT_RANDOM, of the
// pid, the time and addresses: whatever it is, replay must show the same.
#include "verdict.h"
#include <sys/auxv.h>
#include <sys/random.h>
#include <time.h>

static unsigned long hash(const void *bytes, size_t size, unsigned long h)
{
    for (size_t i = 0; i < size; i++) h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211UL;
    return h;
}
__attribute__((noinline)) static unsigned long stack_bytes(void)
{
    unsigned char bytes[8192];
    __asm__ volatile("" : : "r"(bytes) : "memory");
    return hash(bytes, sizeof bytes, 14695981039346656037UL);
}

int main(void)
{
    printf("stack %lx\n", stack_bytes());
    for (int i = 0; i < 100; i++) free(malloc((size_t)i * 50));
    unsigned char *heap = malloc(3000);
    __asm__ volatile("" : "+r"(heap) : : "memory");
    printf("heap %lx\n", hash(heap, 3000, 1));
    printf("random %lx\n", hash((void *)getauxval(AT_RANDOM), 16, 1));
    unsigned char drawn[16];
    CHECK(getrandom(drawn, sizeof drawn, 0) == sizeof drawn);
    printf("drawn %lx\n", hash(drawn, sizeof drawn, 1));
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("pid %d parent %d time %ld.%09ld\n", getpid(), getppid(), now.tv_sec, now.tv_nsec);
    printf("tsc %llx\n", (unsigned long long)__builtin_ia32_rdtsc());
    return 0;
}
