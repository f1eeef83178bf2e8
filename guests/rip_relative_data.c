// Addresses formed from rip are the guest's own, also within the same block,
// and data between instructions can be read.
#include "verdict.h"

extern long inside_block(void), data_in_code(void);
__asm__(
    ".text\n"
    "inside_block:\n"
    "  lea 1f(%rip), %rax\n"
    "  lea inside_block(%rip), %rcx\n"
    "1: sub %rcx, %rax\n"
    "  lea (%rip), %rdx\n"
    "2: lea 2b(%rip), %rcx\n"
    "  sub %rcx, %rdx\n"
    "  add %rdx, %rax\n"
    "  ret\n"
    "data_in_code:\n"
    "  mov 1f(%rip), %rax\n"
    "  add data_in_code(%rip), %rax\n"
    "  sub data_in_code(%rip), %rax\n"
    "  cmpq $12345, 1f(%rip)\n"
    "  jne 2f\n"
    "  pushq 1f(%rip)\n"
    "  pop %rax\n"
    "2: ret\n"
    "1: .quad 12345\n");

int main(void)
{
    printf("%ld\n%ld\n", inside_block(), data_in_code());
    return verdict();
}
