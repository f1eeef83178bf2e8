// Flags live across jumps, calls, returns and indirect transfers: an add with
// carry chain in which every step is a block of its own.
#include "verdict.h"

extern unsigned long carry_chain(const unsigned long *a, const unsigned long *b, unsigned long *sum, long n);
__asm__(
    ".text\n"
    "carry_chain:\n"
    "  push %rbx\n"
    "  xor %eax, %eax\n"
    "1: mov (%rdi), %r8\n"
    "  adc (%rsi), %r8\n"
    "  jmp 2f\n"
    "  ud2\n"
    "2: mov %r8, (%rdx)\n"
    "  lea 3f(%rip), %rbx\n"
    "  jmp *%rbx\n"
    "3: lea 8(%rdi), %rdi\n"
    "  lea 8(%rsi), %rsi\n"
    "  call 4f\n"
    "  lea -1(%rcx), %rcx\n"
    "  jrcxz 5f\n"
    "  jmp 1b\n"
    "4: lea 8(%rdx), %rdx\n"
    "  ret\n"
    "5: setc %al\n"
    "  pop %rbx\n"
    "  ret\n");

int main(void)
{
    unsigned long a[64], b[64], sum[64], state = 88172645463325252UL;
    for (int i = 0; i < 64; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        a[i] = state;
        b[i] = i % 3 ? ~state : state * 3;
    }
    unsigned long carry = carry_chain(a, b, sum, 64), expected_carry = 0;
    for (int i = 0; i < 64; i++) {
        unsigned __int128 wide = (unsigned __int128)a[i] + b[i] + expected_carry;
        CHECK(sum[i] == (unsigned long)wide);
        expected_carry = (unsigned long)(wide >> 64);
    }
    CHECK(carry == expected_carry);
    return verdict();
}
