//! Single instructions: bytes, sub-registers, flags, lanes, `rep`, conditional moves.

use crate::Case;
use crate::support::{Guest, Language};

/// A guest of a few instructions, with 4096 bytes at `buf`. Functions follow behind
/// a line of dashes.
pub fn assembly(body: &str) -> Guest {
    let (body, functions) = body.split_once("---").unwrap_or((body, ""));
    let source = format!(
        ".intel_syntax noprefix\n.globl _start\n.bss\n.align 64\nbuf: .skip 4096\n.text\n\
         .type _start, @function\n_start:\n{body}\nmov eax, 231\nxor edi, edi\nsyscall\n\
         hlt\n{functions}\n"
    );
    Guest { source, language: Language::Assembly, input: b"abcdefgh" }
}

/// One whose criterion has the mark `criterion`.
pub fn case(
    name: &'static str,
    body: &str,
    inside: &'static [&'static str],
    outside: &'static [&'static str],
) -> Case {
    let guest = assembly(body);
    Case { name, guest, criterion: "criterion", inside, outside, from: None, large: false }
}

pub fn without_reference(case: Case) -> Case {
    Case { large: true, ..case }
}

/// F-002-05, F-001-03
pub fn cases() -> Vec<Case> {
    vec![
        case(
            "a_byte_comes_from_the_last_store_to_it",
            "eight: mov qword ptr [buf], rsp
             four: mov dword ptr [buf + 2], ebx
             one: mov byte ptr [buf + 3], cl
             criterion: movzx eax, word ptr [buf + 4]",
            &["four"],
            &["eight", "one"],
        ),
        case(
            "a_load_has_every_store_that_it_overlaps",
            "eight: mov qword ptr [buf], rsp
             four: mov dword ptr [buf + 2], ebx
             one: mov byte ptr [buf + 3], cl
             beside: mov byte ptr [buf + 8], cl
             criterion: mov eax, dword ptr [buf + 1]",
            &["eight", "four", "one"],
            &["beside"],
        ),
        case(
            "the_second_byte_of_a_register_has_a_life_of_its_own",
            "low: mov al, 1
             high: mov ah, 2
             criterion: mov cl, ah",
            &["high"],
            &["low"],
        ),
        case(
            "a_write_of_32_bits_defines_all_64",
            "wide: mov rax, -1
             narrow: mov eax, 5
             mov rcx, rax
             shift: shr rcx, 32
             criterion: mov dl, cl",
            &["narrow", "shift"],
            &["wide"],
        ),
        case(
            "a_write_of_16_bits_keeps_the_rest",
            "wide: mov rax, -1
             narrow: mov ax, 5
             shift: shr rax, 32
             criterion: mov dl, al",
            &["wide", "shift"],
            &["narrow"],
        ),
        case(
            "a_byte_that_a_constant_leaves_alone_is_not_defined",
            "made: mov ebx, 0x11223344
             masked: and ebx, 0xffff00ff
             criterion: mov cl, bl",
            &["made"],
            &["masked"],
        ),
        case(
            "carry_comes_from_what_set_the_carry",
            "mov ebx, 1
             carry: cmp ebx, 2
             step: inc ecx
             criterion: setc al",
            &["carry"],
            &["step"],
        ),
        case(
            "zero_comes_from_what_set_zero",
            "mov ebx, 1
             carry: cmp ebx, 2
             step: inc ecx
             criterion: setz al",
            &["step"],
            &["carry"],
        ),
        case(
            "a_lane_comes_from_what_was_put_there",
            "movl: mov eax, 7
             first: movd xmm0, eax
             mov ecx, 8
             second: pinsrd xmm0, ecx, 1
             mov edx, 9
             third: pinsrd xmm0, edx, 2
             sum: paddd xmm0, xmm0
             criterion: pextrd esi, xmm0, 1",
            &["second", "sum"],
            &["first", "third", "movl"],
        ),
        case(
            "a_shuffle_moves_lanes",
            "mov eax, 7
             first: movd xmm0, eax
             mov ecx, 8
             second: pinsrd xmm0, ecx, 1
             shuffle: pshufd xmm1, xmm0, 0x1b
             criterion: pextrd esi, xmm1, 3",
            &["first", "shuffle"],
            &["second"],
        ),
        case(
            "rep_copies_byte_by_byte",
            "third: mov byte ptr [buf + 3], 3
             fourth: mov byte ptr [buf + 4], 4
             lea rsi, [buf]
             lea rdi, [buf + 64]
             count: mov ecx, 8
             copy: rep movsb
             criterion: mov al, byte ptr [buf + 67]",
            &["third", "copy", "count"],
            &["fourth"],
        ),
        case(
            "rep_goes_down_if_told_to",
            "third: mov byte ptr [buf + 3], 3
             fourth: mov byte ptr [buf + 4], 4
             beyond: mov byte ptr [buf + 75], 4
             lea rsi, [buf + 7]
             lea rdi, [buf + 71]
             mov ecx, 8
             down: std
             copy: rep movsb
             cld
             criterion: mov ax, word ptr [buf + 67]",
            &["third", "fourth", "copy", "down"],
            &["beyond"],
        ),
        case(
            "what_rep_does_not_reach_is_as_it_was",
            "kept: mov byte ptr [buf + 75], 4
             lea rsi, [buf + 7]
             lea rdi, [buf + 71]
             mov ecx, 8
             down: std
             lea rax, [copy]
             jmp rax
             copy: rep movsb
             cld
             criterion: mov al, byte ptr [buf + 75]",
            &["kept"],
            &["copy", "down"],
        ),
        case(
            "a_search_uses_what_it_compared",
            "third: mov byte ptr [buf + 3], 3
             ninth: mov byte ptr [buf + 9], 9
             lea rdi, [buf]
             mov al, 3
             mov ecx, 8
             search: repne scasb
             criterion: mov rdx, rcx",
            &["third", "search"],
            &["ninth"],
        ),
        case(
            "a_conditional_move_has_both_values_and_the_condition",
            "one: mov eax, 1
             other: mov ebx, 2
             beside: mov ecx, 3
             condition: test edi, edi
             cmovz eax, ebx
             criterion: mov edx, eax",
            &["one", "other", "condition"],
            &["beside"],
        ),
        case(
            "what_is_zero_by_itself_depends_on_nothing",
            "made: mov eax, 1
             zeroed: xor eax, eax
             criterion: mov edx, eax",
            &["zeroed"],
            &["made"],
        ),
        case(
            "stack_pointer_bookkeeping_is_left_out",
            "moved: sub rsp, 64
             stored: mov qword ptr [rsp + 8], 5
             again: add rsp, 16
             criterion: mov rax, [rsp - 8]",
            &["stored"],
            &["moved", "again"],
        ),
        case(
            "the_frame_pointer_is_the_stack_pointer_by_another_name",
            "moved: sub rsp, 64
             frame: mov rbp, rsp
             stored: mov qword ptr [rbp + 8], 5
             criterion: mov rax, [rbp + 8]",
            &["stored"],
            &["moved", "frame"],
        ),
        case(
            "a_conditional_set_has_the_condition_and_nothing_else",
            "made: mov eax, 1
             mov ebx, 2
             condition: cmp ebx, 2
             set: setz al
             criterion: mov cl, al",
            &["condition", "set"],
            &["made"],
        ),
        case(
            "a_test_does_not_depend_on_flags_that_it_leaves_open",
            "made: mov eax, 1
             before: add ebx, 9
             criterion: test eax, eax",
            &["made"],
            &["before"],
        ),
        case(
            "a_division_does_not_depend_on_flags_that_it_leaves_open",
            "made: mov eax, 7
             xor edx, edx
             mov ecx, 2
             before: add ebx, 9
             criterion: idiv ecx",
            &["made"],
            &["before"],
        ),
        case(
            "much_that_is_put_together_byte_by_byte_is_told",
            "mov esi, 3
             1: lea eax, [esi + 7]
             made: vmovd xmm1, eax
             vpbroadcastb ymm0, xmm1
             vpunpcklbw ymm2, ymm0, ymm1
             vpunpckhbw ymm3, ymm0, ymm1
             vpunpcklbw ymm4, ymm1, ymm0
             vpunpckhbw ymm5, ymm1, ymm0
             vpunpcklbw ymm6, ymm0, ymm1
             vpunpckhbw ymm7, ymm0, ymm1
             vpunpcklbw ymm8, ymm1, ymm0
             vpunpckhbw ymm9, ymm1, ymm0
             unused: vpunpckhbw ymm10, ymm0, ymm1
             test esi, esi
             jnz 2f
             nop
             2: vpxor ymm2, ymm2, ymm3
             vpxor ymm4, ymm4, ymm5
             vpxor ymm6, ymm6, ymm7
             vpxor ymm8, ymm8, ymm9
             vpxor ymm2, ymm2, ymm4
             vpxor ymm6, ymm6, ymm8
             dec esi
             jnz 1b
             criterion: vpxor ymm2, ymm2, ymm6",
            &["made"],
            &["unused"],
        ),
        // The reference cannot ask the processor about a gather: it has no fixed operands.
        without_reference(case(
            "a_gather_has_the_elements_it_took",
            "lea rsi, [buf]
             first: mov dword ptr [buf + 4], 7
             second: mov dword ptr [buf + 64], 8
             beside: mov dword ptr [buf + 8], 9
             mov eax, 1
             movd xmm1, eax
             mov eax, 16
             pinsrd xmm1, eax, 1
             pcmpeqd xmm2, xmm2
             pxor xmm0, xmm0
             gather: vpgatherdd xmm0, [rsi + xmm1 * 4], xmm2
             criterion: pextrd edx, xmm0, 1",
            &["second", "gather"],
            &["beside"],
        )),
        without_reference(case(
            "much_may_run_behind_a_gather",
            "lea rsi, [buf]
             pxor xmm1, xmm1
             pcmpeqd xmm2, xmm2
             gather: vpgatherdd xmm0, [rsi + xmm1 * 4], xmm2
             count: mov ecx, 50000
             1: add eax, ecx
             dec ecx
             jnz 1b
             criterion: mov edx, ecx",
            &["count"],
            &["gather"],
        )),
    ]
}
