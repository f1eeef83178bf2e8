# No C library at all: the entry stack, two system calls, done.
    .globl _start
    .text
_start:
    mov (%rsp), %rbx            # argc
    lea message(%rip), %rsi
    mov $length, %edx
    mov $1, %edi
    mov $1, %eax
    syscall
    # `syscall` leaves the return address in rcx, the flags in r11.
    lea after(%rip), %rax
    xor %ecx, %ecx
    stc
    mov $39, %eax               # getpid
    syscall
after:
    lea after(%rip), %rdx
    cmp %rdx, %rcx
    jne wrong
    test $1, %r11               # the carry flag was set
    jz wrong
    lea 40(%rbx), %rdi          # 40 + argc
    mov $231, %eax
    syscall
wrong:
    mov $1, %edi
    mov $231, %eax
    syscall
    .section .rodata
message:
    .ascii "hello without libc\n"
    .set length, . - message
    .section .note.GNU-stack,"",@progbits
