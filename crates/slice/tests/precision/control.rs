//! Why something ran: branches, tables, calls, jumps out of functions, signals.

use crate::Case;
use crate::assembly::case;

/// F-001-34 to 37, F-001-41
pub fn cases() -> Vec<Case> {
    vec![
        case(
            "what_follows_a_branch_s_join_does_not_depend_on_it",
            "decide: cmp eax, 1
             branch: je 1f
             arm: inc ebx
             1: nop
             criterion: mov ecx, 1",
            &[],
            &["decide", "branch", "arm"],
        ),
        case(
            "a_case_of_a_switch_depends_on_the_index",
            "mov ebx, 5
             xor eax, eax
             again: nop
             index: and eax, 3
             unused: add ebx, 1
             jump: jmp [table + rax * 8]
             zero: mov ecx, 1
             jmp 2f
             one: nop
             criterion: mov ecx, 2
             jmp 2f
             2: inc eax
             cmp eax, 2
             jb again
             .data
             table: .quad zero, one, zero, zero
             .text",
            &["index", "jump"],
            &["unused", "zero"],
        ),
        case(
            "recursion_keeps_branches_of_activations_apart",
            "mov edi, 3
             call f
             jmp 9f
             f: cmp edi, 0
             bottom: je 1f
             push rdi
             dec edi
             inner: call f
             pop rdi
             side: cmp edi, 2
             je 2f
             nop
             2: nop
             criterion: mov eax, 1
             1: ret
             9: nop",
            &["f", "bottom"],
            &["side", "inner"],
        ),
        case(
            "a_call_through_the_stack_returns_to_where_it_was",
            "lea rax, [f]
             push rax
             why: cmp dword ptr [buf], 0
             decide: jne 7f
             call [rsp]
             back: mov ecx, 1
             7: nop
             pop rax
             jmp 9f
             f: cmp dword ptr [buf], 1
             inside: je 8f
             nop
             8: ret
             9: mov eax, 5
             call g
             criterion: mov ebx, 1
             jmp 6f
             g: ret
             6: nop",
            &[],
            &["why", "decide", "inside"],
        ),
        case(
            "a_handler_that_interrupts_a_handler_ends_alone",
            NESTED_SIGNALS,
            &["why", "decide"],
            &["inner_why", "inner_decides"],
        ),
        case(
            "a_jump_out_of_recursion_comes_to_the_activation_that_the_stack_says",
            "mov edi, 2
             call f
             nop
             ---
             .type f, @function
             f: cmp edi, 2
             jne 1f
             mov [buf], rsp
             1: cmp edi, 0
             je 5f
             dec edi
             call f
             ret
             5: call throw
             ret
             land: mov eax, [rsp]
             call g
             criterion: mov ecx, 1
             ret
             .type g, @function
             g: ret
             .type throw, @function
             throw: mov rsp, [buf]
             out: jmp [where]
             .data
             where: .quad land
             .text",
            &["out"],
            &[],
        ),
        case("an_address_that_is_none_faults_as_it_does_untraced", NO_ADDRESS, &["stores"], &[]),
        case(
            "a_saved_register_is_passed_by",
            "made: mov ebx, 7
             call f
             criterion: mov eax, ebx
             ---
             .type f, @function
             f: push rbx
             mov ebx, 1
             back: pop rbx
             ret",
            &["made"],
            &["f", "back"],
        ),
        case(
            "a_saved_register_that_was_changed_on_the_stack_is_not_passed_by",
            "made: mov ebx, 7
             call f
             criterion: mov eax, ebx
             ---
             .type f, @function
             f: push rbx
             mov ebx, 1
             changed: mov byte ptr [rsp + 1], 9
             back: pop rbx
             ret",
            &["made", "f", "changed", "back"],
            &[],
        ),
        case(
            "a_tail_call_takes_its_caller_s_place",
            "mov edi, 1
             mov edx, 2
             why: cmp edi, 1
             decide: jne 8f
             called: call f
             call g
             8: jmp 9f
             f: cmp esi, 4
             inside: je 1f
             1: nop
             tail: jmp g
             g: dec edx
             jz 1f
             mov edx, 1
             criterion: mov eax, 1
             1: ret
             9: nop",
            &["why", "decide", "called", "tail"],
            &["f", "inside"],
        ),
        case(
            "a_part_that_was_moved_away_comes_back_to_its_own_activation",
            "mov edi, 2
             xor esi, esi
             call f
             jmp 9f
             9: nop
             ---
             .type f, @function
             f: cmp edi, 1
             decide: je 1f
             dec edi
             call f
             criterion: mov ecx, 1
             1: inc esi
             cmp esi, 1
             je 4f
             2: jmp [table + 8 * rsi]
             3: ret
             4: jmp moved
             .type moved, @function
             moved: nop
             jmp 2b
             .data
             table: .quad 0, 1b, 3b, 3b
             .text",
            &["f", "decide"],
            &["moved"],
        ),
        case(
            "what_is_only_jumped_to_is_a_new_activation_too",
            "mov edi, 2
             call f
             jmp 9f
             9: nop
             ---
             .type before, @function
             .size before, 1
             before: ret
             .cfi_startproc
             5: cmp edi, 1
             decide: je 1f
             dec edi
             call f
             criterion: mov ecx, 1
             1: nop
             ret
             .cfi_endproc
             .type f, @function
             f: jmp 5b",
            &["decide"],
            &[],
        ),
        case(
            "a_long_jump_decides_what_runs_behind_it",
            "mov edi, 1
             call set
             back: test eax, eax
             jnz 2f
             call f
             not: mov eax, 1
             jmp 9f
             2: nop
             criterion: mov ecx, 2
             9: nop
             ---
             .type set, @function
             set: lea rbx, [rsp + 8]
             mov r12, [rsp]
             xor eax, eax
             ret
             .type f, @function
             f: call g
             ret
             .type g, @function
             g: test edi, edi
             decide: jz 1f
             leap: mov eax, 1
             mov rsp, rbx
             jump: jmp r12
             1: ret",
            &["g", "decide", "leap"],
            &["not"],
        ),
        case(
            "what_runs_behind_a_long_jump_runs_because_of_it",
            "mov edi, 1
             call set
             back: nop
             criterion: mov ecx, 2
             test eax, eax
             jnz 9f
             call f
             9: nop
             ---
             .type set, @function
             set: lea rbx, [rsp + 8]
             mov r12, [rsp]
             xor eax, eax
             ret
             .type f, @function
             f: call g
             ret
             .type g, @function
             g: test edi, edi
             decide: jz 1f
             mov eax, 1
             mov rsp, rbx
             jump: jmp r12
             1: ret",
            &["g", "decide", "jump"],
            &[],
        ),
        case(
            "a_call_through_memory_depends_on_what_is_there",
            "lea rax, [g]
             put: mov [buf], rax
             other: mov qword ptr [buf + 8], 5
             call [buf]
             jmp 9f
             g: nop
             criterion: mov eax, 1
             ret
             9: nop",
            &["put"],
            &["other"],
        ),
        case(
            "a_jump_through_a_variable_depends_on_what_is_there",
            "lea rax, [g]
             put: mov [rip + pointer], rax
             other: mov qword ptr [buf + 8], 5
             call f
             jmp 9f
             f: xor ecx, ecx
             jmp [rip + pointer]
             g: nop
             criterion: mov eax, 1
             ret
             .data
             pointer: .quad 0
             .text
             9: nop",
            &["put"],
            &["other"],
        ),
        case(
            "a_handler_gets_its_signal_and_gives_registers_back",
            SIGNAL,
            &["made", "sent"],
            &["changed"],
        ),
        case("what_a_handler_stored_is_its", SIGNAL_STORES, &["stores"], &["made"]),
        case("a_handler_runs_because_its_signal_was_sent", SIGNAL_STORES, &["sends"], &["made"]),
        case(
            "vector_registers_come_back_behind_a_handler",
            SIGNAL_VECTORS,
            &["made"],
            &["changed"],
        ),
        case("a_handler_can_change_what_comes_back", SIGNAL_FRAME, &["changed"], &["made"]),
        case(
            "what_a_signal_interrupts_goes_on_for_the_same_reason",
            SIGNAL_CONTROL,
            &["why", "decide"],
            &["changed", "inside"],
        ),
        case(
            "what_is_interrupted_goes_on_though_the_handler_did_not_return",
            SIGNAL_NO_RETURN,
            &["why", "decide"],
            &["changed", "inside"],
        ),
        case(
            "the_register_that_traced_code_takes_is_the_guest_s_all_the_same",
            CURSOR,
            &["taken", "made", "seen"],
            &["beside"],
        ),
    ]
}

/// A handler changes all registers; they come back. rt_sigaction 13, getpid 39,
/// kill 62, rt_sigreturn 15.
const SIGNAL: &str = "
    mov eax, 13
    mov edi, 10
    lea rsi, [action]
    xor edx, edx
    mov r10d, 8
    syscall
    mov eax, 39
    syscall
    made: mov ebx, 7
    mov edi, eax
    mov esi, 10
    mov eax, 62
    sent: syscall
    mov edx, eax
    criterion: add ebx, edx
    ---
    handler: nop
    changed: mov ebx, 1
    ret
    restorer: mov eax, 15
    syscall
    .data
    action: .quad handler, 0x04000000, restorer, 0";

/// R11 in every role, among all other registers, through branches, and where an instruction
/// faults: R11 is at 40 + 8 × 3 in the context, RIP at 40 + 8 × 16, RBX as above. A wrong value
/// leads to `ud2`.
const CURSOR: &str = "
    mov eax, 13
    mov edi, 11
    lea rsi, [action]
    xor edx, edx
    mov r10d, 8
    syscall
    beside: lea r11, [rip + 1f]
    jmp r11
    1: lea r11, [buf]
    mov qword ptr [r11 + 16], offset called
    call [r11 + 16]
    taken: mov r11d, 41
    mov rax, r11
    lea rcx, [rax + 1]
    lea rdx, [r11 + rcx]
    lea rbx, [rdx + r11 * 2]
    mov rbp, rbx
    mov rsi, rbp
    mov rdi, rsi
    mov r8, rdi
    mov r9, r8
    mov r10, r9
    mov r12, r10
    mov r13, r12
    mov r14, r13
    mov r15, r14
    add r11, r15
    push r11
    pop qword ptr [buf + 8]
    xchg r11, r15
    inc r11b
    cmp r11d, 166
    jne 9f
    cmp r15, qword ptr [buf + 8]
    jne 9f
    made: lea r11, [r11 + 1000]
    mov ebx, 5
    xor r9d, r9d
    faults: mov qword ptr [r9 + r11], rbx
    behind: cmp r11, 1167
    jne 9f
    cmp ebx, 5
    jne 9f
    criterion: mov rax, qword ptr [buf]
    cmp rax, 1166
    je 8f
    9: ud2
    8: nop
    ---
    called: push r11
    pop r11
    ret
    handler: mov rax, qword ptr [rdx + 64]
    seen: mov qword ptr [buf], rax
    inc qword ptr [rdx + 64]
    lea rax, [behind]
    mov qword ptr [rdx + 168], rax
    ret
    restorer: mov eax, 15
    syscall
    .data
    action: .quad handler, 0x04000004, restorer, 0";

const SIGNAL_STORES: &str = "
    mov eax, 13
    mov edi, 10
    lea rsi, [action]
    xor edx, edx
    mov r10d, 8
    syscall
    mov eax, 39
    syscall
    made: mov dword ptr [buf], 7
    mov edi, eax
    mov esi, 10
    mov eax, 62
    sends: syscall
    criterion: mov eax, [buf]
    ---
    handler: nop
    stores: mov dword ptr [buf], edi
    ret
    restorer: mov eax, 15
    syscall
    .data
    action: .quad handler, 0x04000000, restorer, 0";

const SIGNAL_VECTORS: &str = "
    mov eax, 13
    mov edi, 10
    lea rsi, [action]
    xor edx, edx
    mov r10d, 8
    syscall
    mov eax, 39
    syscall
    mov ecx, 7
    made: movd xmm3, ecx
    mov edi, eax
    mov esi, 10
    mov eax, 62
    syscall
    criterion: movd ecx, xmm3
    ---
    handler: nop
    changed: pxor xmm3, xmm3
    ret
    restorer: mov eax, 15
    syscall
    .data
    action: .quad handler, 0x04000004, restorer, 0";

/// All registers but RBP are used where an address of R11 is none. RIP is at 40 + 8 × 16 in the
/// context.
const NO_ADDRESS: &str = "
    mov eax, 13
    mov edi, 11
    lea rsi, [action]
    xor edx, edx
    mov r10d, 8
    syscall
    movabs r11, 0x8000000000000000
    xor ebx, ebx
    xor esi, esi
    xor r8d, r8d
    xor r9d, r9d
    xor r10d, r10d
    xor r12d, r12d
    xor r13d, r13d
    xor r14d, r14d
    xor r15d, r15d
    xor edi, edi
    xor edx, edx
    mov rax, [r11]
    behind: nop
    criterion: mov ecx, [buf]
    ---
    handler: lea rcx, [behind]
    mov [rdx + 168], rcx
    stores: mov dword ptr [buf], edi
    ret
    restorer: mov eax, 15
    syscall
    .data
    action: .quad handler, 0x04000004, restorer, 0";

/// The first handler sends itself another signal in a function that it calls; what runs behind
/// that call runs because of the first handler's own branch.
const NESTED_SIGNALS: &str = "
    mov eax, 13
    mov edi, 10
    lea rsi, [outer_action]
    xor edx, edx
    mov r10d, 8
    syscall
    mov eax, 13
    mov edi, 12
    lea rsi, [inner_action]
    xor edx, edx
    mov r10d, 8
    syscall
    mov esi, 10
    call send
    nop
    ---
    .type send, @function
    send: push rsi
    mov eax, 39
    syscall
    pop rsi
    mov edi, eax
    mov eax, 62
    syscall
    ret
    .type outer, @function
    outer: nop
    why: cmp dword ptr [buf], 1
    decide: je 7f
    mov esi, 12
    call send
    criterion: mov ecx, 1
    7: ret
    .type inner, @function
    inner: nop
    inner_why: cmp dword ptr [buf], 2
    inner_decides: je 8f
    nop
    8: ret
    restorer: mov eax, 15
    syscall
    .data
    outer_action: .quad outer, 0x04000000, restorer, 0
    inner_action: .quad inner, 0x04000000, restorer, 0";

/// RBX is at 40 + 8 × 11 in the context.
const SIGNAL_FRAME: &str = "
    mov eax, 13
    mov edi, 10
    lea rsi, [action]
    xor edx, edx
    mov r10d, 8
    syscall
    mov eax, 39
    syscall
    made: mov ebx, 7
    mov edi, eax
    mov esi, 10
    mov eax, 62
    syscall
    criterion: mov ecx, ebx
    ---
    handler: nop
    changed: mov qword ptr [rdx + 128], 9
    ret
    restorer: mov eax, 15
    syscall
    .data
    action: .quad handler, 0x04000004, restorer, 0";

/// A handler with a branch of its own interrupts what runs because of another. It is told
/// how that handler ends.
macro_rules! signal_control {
    ($ends:literal) => {
        concat!(
            "
    mov eax, 13
    mov edi, 10
    lea rsi, [action]
    xor edx, edx
    mov r10d, 8
    syscall
    mov eax, 39
    syscall
    why: cmp dword ptr [buf], 1
    decide: je 7f
    mov edi, eax
    mov esi, 10
    mov eax, 62
    syscall
    criterion: mov ecx, 1
    7: nop
    ---
    handler: nop
    changed: cmp dword ptr [buf], 2
    inside: je 8f
    mov ebx, 1
    8: ",
            $ends,
            "
    restorer: mov eax, 15
    syscall
    .data
    action: .quad handler, 0x04000004, restorer, 0"
        )
    };
}

const SIGNAL_CONTROL: &str = signal_control!("ret");
/// The handler asks the kernel itself to go on.
const SIGNAL_NO_RETURN: &str = signal_control!("add rsp, 8");
