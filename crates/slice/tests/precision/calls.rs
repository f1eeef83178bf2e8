//! System calls: what they define, what they use, what passes through the kernel.

use crate::Case;
use crate::assembly::case;

/// F-002-52, F-001-44
pub fn cases() -> Vec<Case> {
    vec![
        case(
            "read_defines_what_it_read",
            "before: mov byte ptr [buf + 2], 1
             xor eax, eax
             xor edi, edi
             buffer: lea rsi, [buf]
             length: mov edx, 4
             read: syscall
             criterion: mov al, [buf + 2]",
            &["read", "buffer", "length"],
            &["before"],
        ),
        case(
            "read_does_not_define_what_it_did_not_read",
            "before: mov byte ptr [buf + 5], 1
             xor eax, eax
             xor edi, edi
             lea rsi, [buf]
             mov edx, 4
             read: syscall
             criterion: mov al, [buf + 5]",
            &["before"],
            &["read"],
        ),
        case(
            "write_uses_what_it_wrote",
            "third: mov byte ptr [buf + 3], 3
             fifth: mov byte ptr [buf + 5], 3
             mov eax, 1
             mov edi, 1
             lea rsi, [buf]
             length: mov edx, 4
             criterion: syscall",
            &["third", "length"],
            &["fifth"],
        ),
        case(
            "bytes_pass_through_a_pipe",
            "mov eax, 22
             lea rdi, [buf]
             pipe: syscall
             first: mov byte ptr [buf + 64], 1
             second: mov byte ptr [buf + 65], 2
             mov eax, 1
             mov edi, [buf + 4]
             lea rsi, [buf + 64]
             mov edx, 2
             write: syscall
             xor eax, eax
             mov edi, [buf]
             lea rsi, [buf + 128]
             mov edx, 2
             read: syscall
             criterion: mov al, [buf + 129]",
            &["second", "write", "read", "pipe"],
            &["first"],
        ),
        case(
            "bytes_pass_through_a_pair_of_sockets",
            "mov eax, 53
             mov edi, 1
             mov esi, 1
             xor edx, edx
             lea r10, [buf]
             pair: syscall
             first: mov byte ptr [buf + 64], 1
             second: mov byte ptr [buf + 65], 2
             mov eax, 1
             mov edi, [buf + 4]
             lea rsi, [buf + 64]
             mov edx, 2
             write: syscall
             xor eax, eax
             mov edi, [buf]
             lea rsi, [buf + 128]
             mov edx, 2
             read: syscall
             criterion: mov al, [buf + 129]",
            &["second", "write", "read", "pair"],
            &["first"],
        ),
        case(
            "bytes_pass_through_a_file_at_their_offset",
            FILE,
            &["third", "write", "seek", "read"],
            &["first"],
        ),
        case(
            "mmap_defines_the_memory_it_gives",
            "mov eax, 9
             xor edi, edi
             length: mov esi, 4096
             mov edx, 3
             mov r10d, 34
             mov r8, -1
             xor r9d, r9d
             map: syscall
             mov rbx, rax
             beside: mov byte ptr [rbx + 1], 5
             criterion: mov cl, [rbx + 2]",
            &["map", "length"],
            &["beside"],
        ),
        case(
            "mremap_takes_contents_along",
            "mov eax, 9
             xor edi, edi
             mov esi, 4096
             mov edx, 3
             mov r10d, 34
             mov r8, -1
             xor r9d, r9d
             map: syscall
             mov rbx, rax
             stored: mov byte ptr [rbx + 2], 5
             beside: mov byte ptr [rbx + 3], 5
             mov eax, 9
             mov esi, 4096
             syscall
             mov r8, rax
             mov eax, 25
             mov rdi, rbx
             mov esi, 4096
             mov edx, 4096
             mov r10d, 3
             moved: syscall
             criterion: mov cl, [rax + 2]",
            &["moved", "stored"],
            &["beside"],
        ),
        case(
            "madvise_can_give_zeros",
            "mov eax, 9
             xor edi, edi
             mov esi, 4096
             mov edx, 3
             mov r10d, 34
             mov r8, -1
             xor r9d, r9d
             map: syscall
             mov rbx, rax
             stored: mov byte ptr [rbx + 2], 5
             mov eax, 28
             mov rdi, rbx
             mov esi, 4096
             mov edx, 4
             dropped: syscall
             criterion: mov cl, [rbx + 2]",
            &["dropped"],
            &["stored"],
        ),
        case(
            "brk_defines_the_memory_it_gives",
            "mov eax, 12
             xor edi, edi
             asked: syscall
             mov rbx, rax
             lea rdi, [rax + 4096]
             mov eax, 12
             grown: syscall
             criterion: mov cl, [rbx + 100]",
            &["asked", "grown"],
            &[],
        ),
    ]
}

/// open 2 (O_RDWR, O_CREAT, O_TRUNC), unlink 87, write 1, lseek 8, read 0.
const FILE: &str = "
    mov eax, 2
    lea rdi, [name]
    mov esi, 0x242
    mov edx, 0x1a4
    syscall
    mov ebx, eax
    mov eax, 87
    lea rdi, [name]
    syscall
    first: mov byte ptr [buf], 1
    third: mov byte ptr [buf + 2], 3
    mov eax, 1
    mov edi, ebx
    lea rsi, [buf]
    mov edx, 4
    write: syscall
    mov eax, 8
    mov edi, ebx
    offset: mov esi, 2
    xor edx, edx
    seek: syscall
    xor eax, eax
    mov edi, ebx
    lea rsi, [buf + 64]
    mov edx, 1
    read: syscall
    criterion: mov al, [buf + 64]
    .data
    name: .asciz \"/tmp/why-precision-of-slices\"
    .text";
