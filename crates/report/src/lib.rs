//! How is an answer shown to a person?
