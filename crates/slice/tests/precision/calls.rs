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
        )
        .coming_from(&[2]),
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
            "bytes_pass_through_a_copy_of_a_pipe_s_end",
            "mov eax, 22
             lea rdi, [buf]
             pipe: syscall
             mov eax, 72
             mov edi, [buf + 4]
             xor esi, esi
             mov edx, 50
             copied: syscall
             mov ebx, eax
             first: mov byte ptr [buf + 64], 1
             second: mov byte ptr [buf + 65], 2
             mov eax, 1
             mov edi, ebx
             lea rsi, [buf + 64]
             mov edx, 2
             write: syscall
             xor eax, eax
             mov edi, [buf]
             lea rsi, [buf + 128]
             mov edx, 2
             read: syscall
             criterion: mov al, [buf + 129]",
            &["second", "write", "read", "copied"],
            &["first"],
        ),
        case(
            "a_file_that_is_opened_twice_has_two_positions",
            OPENED_TWICE,
            &["seek", "read"],
            &["other"],
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

/// The same file by two descriptors; each has been moved.
const OPENED_TWICE: &str = "
    mov eax, 2
    lea rdi, [name]
    xor esi, esi
    syscall
    mov ebx, eax
    mov eax, 2
    lea rdi, [name]
    xor esi, esi
    syscall
    mov ebp, eax
    mov eax, 8
    mov edi, ebx
    mov esi, 2
    xor edx, edx
    seek: syscall
    mov eax, 8
    mov edi, ebp
    mov esi, 3
    xor edx, edx
    other: syscall
    xor eax, eax
    mov edi, ebx
    lea rsi, [buf + 64]
    mov edx, 1
    read: syscall
    criterion: mov al, [buf + 64]
    .data
    name: .asciz \"/proc/self/exe\"
    .text";
