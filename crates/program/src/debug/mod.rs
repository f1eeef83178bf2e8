//! Symbols, source lines, variables and types.
