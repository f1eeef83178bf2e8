//! What should a person know about a failure besides its sentence?
//!
//! Each error type says so beside its variants, in one table made by [`mishaps!`]. The
//! table becomes a `match` without a catch-all, so that a variant without a row does not
//! compile, and a list of samples, from which `docs/errors.md` is written.

/// Why it came to that, and what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// How one gets there.
    pub cause: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// An error that says more than its sentence.
pub trait Mishap: std::error::Error + Sized {
    /// Cause and remedy. None if it only passes on another error, which has them.
    fn advice(&self) -> Option<Advice>;

    /// One of each kind that has advice, with capital letters where a name would stand.
    fn every() -> Vec<(Self, Advice)>;
}

/// Implements [`Mishap`] by a table: `PATTERN = SAMPLE => CAUSE, REMEDY;`. After
/// `passes on` come the variants that only hold another error.
#[macro_export]
macro_rules! mishaps {
    ($type:ty {
        $($pattern:pat = $sample:expr => $cause:literal, $remedy:literal;)*
    } $(passes on { $($passed:pat),+ })?) => {
        impl $crate::Mishap for $type {
            fn advice(&self) -> Option<$crate::Advice> {
                match self {
                    $($pattern => Some($crate::Advice { cause: $cause, remedy: $remedy }),)*
                    $($($passed => None,)+)?
                }
            }

            fn every() -> Vec<(Self, $crate::Advice)> {
                vec![$(($sample, $crate::Advice { cause: $cause, remedy: $remedy })),*]
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    enum Error {
        Plain,
        Named(String),
        Other(std::fmt::Error),
    }

    impl std::fmt::Display for Error {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            match self {
                Error::Plain => f.write_str("plain"),
                Error::Named(name) => write!(f, "named {name}"),
                Error::Other(error) => error.fmt(f),
            }
        }
    }

    impl std::error::Error for Error {}

    mishaps! { Error {
    Error::Plain = Error::Plain => "It is plain.", "Adorn it.";
    Error::Named(_) = Error::Named("NAME".to_owned()) => "It has a name.", "Drop it.";
    } passes on { Error::Other(_) } }

    #[test]
    fn every_kind_is_listed_with_its_own_advice() {
        let messages: Vec<String> = Error::every().iter().map(|(e, _)| e.to_string()).collect();
        assert_eq!(messages, ["plain", "named NAME"]);
        for (error, advice) in Error::every() {
            assert_eq!(error.advice(), Some(advice));
        }
    }

    #[test]
    fn what_passes_an_error_on_has_no_advice_of_its_own() {
        assert_eq!(Error::Other(std::fmt::Error).advice(), None);
    }
}
