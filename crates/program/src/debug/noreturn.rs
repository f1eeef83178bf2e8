//! Which functions are known never to return to their caller?

/// Functions of C libraries, run-time libraries and sanitizers, by symbol.
const SYMBOLS: &[&str] = &[
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "thrd_exit",
    "pthread_exit",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "err",
    "errx",
    "verr",
    "verrx",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__stack_chk_fail",
    "__stack_chk_fail_local",
    "__fortify_fail",
    "__chk_fail",
    "__libc_fatal",
    "__libc_start_main",
    "__libc_start_call_main",
    "_dl_signal_error",
    "__cxa_throw",
    "__cxa_rethrow",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_throw_bad_array_new_length",
    "__cxa_pure_virtual",
    "__cxa_deleted_virtual",
    "__cxa_call_unexpected",
    "__cxa_call_terminate",
    "__clang_call_terminate",
    "_Unwind_Resume",
    "rust_begin_unwind",
    "rust_panic",
    "rust_oom",
    "__rust_start_panic",
    "__asan_report_error",
    "__ubsan_handle_builtin_unreachable",
    "__ubsan_handle_missing_return",
    "runtime.throw",
    "runtime.fatalthrow",
    "runtime.gopanic",
    "runtime.goexit",
    "runtime.exit",
];

/// Functions by the name that the source writes; `*` stands for any ending.
const NAMES: &[&str] = &[
    "core::panicking::*",
    "core::option::expect_failed",
    "core::option::unwrap_failed",
    "core::result::unwrap_failed",
    "core::cell::panic_already_*",
    "core::slice::index::slice_*_fail",
    "core::str::slice_error_fail",
    "std::panicking::begin_panic*",
    "std::panicking::rust_panic*",
    "std::panicking::panic_*",
    "std::process::exit",
    "std::process::abort",
    "std::rt::panic_fmt",
    "std::rt::begin_panic",
    "std::sys::*::abort_internal",
    "alloc::alloc::handle_alloc_error",
    "alloc::raw_vec::capacity_overflow",
    "alloc::raw_vec::handle_error",
    "std::terminate",
    "std::unexpected",
    "std::rethrow_exception",
    "std::__throw_*",
];

/// Whether a function never returns, by its symbol and its name in the source.
pub(super) fn is_noreturn(symbol: &str, name: &str) -> bool {
    let symbol = symbol.split('@').next().unwrap_or(symbol);
    if symbol.starts_with("__asan_report_") || symbol.starts_with("__ubsan_handle_") {
        return symbol.starts_with("__asan_report_")
            || symbol.ends_with("_abort")
            || SYMBOLS.contains(&symbol);
    }
    SYMBOLS.contains(&symbol) || NAMES.iter().any(|pattern| matches(pattern, name))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_end_the_program_or_unwind_never_return() {
        for symbol in ["abort", "exit", "__stack_chk_fail", "__cxa_throw", "longjmp@GLIBC_2.2.5"] {
            assert!(is_noreturn(symbol, symbol), "{symbol}");
        }
        assert!(is_noreturn(
            "_ZN4core9panicking5panic17h0123456789abcdefE",
            "core::panicking::panic"
        ));
        assert!(is_noreturn("x", "std::__throw_out_of_range_fmt"));
        assert!(is_noreturn("x", "core::slice::index::slice_end_index_len_fail"));
    }

    #[test]
    fn other_functions_return() {
        for name in ["main", "puts", "aborted", "core::panic", "__ubsan_handle_add_overflow"] {
            assert!(!is_noreturn(name, name), "{name}");
        }
    }
}
