//! Which registers must be written down so that every address a unit touches can
//! be worked out afterwards?
//!
//! An address is made of registers, and most of those change in ways that the
//! code itself tells: `push` takes eight off RSP, `add rdi, 4` adds four, `mov rsi,
//! rdi` copies. So each register has a *version*, which some instruction made in a
//! way the code does not tell, and a known offset from it. A version is captured
//! once, when an address first needs it; later addresses in the unit follow from
//! it. Stack traffic thus costs one captured register per unit.
//!
//! The translator and whoever reads the trace both run this analysis over the same
//! instructions, so what a captured number means is never written down.

use iced_x86::{
    Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

/// A register that is written down before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The instruction's number in its unit.
    pub before: u16,
    /// The general register, by encoding number.
    pub register: u8,
}

/// A number that follows from a captured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Which capture of the unit.
    pub capture: u16,
    /// What to add to it.
    pub offset: i64,
}

/// A register's value as an offset from a version.
#[derive(Clone, Copy, Debug)]
struct Value {
    version: u16,
    offset: i64,
}

/// The general registers that an instruction has to do with, as bit sets. To find them takes longer
/// than all else here: whoever meets an instruction again keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Its addresses are made of them.
    addresses: u16,
    /// It may change them.
    pub(crate) written: u16,
    /// It has to do with them in some way.
    pub(crate) all: u16,
}

impl Touched {
    /// By an instruction.
    pub fn by(i: &Instruction, factory: &mut InstructionInfoFactory) -> Touched {
        let info = factory.info(i);
        let mut touched = Touched::default();
        for used in info.used_registers() {
            let bit = bit(used.register());
            touched.all |= bit;
            if is_write(used.access()) {
                touched.written |= bit;
            }
        }
        for memory in info.used_memory() {
            let bits = bit(memory.base()) | bit(memory.index());
            touched.all |= bits;
            if touches(memory) {
                touched.addresses |= bits;
            }
        }
        touched.addresses |= beside_addresses(i);
        touched
    }
}

/// What instructions touched that were met lately. To find that out takes ten times as long as to
/// find it here, and most instructions have been met before, if elsewhere.
pub struct MetLately {
    factory: InstructionInfoFactory,
    /// By their bytes, where those are looked for.
    met: Box<[(u128, Touched); MET]>,
}

const MET: usize = 1 << 10;

impl Default for MetLately {
    fn default() -> MetLately {
        // An instruction has bytes: nothing is met here.
        let met = Box::new([(0, Touched::default()); MET]);
        MetLately { factory: InstructionInfoFactory::new(), met }
    }
}

impl MetLately {
    /// What an instruction touches, which has these bytes.
    pub fn touched(&mut self, i: &Instruction, bytes: &[u8]) -> Touched {
        let key = key(bytes);
        let place = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let met = &mut self.met[(place >> (u64::BITS - MET.ilog2())) as usize];
        if met.0 != key {
            *met = (key, Touched::by(i, &mut self.factory));
        }
        met.1
    }
}

/// An instruction's bytes, of which there are at most 15, and how many those are.
fn key(bytes: &[u8]) -> u128 {
    let mut all = [0; 16];
    all[..bytes.len()].copy_from_slice(bytes);
    all[15] = bytes.len() as u8;
    u128::from_le_bytes(all)
}

/// The analysis, at one point in a unit.
pub struct Captures {
    registers: [Value; 16],
    /// Per version: its capture, and the offset that was captured.
    versions: Vec<Option<Known>>,
    list: Vec<Capture>,
    index: u16,
    /// RCX is wanted after a string instruction that may end early.
    wants_rcx: bool,
}

impl Default for Captures {
    fn default() -> Self {
        Captures::new()
    }
}

const RCX: u8 = 1;
const RSP: usize = 4;
const RBP: usize = 5;

impl Captures {
    /// At the head of a unit.
    pub fn new() -> Captures {
        let mut version = 0;
        let registers = [(); 16].map(|()| {
            version += 1;
            Value { version: version - 1, offset: 0 }
        });
        Captures {
            registers,
            versions: vec![None; 16],
            list: Vec::new(),
            index: 0,
            wants_rcx: false,
        }
    }

    /// All captures so far.
    pub fn list(&self) -> &[Capture] {
        &self.list
    }

    /// What is captured before the next instruction: appended to [`Self::list`].
    pub fn before(&mut self, touched: Touched) {
        self.pending();
        bits(touched.addresses).for_each(|register| self.capture(register as u8));
    }

    /// What is captured at the unit's end.
    pub fn at_end(&mut self) {
        self.pending();
    }

    fn pending(&mut self) {
        if std::mem::take(&mut self.wants_rcx) {
            self.capture(RCX);
        }
    }

    fn capture(&mut self, register: u8) {
        let value = self.registers[register as usize];
        let known = &mut self.versions[value.version as usize];
        if known.is_none() {
            *known = Some(Known { capture: self.list.len() as u16, offset: value.offset });
            self.list.push(Capture { before: self.index, register });
        }
    }

    /// A register's value at this point, if it follows from what was captured.
    pub fn value(&self, register: u8) -> Option<Known> {
        let value = self.registers[register as usize];
        let at = self.versions[value.version as usize]?;
        Some(Known { capture: at.capture, offset: value.offset.wrapping_sub(at.offset) })
    }

    /// How a register now differs from its value at the head of the unit, if it is
    /// still that version (of whichever register).
    pub fn since_head(&self, register: u8) -> Option<(u8, i64)> {
        let value = self.registers[register as usize];
        (value.version < 16).then_some((value.version as u8, value.offset))
    }

    /// Goes past an instruction, which touches these registers.
    pub fn after(&mut self, i: &Instruction, touched: Touched) {
        let affine = affine(i).map(|(to, from, offset)| {
            let value = self.registers[from];
            (to, Value { offset: value.offset.wrapping_add(offset), ..value })
        });
        let stack = self.registers[RSP];
        let frame = self.registers[RBP];
        bits(touched.written).for_each(|register| self.renew(register));
        if let Some((to, value)) = affine {
            self.registers[to] = value;
        }
        self.move_stack(i, stack, frame);
        self.wants_rcx = ends_early(i);
        self.index += 1;
    }

    fn renew(&mut self, register: usize) {
        self.registers[register] = Value { version: self.versions.len() as u16, offset: 0 };
        self.versions.push(None);
    }

    fn move_stack(&mut self, i: &Instruction, stack: Value, frame: Value) {
        let pops_rsp = i.mnemonic() == Mnemonic::Pop && i.op0_register() == Register::RSP;
        if i.mnemonic() == Mnemonic::Leave {
            self.registers[RSP] = Value { offset: frame.offset.wrapping_add(8), ..frame };
        } else if i.is_stack_instruction() && i.stack_pointer_increment() != 0 && !pops_rsp {
            let by = i64::from(i.stack_pointer_increment());
            self.registers[RSP] = Value { offset: stack.offset.wrapping_add(by), ..stack };
        }
    }
}

/// Registers that memory operands depend on beside their addresses.
fn beside_addresses(i: &Instruction) -> u16 {
    let mut set = 0;
    if (i.has_rep_prefix() || i.has_repne_prefix()) && i.is_string_instruction() {
        set |= bit(Register::RCX);
    }
    match i.mnemonic() {
        Mnemonic::Wrfsbase | Mnemonic::Wrgsbase => set |= bit(i.op0_register()),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
            if i.op0_kind() == OpKind::Memory && i.op1_kind() == OpKind::Register =>
        {
            set |= bit(i.op1_register());
        }
        _ => {}
    }
    set
}

/// Of a general register; of others, none.
fn bit(register: Register) -> u16 {
    if register.is_gpr() { 1 << register.full_register().number() } else { 0 }
}

fn bits(mut set: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        lowest
    })
}

fn is_write(access: OpAccess) -> bool {
    use OpAccess::*;
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

fn touches(memory: &UsedMemory) -> bool {
    !matches!(memory.access(), OpAccess::None | OpAccess::NoMemAccess)
}

/// `repe cmps` and its like stop when they have found something.
fn ends_early(i: &Instruction) -> bool {
    use Mnemonic::*;
    (i.has_repe_prefix() || i.has_repne_prefix())
        && matches!(i.mnemonic(), Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq)
}

/// Instructions that make a 64-bit register from another one and a constant: to,
/// from, what is added.
fn affine(i: &Instruction) -> Option<(usize, usize, i64)> {
    if i.op_count() == 0 || i.op0_kind() != OpKind::Register || !i.op0_register().is_gpr64() {
        return None;
    }
    let to = i.op0_register().number();
    let immediate = || match i.op1_kind() {
        OpKind::Immediate8to64 => Some(i.immediate8to64()),
        OpKind::Immediate32to64 => Some(i.immediate32to64()),
        _ => None,
    };
    match i.mnemonic() {
        Mnemonic::Add => Some((to, to, immediate()?)),
        Mnemonic::Sub => Some((to, to, immediate()?.wrapping_neg())),
        Mnemonic::Inc => Some((to, to, 1)),
        Mnemonic::Dec => Some((to, to, -1)),
        Mnemonic::Mov if i.op1_kind() == OpKind::Register && i.op1_register().is_gpr64() => {
            Some((to, i.op1_register().number(), 0))
        }
        Mnemonic::Lea if i.memory_index() == Register::None && i.memory_base().is_gpr64() => {
            Some((to, i.memory_base().number(), i.memory_displacement64() as i64))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn run(code: &[u8]) -> Captures {
        let (mut captures, mut factory) = (Captures::new(), InstructionInfoFactory::new());
        for i in Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE) {
            let touched = Touched::by(&i, &mut factory);
            captures.before(touched);
            captures.after(&i, touched);
        }
        captures.at_end();
        captures
    }

    #[test]
    fn what_was_met_lately_touches_what_it_touched() {
        let mut lately = MetLately::default();
        // push and pop of all registers, several times; a prefix alone makes another of it.
        let pushes = (0x50..0x60).flat_map(|code| [vec![code], vec![0x41, code]]);
        let all: Vec<Vec<u8>> = pushes.chain([vec![0x41, 0x90], vec![0x90]]).collect();
        for bytes in all.iter().chain(&all) {
            let i = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
            let by = Touched::by(&i, &mut InstructionInfoFactory::new());
            assert_eq!(lately.touched(&i, bytes), by, "{bytes:x?}");
        }
    }

    #[test]
    fn a_prologue_needs_the_stack_pointer_once() {
        // push rbp; mov rbp,rsp; sub rsp,16; mov [rbp-8],rdi; mov rax,[rbp-8]
        let c = run(&[
            0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x48, 0x89, 0x7d, 0xf8, 0x48, 0x8b,
            0x45, 0xf8,
        ]);
        assert_eq!(c.list(), [Capture { before: 0, register: 4 }]);
        assert_eq!(c.value(5), Some(Known { capture: 0, offset: -8 }));
        assert_eq!(c.since_head(4), Some((4, -24)));
    }

    #[test]
    fn a_loaded_pointer_is_a_new_version() {
        // mov rax,[rax]; mov rax,[rax+8]
        let c = run(&[0x48, 0x8b, 0x00, 0x48, 0x8b, 0x40, 0x08]);
        let before: Vec<u16> = c.list().iter().map(|c| c.before).collect();
        assert_eq!(before, [0, 1]);
        assert_eq!(c.since_head(0), None);
    }

    #[test]
    fn a_search_that_may_end_early_is_measured_by_rcx() {
        // repne scasb
        let c = run(&[0xf2, 0xae]);
        let registers: Vec<u8> = c.list().iter().map(|c| c.register).collect();
        assert_eq!(registers, [1, 7, 1]);
    }
}
