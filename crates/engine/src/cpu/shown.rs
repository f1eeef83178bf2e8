//! The processor that the guest of this process sees.
//!
//! There is one guest at a time in a process (its addresses are fixed), so there is
//! one such processor: chosen when the guest is loaded, and the same until the next
//! one is.

use super::baseline::{self, Leaf};
use super::features::{self, host_cpuid};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where a component of the vector state lies in an XSAVE image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// Its bit in XCR0.
    pub bit: u32,
    /// Its first byte.
    pub offset: u32,
    /// Its length.
    pub size: u32,
}

/// A processor as programs see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// What CPUID answers: leaf, subleaf, registers. Empty: the baseline.
    leaves: Vec<(u32, u32, Leaf)>,
    /// Components of the vector state that programs may use.
    pub xcr0: u64,
    /// Size of an XSAVE image with all of them.
    pub xsave_size: u32,
    /// Components beyond x87 and SSE.
    pub components: Vec<Component>,
}

/// x87, SSE, AVX and the three parts of AVX-512: what the engine carries along.
const CARRIED: u64 = 0xe7;

/// Leaves that answer by subleaf.
const WITH_SUBLEAVES: [u32; 12] =
    [4, 7, 0xb, 0xd, 0xf, 0x10, 0x12, 0x14, 0x17, 0x18, 0x1f, 0x8000_001d];

impl Shown {
    /// The x86-64-v3 baseline.
    pub const fn baseline() -> Shown {
        Shown {
            leaves: Vec::new(),
            xcr0: baseline::XCR0,
            xsave_size: baseline::XSAVE_SIZE,
            components: Vec::new(),
        }
    }

    /// Is it that?
    pub fn is_baseline(&self) -> bool {
        *self == BASELINE
    }

    /// This machine's own, without what the engine cannot replay.
    pub fn host() -> Shown {
        let xcr0 = host_xcr0() & CARRIED;
        let components: Vec<Component> =
            (2..64).filter(|bit| xcr0 >> bit & 1 != 0).map(host_component).collect();
        let xsave_size = components.iter().map(|c| c.offset + c.size).max().unwrap_or(576);
        let mut shown = Shown { leaves: Vec::new(), xcr0, xsave_size, components };
        // The hypervisor's leaves are there only where it says so.
        let virtual_machine = host_cpuid(1, 0)[2] >> 31 != 0;
        let hypervisor = virtual_machine.then_some(0x4000_0000);
        for first in [0, 0x8000_0000].into_iter().chain(hypervisor) {
            let last = host_cpuid(first, 0)[0].min(first + 0x40);
            for leaf in first..=last.max(first) {
                shown.add(leaf);
            }
        }
        shown
    }

    fn add(&mut self, leaf: u32) {
        let subleaves = if WITH_SUBLEAVES.contains(&leaf) { 0..32 } else { 0..1 };
        for subleaf in subleaves {
            let answer = self.without_hidden(leaf, subleaf, host_cpuid(leaf, subleaf));
            if answer != [0; 4] {
                self.leaves.push((leaf, subleaf, answer));
            }
        }
    }

    /// Takes out what a replay could not repeat, or the engine does not carry:
    /// transactions, protection keys, tiles, shadow stacks, waiting for memory,
    /// compact XSAVE images, processor traces.
    fn without_hidden(&self, leaf: u32, subleaf: u32, mut answer: Leaf) -> Leaf {
        let [eax, ebx, ecx, edx] = &mut answer;
        match (leaf, subleaf) {
            // MONITOR.
            (1, _) => *ecx &= !(1 << 3),
            (7, 0) => {
                // SGX, HLE, RTM, MPX, processor trace.
                *ebx &= !(1 << 2 | 1 << 4 | 1 << 11 | 1 << 14 | 1 << 25);
                // PKU, OSPKE, WAITPKG, shadow stacks, key locker, MOVDIR64B, ENQCMD.
                *ecx &=
                    !(1 << 3 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 23 | 1 << 28 | 1 << 29 | 1 << 31);
                // User interrupts, TSXLDTRK, IBT, tiles.
                *edx &= !(1 << 5 | 1 << 16 | 1 << 20 | 1 << 22 | 1 << 24 | 1 << 25);
            }
            (7, 1) => {
                // Tiles with half floats; more of APX and AVX10 than we carry.
                *eax &= !(1 << 21);
                *edx &= !(1 << 8 | 1 << 19 | 1 << 21);
            }
            (0xd, 0) => answer = [self.xcr0 as u32, self.xsave_size, self.xsave_size, 0],
            (0xd, 1) => answer = [1, 0, 0, 0],
            (0xd, bit) if self.xcr0 >> bit & 1 == 0 => answer = [0; 4],
            (0xd, _) => *ecx &= 1,
            // MONITORX, LWP.
            (0x8000_0001, _) => *ecx &= !(1 << 29 | 1 << 15),
            // RDPRU.
            (0x8000_0008, _) => *ebx &= !(1 << 4),
            (0x12 | 0x14 | 0x19 | 0x1d | 0x1e, _) => answer = [0; 4],
            _ => {}
        }
        answer
    }

    /// What CPUID answers.
    pub fn cpuid(&self, leaf: u32, subleaf: u32) -> Leaf {
        if self.leaves.is_empty() {
            return baseline::cpuid(leaf, subleaf);
        }
        let subleaf = if WITH_SUBLEAVES.contains(&leaf) { subleaf } else { 0 };
        let found = self.leaves.iter().find(|(l, s, _)| (*l, *s) == (leaf, subleaf));
        found.map_or([0; 4], |(_, _, answer)| *answer)
    }

    /// The features that a replay needs, by name.
    pub fn features(&self) -> Vec<String> {
        if self.leaves.is_empty() {
            return features::BASELINE.iter().map(|name| (*name).to_owned()).collect();
        }
        features::of(&|leaf, subleaf| self.cpuid(leaf, subleaf))
    }

    /// `AT_HWCAP`: EDX of leaf 1.
    pub fn hwcap(&self) -> u64 {
        self.cpuid(1, 0)[3] as u64
    }

    /// Is the vector state laid out in this machine's XSAVE images as in the
    /// guest's? Makers place the parts of AVX-512 differently.
    pub fn layout_is_hosts(&self) -> bool {
        self.xcr0 & !host_xcr0() == 0 && self.components.iter().all(|c| host_component(c.bit) == *c)
    }
}

fn host_xcr0() -> u64 {
    let [eax, _, _, edx] = host_cpuid(0xd, 0);
    let possible = eax as u64 | (edx as u64) << 32;
    // SAFETY: the engine runs only where XSAVE is enabled.
    possible & unsafe { xgetbv() }
}

#[target_feature(enable = "xsave")]
fn xgetbv() -> u64 {
    // SAFETY: register 0 always exists.
    unsafe { std::arch::x86_64::_xgetbv(0) }
}

fn host_component(bit: u32) -> Component {
    let [size, offset, ..] = host_cpuid(0xd, bit);
    Component { bit, offset, size }
}

impl Default for Shown {
    fn default() -> Shown {
        Shown::baseline()
    }
}

static BASELINE: Shown = Shown::baseline();
static CURRENT: AtomicPtr<Shown> = AtomicPtr::new(std::ptr::null_mut());

/// The processor that the guest sees.
pub fn shown() -> &'static Shown {
    let current = CURRENT.load(Ordering::Acquire);
    if current.is_null() {
        return &BASELINE;
    }
    // SAFETY: `choose` stored a leaked box there.
    unsafe { &*current }
}

/// Chooses it, before a guest is loaded.
pub fn choose(cpu: &Shown) {
    if shown() != cpu {
        CURRENT.store(Box::into_raw(Box::new(cpu.clone())), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_as_shown_has_the_baseline_and_no_transactions() {
        let host = Shown::host();
        let features = host.features();
        for name in features::BASELINE {
            assert!(features.iter().any(|f| f == name), "{name}");
        }
        assert_eq!(host.cpuid(7, 0)[1] & (1 << 11), 0, "RTM");
        assert_eq!(host.cpuid(0xd, 0)[1], host.xsave_size);
        assert!(host.layout_is_hosts());
        assert!(host.xsave_size as usize <= crate::context::XSAVE_BYTES);
    }

    #[test]
    fn it_survives_json() {
        let host = Shown::host();
        let text = serde_json::to_string(&host).unwrap();
        assert_eq!(serde_json::from_str::<Shown>(&text).unwrap(), host);
    }
}
