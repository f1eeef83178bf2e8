//! How much memory may a trace take?

use std::fs::read_to_string;

/// A trace may take so much wherever it is made: a billion instructions fit.
const LEAST: u64 = 4 << 30;

/// Three quarters of the memory that is free, in the machine and in the container: who asks
/// about a run does not want the rest of the machine to stop.
pub(crate) fn for_trace() -> u64 {
    let free = [in_machine(), in_container()].into_iter().flatten().min();
    free.map_or(LEAST, |free| (free / 4 * 3).max(LEAST))
}

fn in_machine() -> Option<u64> {
    let all = read_to_string("/proc/meminfo").ok()?;
    let line = all.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Nothing where there is no limit.
fn in_container() -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_trace_always_has_room_for_a_billion_instructions() {
        assert!(super::for_trace() >= super::LEAST);
        assert!(super::in_machine().is_some_and(|free| free > 1 << 20));
    }
}
