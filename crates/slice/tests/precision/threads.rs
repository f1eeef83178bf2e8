//! Threads: what one wrote and another read, in the order in which they ran.

use crate::Case;
use crate::assembly::case;

/// A thread without a library: clone 56 (its memory, files and handlers are shared),
/// sched_yield 24, exit 60. `before` and `after` are what the first thread does before and
/// behind it, `child` what the second one does.
fn two(before: &str, child: &str, after: &str) -> String {
    format!(
        "{before}
         mov eax, 56
         mov edi, 0x10f00
         lea rsi, [buf + 2048]
         xor edx, edx
         xor r10d, r10d
         xor r8d, r8d
         spawn: syscall
         test eax, eax
         jz 5f
         waits: mov eax, 24
         syscall
         cmp dword ptr [buf + 256], 0
         je waits
         {after}
         jmp 6f
         5: nop
         {child}
         ends: mov dword ptr [buf + 256], 1
         mov eax, 60
         xor edi, edi
         syscall
         6: nop"
    )
}

/// F-001-34, F-001-35, F-002-57: what is read was written last, by whichever thread; what
/// a thread overwrote is gone; what is written later does not matter.
pub fn cases() -> Vec<Case> {
    vec![
        case(
            "what_another_thread_wrote_last_is_read",
            &two(
                "early: mov dword ptr [buf], 1",
                "written: mov dword ptr [buf], 2
                 beside: mov dword ptr [buf + 4], 2",
                "criterion: mov ecx, [buf]",
            ),
            &["written", "spawn"],
            &["early", "beside"],
        ),
        case(
            "what_is_written_behind_a_read_in_another_thread_does_not_matter",
            &two(
                "early: mov dword ptr [buf], 1",
                "criterion: mov ecx, [buf]",
                "late: mov dword ptr [buf], 2",
            ),
            &["early"],
            &["late", "ends"],
        ),
        case(
            "a_thread_begins_with_the_registers_of_its_parent",
            &two(
                "made: mov ebx, 7
                 other: mov ebp, 8",
                "mov dword ptr [buf], ebx",
                "mov ebx, 9
                 criterion: mov ecx, [buf]",
            ),
            &["made", "spawn"],
            &["other"],
        ),
        case(
            "a_thread_runs_because_it_was_started",
            &two(
                "why: cmp dword ptr [buf + 512], 1
                 decide: je 6f",
                "criterion: mov ecx, 1",
                "",
            ),
            &["why", "decide", "spawn"],
            &["ends"],
        ),
    ]
}
