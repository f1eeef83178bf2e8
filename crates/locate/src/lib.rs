//! Where is the fault?
