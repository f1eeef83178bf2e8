// Old and rarely generated instructions: enter/leave, xlat, loop, jrcxz, bcd-free
// flag moves, high byte registers, cmpxchg, bt on memory, shld, rcl, cwd, bswap.
#include "verdict.h"

extern long enter_and_leave(long a, long b);
extern long loops(long n);
extern long jump_if_rcx_zero(long n);
__asm__(
    ".text\n"
    "enter_and_leave:\n"
    "  enter $32, $0\n"
    "  mov %rdi, -8(%rbp)\n"
    "  mov %rsi, -16(%rbp)\n"
    "  mov -8(%rbp), %rax\n"
    "  imul -16(%rbp), %rax\n"
    "  enter $16, $1\n"
    "  leave\n"
    "  leave\n"
    "  ret\n"
    "loops:\n"
    "  mov %rdi, %rcx\n"
    "  xor %eax, %eax\n"
    "1: add %rcx, %rax\n"
    "  loop 1b\n"
    "  mov $10, %ecx\n"
    "2: inc %rax\n"
    "  cmp $60, %rax\n"
    "  loopne 2b\n"
    "  mov $10, %ecx\n"
    "3: inc %rax\n"
    "  cmp %eax, %eax\n"
    "  loope 3b\n"
    "  mov $3, %ecx\n"
    "4: inc %rax\n"
    "  addr32 loop 4b\n"
    "  ret\n"
    "jump_if_rcx_zero:\n"
    "  mov %rdi, %rcx\n"
    "  jrcxz 1f\n"
    "  jecxz 2f\n"
    "  mov $1, %eax\n"
    "  ret\n"
    "1: mov $2, %eax\n"
    "  ret\n"
    "2: mov $3, %eax\n"
    "  ret\n");

int main(void)
{
    printf("enter %ld\n", enter_and_leave(6, 7));
    printf("loop %ld\n", loops(10));
    printf("jrcxz %ld %ld %ld\n", jump_if_rcx_zero(5), jump_if_rcx_zero(0), jump_if_rcx_zero(1L << 32));
    unsigned char table[256];
    for (int i = 0; i < 256; i++) table[i] = (unsigned char)(i ^ 0x5a);
    unsigned long al = 0x10;
    __asm__ volatile("xlat" : "+a"(al) : "b"(table));
    printf("xlat %lx\n", al);
    unsigned long high = 0x1234;
    __asm__ volatile("mov %%ah, %%bl; mov %%al, %%bh; add %%bh, %%ah; mov %%bx, %%cx" : "+a"(high) : : "rbx", "rcx");
    printf("high bytes %lx\n", high);
    unsigned long flags = 0;
    __asm__ volatile("stc; lahf; movzbl %%ah, %%eax; xor $1, %%eax; mov %%al, %%ah; sahf; setc %%al; movzbl %%al, %%eax"
                     : "=a"(flags) : : "cc");
    printf("sahf %lx\n", flags);
    __asm__ volatile("cmp $1, %1; pushf; pop %0" : "=r"(flags) : "r"(0L) : "cc");
    printf("pushf %lx\n", flags & 0x8d5);
    __asm__ volatile("push $0x8d5; popf; pushf; pop %0" : "=r"(flags) : : "cc", "memory");
    printf("popf %lx\n", flags & 0x8d5);
    unsigned long bits[4] = {0};
    __asm__ volatile("btsq %1, %0; btsq %2, %0" : "+m"(bits) : "r"(70L), "r"(3L) : "cc", "memory");
    printf("bts %lx %lx\n", bits[0], bits[1]);
    unsigned long left = 0x1122334455667788UL, right = 0xaabbccddeeff0011UL;
    __asm__ volatile("shld $12, %1, %0" : "+r"(left) : "r"(right) : "cc");
    __asm__ volatile("stc; rcl $5, %0; rcr $2, %0" : "+r"(right) : : "cc");
    printf("shld %lx rcl %lx\n", left, right);
    unsigned long quotient, remainder;
    __asm__ volatile("cqo; idivq %3" : "=a"(quotient), "=&d"(remainder) : "0"(-100L), "r"(7L) : "cc");
    printf("idiv %ld %ld\n", (long)quotient, (long)remainder);
    unsigned swapped = 0x11223344;
    __asm__("bswap %0" : "+r"(swapped));
    printf("bswap %x\n", swapped);
    unsigned char found;
    unsigned long expected = 5, memory = 5;
    __asm__ volatile("lock cmpxchg %3, %1; setz %0" : "=q"(found), "+m"(memory), "+a"(expected) : "r"(9L) : "cc", "memory");
    printf("cmpxchg %d %lu %lu\n", found, memory, expected);
    unsigned long wide[2] __attribute__((aligned(16))) = {1, 2};
    __asm__ volatile("lock cmpxchg16b %1; setz %0" : "=q"(found), "+m"(wide) : "a"(1L), "d"(2L), "b"(30L), "c"(40L) : "cc", "memory");
    printf("cmpxchg16b %d %lu %lu\n", found, wide[0], wide[1]);
    unsigned long swap = 10;
    __asm__ volatile("lock xadd %0, %1; xchg %0, %1" : "+r"(swap), "+m"(memory) : : "cc", "memory");
    printf("xadd %lu %lu\n", swap, memory);
    return verdict();
}
