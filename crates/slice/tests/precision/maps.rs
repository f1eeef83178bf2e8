//! Memory that the kernel gives, moves and takes back.

use crate::Case;
use crate::assembly::case;

/// F-002-52
pub fn cases() -> Vec<Case> {
    vec![
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
        case(
            "a_mapped_file_has_the_file_s_bytes",
            MAPPED_FILE,
            &["third", "write", "map"],
            &["first"],
        ),
        case(
            "a_map_comes_from_the_file_at_its_offset",
            "mov eax, 2
             lea rdi, [name]
             xor esi, esi
             syscall
             mov r8d, eax
             mov eax, 9
             xor edi, edi
             mov esi, 4096
             mov edx, 1
             mov r10d, 2
             xor r9d, r9d
             map: syscall
             criterion: mov cl, [rax + 5]
             .data
             name: .asciz \"/etc/passwd\"
             .text",
            &["map"],
            &[],
        )
        .coming_from(&[5]),
    ]
}

/// open 2 (O_RDWR, O_CREAT, O_TRUNC), unlink 87, write 1, mmap 9 (shared, to be read).
const MAPPED_FILE: &str = "
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
    mov eax, 9
    xor edi, edi
    mov esi, 4096
    mov edx, 1
    mov r10d, 1
    mov r8d, ebx
    xor r9d, r9d
    map: syscall
    criterion: mov cl, [rax + 2]
    .data
    name: .asciz \"/tmp/why-precision-of-maps\"
    .text";
