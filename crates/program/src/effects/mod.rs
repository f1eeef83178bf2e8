//! What does one instruction define, and from what?
