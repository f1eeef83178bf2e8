//! Who called whom: how is the stack of a thread unwound?

use gimli::{
    Encoding, EndianSlice, EvaluationResult, Expression, Format, LittleEndian, Location, Value,
};

use super::cfi::{FrameRules, Rule};
use super::function::Function;
use super::program::Program;
use super::state::{Register, State, read_word};

/// A stack deeper than this is cut off: its end would not be read by anyone.
const DEEPEST: usize = 65_536;

/// General registers and `rip`, as far as they are known.
pub type Registers = [Option<u64>; 17];

/// One activation of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFrame {
    /// The address of the next instruction of this frame.
    pub pc: u64,
    /// Where the frame ends: the stack pointer before its call.
    pub cfa: u64,
    /// The function.
    pub function: Option<Function>,
    /// The registers of this frame, as far as they are known.
    pub registers: Registers,
    /// Whether `pc` is a return address, so that the call is before it.
    pub is_caller: bool,
}

/// A frame of the stack as a state of its own, to look at its variables.
pub struct FrameState<'a> {
    inner: &'a dyn State,
    registers: Registers,
}

impl CallFrame {
    /// An address inside the instruction that this frame executes. For a caller,
    /// that is its call, whose line may differ from the return address's.
    pub fn executing(&self) -> u64 {
        if self.is_caller { self.pc.wrapping_sub(1) } else { self.pc }
    }

    /// The state as this frame sees it.
    pub fn state<'a>(&self, inner: &'a dyn State) -> FrameState<'a> {
        FrameState { inner, registers: self.registers }
    }
}

impl State for FrameState<'_> {
    fn register(&self, register: Register) -> Option<u64> {
        *self.registers.get(usize::from(register.0))?
    }

    fn memory(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        self.inner.memory(address, len)
    }

    fn fs_base(&self) -> u64 {
        self.inner.fs_base()
    }
}

impl Program {
    /// The stack of a thread, innermost frame first. It ends where no caller can
    /// be found.
    pub fn unwind(&self, state: &dyn State) -> Vec<CallFrame> {
        let mut frames: Vec<CallFrame> = Vec::new();
        let mut registers: Registers = std::array::from_fn(|n| state.register(Register(n as u16)));
        let mut is_caller = false;
        while let Some(pc) = registers[16].filter(|pc| *pc != 0) {
            let executing = if is_caller { pc.wrapping_sub(1) } else { pc };
            let step = self.step(executing, &registers, state);
            let cfa = step.as_ref().map_or(0, |step| step.cfa);
            let function = self.function(executing);
            frames.push(CallFrame { pc, cfa, function, registers, is_caller });
            let Some(step) = step.filter(|_| frames.len() < DEEPEST) else { break };
            // A stack grows downwards, so a caller that lies lower is a mistake,
            // except that signal handlers may have a stack of their own.
            if !step.is_signal && step.cfa <= registers[7].unwrap_or(0) && is_caller {
                break;
            }
            is_caller = !step.is_signal;
            registers = step.registers;
        }
        frames
    }

    /// The canonical frame address at an instruction.
    pub(super) fn frame_address(&self, pc: u64, state: &dyn State) -> Option<u64> {
        let registers: Registers = std::array::from_fn(|n| state.register(Register(n as u16)));
        Some(self.step(pc, &registers, state)?.cfa)
    }

    fn step(&self, executing: u64, registers: &Registers, state: &dyn State) -> Option<Step> {
        let (_, image) = self.image_at(executing).unzip();
        let rules = image.and_then(|image| image.cfi().rules(image.to_link(executing)));
        let by_rules = rules.and_then(|rules| apply(&rules, registers, state));
        by_rules.or_else(|| self.step_by_convention(executing, registers, state))
    }

    /// Finds a caller without frame information: stubs and first instructions
    /// have just been called; other code probably keeps a frame pointer.
    fn step_by_convention(
        &self,
        pc: u64,
        registers: &Registers,
        state: &dyn State,
    ) -> Option<Step> {
        let stack = registers[7]?;
        let mut caller = *registers;
        let just_called = self.is_plt(pc) || self.function(pc).is_some_and(|f| f.offset == 0);
        let cfa = if just_called {
            stack.wrapping_add(8)
        } else {
            let frame = registers[6].filter(|frame| *frame >= stack)?;
            caller[6] = Some(read_word(state, frame)?);
            frame.wrapping_add(16)
        };
        let returns_to = read_word(state, cfa.wrapping_sub(8))?;
        self.image_at(returns_to)?;
        forget_scratch(&mut caller);
        caller[7] = Some(cfa);
        caller[16] = Some(returns_to);
        Some(Step { cfa, registers: caller, is_signal: false })
    }
}

struct Step {
    cfa: u64,
    registers: Registers,
    is_signal: bool,
}

fn apply(rules: &FrameRules, registers: &Registers, state: &dyn State) -> Option<Step> {
    let cfa = resolve(&rules.cfa, None, None, registers, state)?;
    let mut caller = *registers;
    forget_scratch(&mut caller);
    caller[7] = Some(cfa);
    caller[16] = None;
    for (register, rule) in &rules.registers {
        let Some(slot) = caller.get_mut(usize::from(register.0)) else { continue };
        let same = registers.get(usize::from(register.0)).copied().flatten();
        *slot = resolve(rule, Some(cfa), same, registers, state);
    }
    if rules.return_address != Register::RIP {
        caller[16] = caller.get(usize::from(rules.return_address.0)).copied().flatten();
    }
    Some(Step { cfa, registers: caller, is_signal: rules.is_signal })
}

/// A caller's scratch registers are not to be found: the callee has used them.
fn forget_scratch(registers: &mut Registers) {
    for (number, register) in (0..).zip(registers.iter_mut()) {
        if !Register(number).is_preserved() {
            *register = None;
        }
    }
}

fn resolve(
    rule: &Rule,
    cfa: Option<u64>,
    same: Option<u64>,
    registers: &Registers,
    state: &dyn State,
) -> Option<u64> {
    let register = |register: Register| *registers.get(usize::from(register.0))?;
    match rule {
        Rule::Lost => None,
        Rule::Same => same,
        Rule::Saved(offset) => read_word(state, cfa?.wrapping_add_signed(*offset)),
        Rule::Frame(offset) => Some(cfa?.wrapping_add_signed(*offset)),
        Rule::Register(other, offset) => Some(register(*other)?.wrapping_add_signed(*offset)),
        Rule::SavedAt(bytes) => read_word(state, compute(bytes, cfa, registers, state)?),
        Rule::Computed(bytes) => compute(bytes, cfa, registers, state),
    }
}

/// Evaluates an expression of call frame information.
fn compute(
    bytes: &[u8],
    cfa: Option<u64>,
    registers: &Registers,
    state: &dyn State,
) -> Option<u64> {
    let encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 8 };
    let expression = Expression(EndianSlice::new(bytes, LittleEndian));
    let mut evaluation = expression.evaluation(encoding);
    evaluation.set_max_iterations(1000);
    if let Some(cfa) = cfa {
        evaluation.set_initial_value(cfa);
    }
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = (*registers.get(usize::from(register.0))?)?;
                evaluation.resume_with_register(Value::Generic(value)).ok()?
            }
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let mut word = state.memory(address, usize::from(size))?;
                word.resize(8, 0);
                let value = u64::from_le_bytes(word.try_into().ok()?);
                evaluation.resume_with_memory(Value::Generic(value)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.result().first()?.location {
        Location::Address { address } => Some(address),
        Location::Value { value: Value::Generic(value) } => Some(value),
        _ => None,
    }
}
