//! Where is a value at an instant?

/// Why a value, or a part of one, does not exist at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Gone {
    /// The compiler keeps no copy here.
    #[error("the compiler keeps no copy of it here")]
    OptimisedOut,
}
