//! The credentials of a kernel thread, to be given to another one.

use crate::sys::raw;

/// What a guest thread may do.
pub struct Rights {
    users: [u32; 3],
    groups: [u32; 3],
    other_groups: Vec<u32>,
    capabilities: [u32; 6],
    no_new: bool,
}

/// Version 3 of the call, of the calling thread.
const HEADER: [u32; 2] = [0x2008_0522, 0];

fn call(number: i64, args: [u64; 3]) -> i64 {
    // SAFETY: the callers' pointers are to their own words; the calls concern the calling
    // thread's credentials only.
    unsafe { raw(number as u64, [args[0], args[1], args[2], 0, 0, 0]) }
}

impl Rights {
    /// Those of this thread.
    pub fn of_this_thread() -> Rights {
        let three = |number| {
            let mut ids = [0u32; 3];
            let at = ids.as_mut_ptr();
            call(number, [at as u64, at.wrapping_add(1) as u64, at.wrapping_add(2) as u64]);
            ids
        };
        let count = call(libc::SYS_getgroups, [0, 0, 0]).max(0) as usize;
        let mut other_groups = vec![0u32; count];
        let got =
            call(libc::SYS_getgroups, [count as u64, other_groups.as_mut_ptr() as u64, 0]).max(0);
        other_groups.truncate(got as usize);
        let mut capabilities = [0u32; 6];
        let sets = capabilities.as_mut_ptr() as u64;
        call(libc::SYS_capget, [HEADER.as_ptr() as u64, sets, 0]);
        Rights {
            users: three(libc::SYS_getresuid),
            groups: three(libc::SYS_getresgid),
            other_groups,
            capabilities,
            no_new: call(libc::SYS_prctl, [libc::PR_GET_NO_NEW_PRIVS as u64, 0, 0]) == 1,
        }
    }

    /// Gives them to this thread, which has more, or the same. False if that was not
    /// possible.
    pub fn take(&self) -> bool {
        let now = Rights::of_this_thread();
        let keep = |on| call(libc::SYS_prctl, [libc::PR_SET_KEEPCAPS as u64, on, 0]);
        let set = |number, ids: &[u32; 3]| call(number, ids.map(u64::from)) == 0;
        let others = [self.other_groups.len() as u64, self.other_groups.as_ptr() as u64, 0];
        keep(1);
        // Who may not change its groups may not even say that they stay.
        let done = (now.other_groups == self.other_groups
            || call(libc::SYS_setgroups, others) == 0)
            && (now.groups == self.groups || set(libc::SYS_setresgid, &self.groups))
            && (now.users == self.users || set(libc::SYS_setresuid, &self.users));
        keep(0);
        let sets = self.capabilities.as_ptr() as u64;
        if self.no_new {
            call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0]);
        }
        done && call(libc::SYS_capset, [HEADER.as_ptr() as u64, sets, 0]) == 0
    }
}
