// Code that treats rsp and return addresses as plain data: call/pop, push/ret,
// ret imm16, pop to [rsp], call through [rsp], a switched stack, the red zone.
#include "verdict.h"

extern long tricks(long *results);
extern long red_zone(long n);
__asm__(
    ".text\n"
    "tricks:\n"
    "  push %rbx\n"
    "  push %rbp\n"
    "  mov %rdi, %rbx\n"
    "  call 1f\n"                      // call/pop: the guest's own address
    "1: pop %rax\n"
    "  lea 1b(%rip), %rcx\n"
    "  sub %rcx, %rax\n"
    "  mov %rax, (%rbx)\n"
    "  lea 2f(%rip), %rax\n"           // push/ret as a jump
    "  push %rax\n"
    "  ret\n"
    "  ud2\n"
    "2: movq $2, 8(%rbx)\n"
    "  mov %rsp, %rbp\n"               // ret imm16 pops its arguments
    "  push $11\n"
    "  push $22\n"
    "  call 3f\n"
    "  sub %rsp, %rbp\n"
    "  mov %rbp, 16(%rbx)\n"
    "  jmp 4f\n"
    "3: mov 8(%rsp), %rax\n"
    "  ret $16\n"
    "4: lea 5f(%rip), %rax\n"          // call through [rsp]
    "  push %rax\n"
    "  call *(%rsp)\n"
    "  pop %rcx\n"
    "  jmp 6f\n"
    "5: movq $44, 24(%rbx)\n"
    "  ret\n"
    "6: push $55\n"                    // pop to memory addressed by rsp: after the increment
    "  push $66\n"
    "  popq (%rsp)\n"
    "  pop %rax\n"
    "  mov %rax, 32(%rbx)\n"
    "  mov %rsp, %rax\n"               // push rsp stores the old value
    "  push %rsp\n"
    "  pop %rcx\n"
    "  sub %rcx, %rax\n"
    "  mov %rax, 40(%rbx)\n"
    "  mov %rsp, %rbp\n"               // pop rsp, xchg with rsp: run on another stack
    "  lea scratch_end(%rip), %rax\n"
    "  xchg %rax, %rsp\n"
    "  push $77\n"
    "  call 7f\n"
    "  xchg %rax, %rsp\n"
    "  mov %rbp, %rsp\n"
    "  push %rsp\n"
    "  pop %rsp\n"
    "  jmp 8f\n"
    "7: mov 8(%rsp), %rcx\n"
    "  mov %rcx, 48(%rbx)\n"
    "  ret\n"
    "8: lea 9f(%rip), %rax\n"          // jmp through memory below a moved rsp
    "  push %rax\n"
    "  add $8, %rsp\n"
    "  jmp *-8(%rsp)\n"
    "  ud2\n"
    "9: lea 10f(%rip), %rax\n"         // a return address rewritten in place
    "  call 11f\n"
    "  ud2\n"
    "11: mov %rax, (%rsp)\n"
    "  ret\n"
    "10: movq $99, 56(%rbx)\n"
    "  pop %rbp\n"
    "  pop %rbx\n"
    "  ret\n"
    "red_zone:\n"                      // a leaf that keeps data below rsp, across branches
    "  mov %rdi, -8(%rsp)\n"
    "  movq $0, -128(%rsp)\n"
    "  mov %rdi, -64(%rsp)\n"
    "1: mov -8(%rsp), %rax\n"
    "  add %rax, -128(%rsp)\n"
    "  decq -8(%rsp)\n"
    "  jnz 1b\n"
    "  lea 2f(%rip), %rax\n"
    "  jmp *%rax\n"
    "2: mov -128(%rsp), %rax\n"
    "  add -64(%rsp), %rax\n"
    "  ret\n"
    ".bss\n"
    ".balign 16\n"
    "  .skip 4096\n"
    "scratch_end:\n"
    "  .skip 16\n"
    ".text\n");

int main(void)
{
    long results[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    tricks(results);
    for (int i = 0; i < 8; i++) printf("%ld\n", results[i]);
    printf("red zone %ld\n", red_zone(100));
    return verdict();
}
