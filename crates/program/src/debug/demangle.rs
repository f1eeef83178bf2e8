//! How does the source write the name of a symbol?

use cpp_demangle::{DemangleOptions, Symbol};

/// What compilers append to the symbol of a part or a copy of a function.
const PARTS: [&str; 6] = ["cold", "constprop", "isra", "part", "lto_priv", "llvm"];

/// The name of a function without hashes, parameters and the compiler's suffixes.
pub(super) fn demangle(symbol: &str) -> String {
    let base = without_parts(symbol);
    let may_be_rust = base.starts_with("_R") || base.starts_with("_ZN");
    if may_be_rust && let Ok(name) = rustc_demangle::try_demangle(base) {
        return format!("{name:#}");
    }
    if base.starts_with("_Z") {
        let options = DemangleOptions::new().no_params().no_return_type();
        if let Ok(name) = Symbol::new(base).map(|symbol| symbol.demangle_with_options(&options)) {
            return name.unwrap_or_else(|_| base.to_owned());
        }
    }
    base.to_owned()
}

/// Whether the symbol names code that is never called: the unlikely part of a
/// function, moved away from it.
pub(super) fn is_cold_part(symbol: &str) -> bool {
    symbol.ends_with(".cold") || symbol.contains(".cold.")
}

/// The symbol without what compilers append to parts and copies.
fn without_parts(symbol: &str) -> &str {
    let mut base = symbol;
    loop {
        let unnumbered = base.trim_end_matches(|c: char| c.is_ascii_digit());
        let unnumbered = unnumbered.strip_suffix('.').unwrap_or(base);
        let part = PARTS.iter().find_map(|part| unnumbered.strip_suffix(part)?.strip_suffix('.'));
        match part {
            Some(shorter) if !shorter.is_empty() => base = shorter,
            _ => return base,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_in_the_source() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_ZN4rust4func17h0123456789abcdefE"), "rust::func");
        assert_eq!(demangle("_RNvC7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangle("_ZN2ns1fEi"), "ns::f");
        assert_eq!(
            demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back"
        );
    }

    #[test]
    fn parts_of_functions_have_the_name_of_the_function() {
        assert_eq!(demangle("f.cold"), "f");
        assert_eq!(demangle("f.part.0"), "f");
        assert_eq!(demangle("f.constprop.12.isra.3.cold"), "f");
        assert_eq!(demangle("_ZN2ns1fEi.cold"), "ns::f");
        assert_eq!(demangle("version2.10"), "version2.10");
        assert_eq!(demangle(".cold"), ".cold");
    }

    #[test]
    fn what_is_not_mangled_stays_as_it_is() {
        assert_eq!(demangle("_Zork"), "_Zork");
        assert_eq!(demangle(""), "");
    }
}
