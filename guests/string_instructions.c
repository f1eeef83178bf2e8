// movs, cmps, scas, stos, lods: every width, every rep form, both directions,
// a count of zero, 32-bit addresses.
#include "verdict.h"

static unsigned char source[256], target[256];

static void reset(void)
{
    for (int i = 0; i < 256; i++) source[i] = (unsigned char)(i * 31 + 7), target[i] = 0xee;
}

static unsigned checksum(void)
{
    unsigned sum = 2166136261u;
    for (int i = 0; i < 256; i++) sum = (sum ^ target[i]) * 16777619u;
    return sum;
}

#define MOVE(instruction, direction, offset, n)                                                        \
    do {                                                                                               \
        reset();                                                                                       \
        unsigned char *from = source + (offset), *to = target + (offset);                              \
        unsigned long count = (n);                                                                     \
        __asm__ volatile(direction "; " instruction "; cld" : "+S"(from), "+D"(to), "+c"(count) : : "memory", "cc"); \
        printf("%s %s %08x %d %d %lu\n", direction, instruction, checksum(), (int)(from - source),     \
               (int)(to - target), count);                                                             \
    } while (0)
#define STORE(instruction, direction, offset, n)                                                       \
    do {                                                                                               \
        reset();                                                                                       \
        unsigned char *to = target + (offset);                                                         \
        unsigned long count = (n);                                                                     \
        __asm__ volatile(direction "; " instruction "; cld" : "+D"(to), "+c"(count) : "a"(0x1122334455667788UL) : "memory", "cc"); \
        printf("%s %s %08x %d %lu\n", direction, instruction, checksum(), (int)(to - target), count);  \
    } while (0)

int main(void)
{
    MOVE("movsb", "cld", 10, 1);
    MOVE("rep movsb", "cld", 10, 100);
    MOVE("rep movsb", "std", 200, 100);
    MOVE("rep movsb", "cld", 10, 0);
    MOVE("rep movsw", "cld", 10, 50);
    MOVE("rep movsw", "std", 200, 50);
    MOVE("rep movsl", "cld", 12, 20);
    MOVE("rep movsl", "std", 200, 20);
    MOVE("rep movsq", "cld", 16, 20);
    MOVE("rep movsq", "std", 200, 20);
    MOVE("movsq", "std", 100, 3);
    STORE("rep stosb", "cld", 5, 77);
    STORE("rep stosb", "std", 99, 77);
    STORE("rep stosw", "cld", 5, 33);
    STORE("rep stosl", "std", 222, 33);
    STORE("rep stosq", "cld", 8, 22);
    STORE("stosq", "cld", 8, 22);
    reset();
    memcpy(target, source, 256);
    target[60] ^= 1;
    unsigned char *from = source, *to = target;
    unsigned long count = 200;
    unsigned char equal;
    __asm__ volatile("repe cmpsb; setz %3" : "+S"(from), "+D"(to), "+c"(count), "=q"(equal) : : "memory", "cc");
    printf("repe cmpsb %d %lu %d\n", (int)(from - source), count, equal);
    from = source + 100, to = target + 160, count = 50;
    __asm__ volatile("repne cmpsb; setz %3" : "+S"(from), "+D"(to), "+c"(count), "=q"(equal) : : "memory", "cc");
    printf("repne cmpsb %d %lu %d\n", (int)(from - source), count, equal);
    to = source, count = 256;
    __asm__ volatile("repne scasb; setz %2" : "+D"(to), "+c"(count), "=q"(equal) : "a"(source[123]) : "memory", "cc");
    printf("repne scasb %d %lu %d\n", (int)(to - source), count, equal);
    memset(target, 9, 80);
    to = target, count = 256;
    __asm__ volatile("repe scasb; setz %2" : "+D"(to), "+c"(count), "=q"(equal) : "a"(9) : "memory", "cc");
    printf("repe scasb %d %lu %d\n", (int)(to - target), count, equal);
    to = source + 255, count = 256;
    __asm__ volatile("std; repne scasb; cld" : "+D"(to), "+c"(count) : "a"(source[3]) : "memory", "cc");
    printf("std scasb %d %lu\n", (int)(to - source), count);
    unsigned long loaded = 0;
    from = source, count = 9;
    __asm__ volatile("rep lodsb" : "+S"(from), "+c"(count), "+a"(loaded) : : "memory");
    printf("rep lodsb %lx %d\n", loaded, (int)(from - source));
    __asm__ volatile("std; lodsq; cld" : "+S"(from), "=a"(loaded) : : "memory", "cc");
    printf("lodsq %lx %d\n", loaded, (int)(from - source));
    // Overlapping, one byte apart: rep movsb smears the first byte.
    reset();
    from = target, to = target + 1, count = 100, target[0] = 0x42;
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    printf("smeared %02x %02x\n", target[100], target[101]);
    return verdict();
}
