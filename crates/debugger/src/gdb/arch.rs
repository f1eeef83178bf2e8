//! x86-64 as gdb sees it: which registers there are, and in which order.

use crate::Registers;
use gdbstub::arch::{Arch, RegId};
use std::fmt::Write;
use std::num::NonZeroUsize;

/// The architecture.
pub enum X86_64 {}

impl Arch for X86_64 {
    type Usize = u64;
    type Registers = Flat;
    type BreakpointKind = usize;
    type RegId = Id;
}

/// Number of a register in gdb's order.
#[derive(Clone, Copy, Debug)]
pub struct Id(pub usize);

/// RBP, RSP and RIP: what gdb wants to know at every stop.
pub const AT_STOPS: [usize; 3] = [6, 7, 16];

impl RegId for Id {
    fn from_raw_id(id: usize) -> Option<(Id, Option<NonZeroUsize>)> {
        Some((Id(id), None))
    }

    fn to_raw_id(&self) -> Option<usize> {
        Some(self.0)
    }
}

/// Registers as gdb wants them: one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flat(pub Vec<u8>);

/// gdb's order of the general registers, by encoding number.
const GENERAL: [usize; 16] = [0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

impl From<&Registers> for Flat {
    fn from(r: &Registers) -> Flat {
        let mut out = Vec::with_capacity(900);
        for n in GENERAL {
            out.extend(r.gpr[n].to_le_bytes());
        }
        out.extend(r.rip.to_le_bytes());
        out.extend((r.rflags as u32).to_le_bytes());
        // Selectors as Linux has them: cs, ss, ds, es, fs, gs.
        for selector in [0x33u32, 0x2b, 0, 0, 0, 0] {
            out.extend(selector.to_le_bytes());
        }
        for value in &r.x87 {
            out.extend(value);
        }
        let [control, status, tags] = r.x87_control;
        // Then five words about the last instruction, which is not known.
        for word in [control, status, tags, 0, 0, 0, 0, 0] {
            out.extend(u32::from(word).to_le_bytes());
        }
        for vector in &r.vectors {
            out.extend(&vector[..16]);
        }
        out.extend(r.mxcsr.to_le_bytes());
        // orig_rax: no call is pending that gdb would have to restart.
        out.extend(u64::MAX.to_le_bytes());
        out.extend(r.fs.to_le_bytes());
        out.extend(r.gs.to_le_bytes());
        for vector in &r.vectors {
            out.extend(&vector[16..]);
        }
        Flat(out)
    }
}

impl Flat {
    /// General registers by encoding number, and RIP (16), that differ in another.
    pub fn changed_general(&self, other: &Flat) -> Vec<(u8, u64)> {
        let word = |flat: &Flat, n: usize| {
            let bytes = flat.0.get(8 * n..8 * n + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let numbers = GENERAL.iter().copied().chain([16]).enumerate();
        let changed = numbers.filter_map(|(n, register)| {
            let value = word(other, n)?;
            (word(self, n) != Some(value)).then_some((register as u8, value))
        });
        changed.collect()
    }
}

impl gdbstub::arch::Registers for Flat {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.0.get(128..136).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("eight")))
    }

    fn gdb_serialize(&self, write_byte: impl FnMut(Option<u8>)) {
        self.0.iter().copied().map(Some).for_each(write_byte);
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        self.0 = bytes.to_vec();
        Ok(())
    }
}

const GENERAL_NAMES: [&str; 16] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

const FLAGS: &str = r#"<flags id="i386_eflags" size="4">
<field name="CF" start="0" end="0"/><field name="" start="1" end="1"/>
<field name="PF" start="2" end="2"/><field name="AF" start="4" end="4"/>
<field name="ZF" start="6" end="6"/><field name="SF" start="7" end="7"/>
<field name="TF" start="8" end="8"/><field name="IF" start="9" end="9"/>
<field name="DF" start="10" end="10"/><field name="OF" start="11" end="11"/>
</flags>"#;

const VECTOR: &str = r#"<vector id="v8bf16" type="bfloat16" count="8"/>
<vector id="v4f" type="ieee_single" count="4"/><vector id="v2d" type="ieee_double" count="2"/>
<vector id="v16i8" type="int8" count="16"/><vector id="v8i16" type="int16" count="8"/>
<vector id="v4i32" type="int32" count="4"/><vector id="v2i64" type="int64" count="2"/>
<union id="vec128"><field name="v8_bfloat16" type="v8bf16"/><field name="v4_float" type="v4f"/>
<field name="v2_double" type="v2d"/><field name="v16_int8" type="v16i8"/>
<field name="v8_int16" type="v8i16"/><field name="v4_int32" type="v4i32"/>
<field name="v2_int64" type="v2i64"/><field name="uint128" type="uint128"/></union>
<flags id="i386_mxcsr" size="4"><field name="IE" start="0" end="0"/>
<field name="DE" start="1" end="1"/><field name="ZE" start="2" end="2"/>
<field name="OE" start="3" end="3"/><field name="UE" start="4" end="4"/>
<field name="PE" start="5" end="5"/><field name="DAZ" start="6" end="6"/>
<field name="IM" start="7" end="7"/><field name="DM" start="8" end="8"/>
<field name="ZM" start="9" end="9"/><field name="OM" start="10" end="10"/>
<field name="UM" start="11" end="11"/><field name="PM" start="12" end="12"/>
<field name="FZ" start="15" end="15"/></flags>"#;

/// The target description, in the order of [`Flat`].
pub fn description() -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>\
         <architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>\
         <feature name=\"org.gnu.gdb.i386.core\">",
    );
    xml.push_str(FLAGS);
    for name in GENERAL_NAMES {
        let kind = if matches!(name, "rbp" | "rsp") { "data_ptr" } else { "int64" };
        register(&mut xml, name, 64, kind);
    }
    register(&mut xml, "rip", 64, "code_ptr");
    register(&mut xml, "eflags", 32, "i386_eflags");
    for name in ["cs", "ss", "ds", "es", "fs", "gs"] {
        register(&mut xml, name, 32, "int32");
    }
    for n in 0..8 {
        register(&mut xml, &format!("st{n}"), 80, "i387_ext");
    }
    for name in ["fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop"] {
        register(&mut xml, name, 32, "int");
    }
    xml.push_str("</feature><feature name=\"org.gnu.gdb.i386.sse\">");
    xml.push_str(VECTOR);
    for n in 0..16 {
        register(&mut xml, &format!("xmm{n}"), 128, "vec128");
    }
    register(&mut xml, "mxcsr", 32, "i386_mxcsr");
    xml.push_str("</feature><feature name=\"org.gnu.gdb.i386.linux\">");
    register(&mut xml, "orig_rax", 64, "int");
    xml.push_str("</feature><feature name=\"org.gnu.gdb.i386.segments\">");
    register(&mut xml, "fs_base", 64, "int");
    register(&mut xml, "gs_base", 64, "int");
    xml.push_str("</feature><feature name=\"org.gnu.gdb.i386.avx\">");
    for n in 0..16 {
        register(&mut xml, &format!("ymm{n}h"), 128, "uint128");
    }
    xml.push_str("</feature></target>");
    xml
}

fn register(xml: &mut String, name: &str, bits: u32, kind: &str) {
    let _ = write!(xml, "<reg name=\"{name}\" bitsize=\"{bits}\" type=\"{kind}\"/>");
}

/// gdb's number of a Linux signal.
pub fn signal(linux: i32) -> u8 {
    match linux {
        7 => 10,
        10 => 30,
        12 => 31,
        16 => 143,
        17 => 20,
        18 => 19,
        19 => 17,
        20 => 18,
        23 => 16,
        29 => 23,
        30 => 32,
        31 => 12,
        32 => 77,
        n @ 33..=63 => (n + 12) as u8,
        64 => 78,
        n => n as u8,
    }
}
