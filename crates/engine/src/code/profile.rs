//! What is added to translated code: the instrumentation profile.

/// What a session wants to know from the code it runs.
///
/// A profile is fixed for the life of a code cache: two profiles are two caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Keep `Context::budget`: subtract each unit's instructions at its head and
    /// come back before it runs negative.
    pub count: bool,
    /// End units at every branch and come back after each, so that the engine
    /// sees every basic block (lock-step checks, block observers).
    pub stop_at_blocks: bool,
    /// Come back before every instruction.
    pub stop_at_instructions: bool,
}

impl Profile {
    /// Nothing but the guest's own instructions and safepoints.
    pub const PLAIN: Profile =
        Profile { count: false, stop_at_blocks: false, stop_at_instructions: false };
    /// Instruction counting.
    pub const COUNTING: Profile = Profile { count: true, ..Profile::PLAIN };

    /// Everything as in [`Self::PLAIN`], one basic block at a time.
    pub const BLOCKS: Profile = Profile { stop_at_blocks: true, ..Profile::PLAIN };

    /// One instruction at a time, counted.
    pub const INSTRUCTIONS: Profile =
        Profile { count: true, stop_at_blocks: true, stop_at_instructions: true };

    /// Longest unit, in instructions.
    pub fn unit_limit(self) -> usize {
        if self.stop_at_instructions { 1 } else { 48 }
    }

    /// Does a unit end at a conditional branch?
    pub fn basic_blocks(self) -> bool {
        self.count || self.stop_at_blocks || self.stop_at_instructions
    }
}
