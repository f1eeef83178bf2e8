//! How is the place of a variable computed from debug information and the state
//! of a thread?

use gimli::{
    DieReference, Evaluation, EvaluationResult, Expression, UnitOffset, Value, ValueType, constants,
};

use super::dwarf::{Attribute, Entry, Reader};
use super::located::{Gone, Piece};
use super::program::{Place, Program};
use super::state::{Register, State};
use super::types::byte_size;

/// Expressions of real programs take some tens of steps.
const MOST_STEPS: u32 = 10_000;

/// An instant at which variables are located.
pub(super) struct Instant<'a> {
    pub(super) program: &'a Program,
    /// The unit of the variable and the address of the code, in the file's terms.
    pub(super) place: Place<'a>,
    /// The function whose frame holds the variable, if any.
    pub(super) function: Option<UnitOffset>,
    /// The run-time address of the code.
    pub(super) pc: u64,
    pub(super) state: &'a dyn State,
}

impl Instant<'_> {
    /// The pieces of a variable of `size` bytes.
    pub(super) fn locate(&self, entry: &Entry, size: u64) -> Vec<Piece> {
        let pieces = if let Some(location) = entry.attr_value(constants::DW_AT_location) {
            self.expression_here(location).and_then(|expression| self.pieces(expression, size))
        } else if let Some(constant) = entry.attr_value(constants::DW_AT_const_value) {
            constant_bytes(&constant, size).map(|bytes| vec![Piece::Value(bytes)])
        } else {
            Err(Gone::OptimisedOut)
        };
        match pieces {
            Ok(pieces) if !pieces.is_empty() => pieces,
            Ok(_) => vec![Piece::Gone { len: size, why: Gone::OptimisedOut }],
            Err(why) => vec![Piece::Gone { len: size, why }],
        }
    }

    /// The expression of a location that is valid at this instant.
    fn expression_here(&self, location: Attribute) -> Result<Expression<Reader>, Gone> {
        if let Attribute::Exprloc(expression) = location {
            return Ok(expression);
        }
        let (dwarf, unit) = (&self.place.info.dwarf, self.place.unit.raw());
        let list =
            dwarf.attr_locations(unit, location).ok().flatten().ok_or(Gone::NotUnderstood)?;
        let mut entries = list.map_while(Result::ok);
        let link = self.place.link;
        let valid = entries.find(|entry| entry.range.begin <= link && link < entry.range.end);
        valid.map(|entry| entry.data).ok_or(Gone::OptimisedOut)
    }

    fn pieces(&self, expression: Expression<Reader>, size: u64) -> Result<Vec<Piece>, Gone> {
        let evaluation = self.evaluate(expression)?;
        let mut pieces = Vec::new();
        for piece in evaluation.result() {
            let bits = piece.size_in_bits.unwrap_or(size.saturating_mul(8));
            let skipped = piece.bit_offset.unwrap_or(0);
            let whole_bytes = bits.is_multiple_of(8) && skipped.is_multiple_of(8);
            let len = bits.div_ceil(8);
            pieces.push(match whole_bytes {
                true => place_of(piece.location, skipped / 8, len),
                false => Piece::Gone { len, why: Gone::NotUnderstood },
            });
        }
        Ok(pieces)
    }

    /// Runs an expression to its end.
    fn evaluate(&self, expression: Expression<Reader>) -> Result<Evaluation<Reader>, Gone> {
        let mut evaluation = expression.evaluation(self.place.unit.raw().encoding());
        evaluation.set_max_iterations(MOST_STEPS);
        let mut result = evaluation.evaluate().map_err(|_| Gone::NotUnderstood)?;
        while result != EvaluationResult::Complete {
            result = self.resume(&mut evaluation, result)?;
        }
        Ok(evaluation)
    }

    /// Gives an expression what it asks for.
    fn resume(
        &self,
        evaluation: &mut Evaluation<Reader>,
        wanted: EvaluationResult<Reader>,
    ) -> Result<EvaluationResult<Reader>, Gone> {
        let resumed = match wanted {
            EvaluationResult::RequiresRegister { register, base_type } => {
                let register = Register(register.0);
                let value = self.state.register(register).ok_or(Gone::RegisterLost(register))?;
                evaluation.resume_with_register(self.typed(value, base_type)?)
            }
            EvaluationResult::RequiresMemory { address, size, base_type, .. } => {
                let value = self.memory(address, size)?;
                evaluation.resume_with_memory(self.typed(value, base_type)?)
            }
            EvaluationResult::RequiresFrameBase => {
                evaluation.resume_with_frame_base(self.frame_base()?)
            }
            EvaluationResult::RequiresCallFrameCfa => {
                evaluation.resume_with_call_frame_cfa(self.frame_address()?)
            }
            EvaluationResult::RequiresTls(offset) => {
                evaluation.resume_with_tls(self.thread_local(offset)?)
            }
            EvaluationResult::RequiresEntryValue(expression) => {
                let value = self.entry_value(expression)?;
                evaluation.resume_with_entry_value(Value::Generic(value))
            }
            EvaluationResult::RequiresRelocatedAddress(address) => {
                evaluation.resume_with_relocated_address(self.place.image.to_run(address))
            }
            EvaluationResult::RequiresIndexedAddress { index, relocate } => {
                let address = self.place.info.dwarf.address(self.place.unit.raw(), index);
                let address = address.map_err(|_| Gone::NotUnderstood)?;
                let address = if relocate { self.place.image.to_run(address) } else { address };
                evaluation.resume_with_indexed_address(address)
            }
            EvaluationResult::RequiresBaseType(offset) => {
                evaluation.resume_with_base_type(self.base_type(offset)?)
            }
            EvaluationResult::RequiresAtLocation(DieReference::UnitRef(offset)) => {
                let entry = self.place.unit.raw().entry(offset).map_err(|_| Gone::NotUnderstood)?;
                let location = entry.attr_value(constants::DW_AT_location);
                let location = location.ok_or(Gone::NotUnderstood)?;
                evaluation.resume_with_at_location(self.expression_here(location)?.0)
            }
            _ => return Err(Gone::NotUnderstood),
        };
        resumed.map_err(|_| Gone::NotUnderstood)
    }

    fn memory(&self, address: u64, size: u8) -> Result<u64, Gone> {
        let bytes = self.state.memory(address, usize::from(size).min(8)).ok_or(Gone::Unreadable)?;
        Ok(number(&bytes))
    }

    /// A value for the stack of an expression, which may be typed.
    fn typed(&self, value: u64, base_type: UnitOffset) -> Result<Value, Gone> {
        let value_type = match base_type.0 {
            0 => ValueType::Generic,
            _ => self.base_type(base_type)?,
        };
        Value::from_u64(value_type, value).map_err(|_| Gone::NotUnderstood)
    }

    fn base_type(&self, offset: UnitOffset) -> Result<ValueType, Gone> {
        if offset.0 == 0 {
            return Ok(ValueType::Generic);
        }
        let entry = self.place.unit.raw().entry(offset).map_err(|_| Gone::NotUnderstood)?;
        let Some(Attribute::Encoding(encoding)) = entry.attr_value(constants::DW_AT_encoding)
        else {
            return Err(Gone::NotUnderstood);
        };
        let size = byte_size(&entry).ok_or(Gone::NotUnderstood)?;
        ValueType::from_encoding(encoding, size).ok_or(Gone::NotUnderstood)
    }

    /// The address that the function's variables are relative to.
    fn frame_base(&self) -> Result<u64, Gone> {
        let function = self.function.ok_or(Gone::NoFrame)?;
        let entry = self.place.unit.raw().entry(function).map_err(|_| Gone::NotUnderstood)?;
        let base = entry.attr_value(constants::DW_AT_frame_base).ok_or(Gone::NoFrame)?;
        let expression = self.expression_here(base)?;
        let frameless = Instant { function: None, ..*self };
        let result = frameless.evaluate(expression)?.result();
        match result.first().map(|piece| &piece.location) {
            Some(gimli::Location::Register { register }) => {
                let register = Register(register.0);
                self.state.register(register).ok_or(Gone::RegisterLost(register))
            }
            Some(gimli::Location::Address { address }) => Ok(*address),
            _ => Err(Gone::NotUnderstood),
        }
    }

    fn frame_address(&self) -> Result<u64, Gone> {
        self.program.frame_address(self.pc, self.state).ok_or(Gone::NoFrame)
    }

    /// The address of a thread-local variable. The block of the main executable
    /// ends at the FS base; those of libraries are known only to the dynamic
    /// linker.
    fn thread_local(&self, offset: u64) -> Result<u64, Gone> {
        if self.place.image_index != 0 {
            return Err(Gone::ThreadLocal);
        }
        let tls = self.place.image.tls().ok_or(Gone::NotUnderstood)?;
        let block = tls.size.checked_next_multiple_of(tls.align).ok_or(Gone::NotUnderstood)?;
        Ok(self.state.fs_base().wrapping_sub(block).wrapping_add(offset))
    }

    /// What a register held when the function was entered, if the state knows.
    fn entry_value(&self, expression: Expression<Reader>) -> Result<u64, Gone> {
        let mut operations = expression.operations(self.place.unit.raw().encoding());
        match operations.next() {
            Ok(Some(gimli::Operation::Register { register })) => {
                self.state.register_at_entry(Register(register.0)).ok_or(Gone::EntryValue)
            }
            _ => Err(Gone::EntryValue),
        }
    }
}

fn place_of(location: gimli::Location<Reader>, skipped: u64, len: u64) -> Piece {
    match location {
        gimli::Location::Empty => Piece::Gone { len, why: Gone::OptimisedOut },
        gimli::Location::Register { register } => {
            Piece::Register { number: Register(register.0), first_byte: skipped, len }
        }
        gimli::Location::Address { address } => {
            Piece::Memory { address: address.wrapping_add(skipped), len }
        }
        gimli::Location::Value { value } => match value_bytes(value, skipped, len) {
            Some(bytes) => Piece::Value(bytes),
            None => Piece::Gone { len, why: Gone::NotUnderstood },
        },
        gimli::Location::Bytes { value } => match part(value.bytes(), skipped, len) {
            Some(bytes) => Piece::Value(bytes),
            None => Piece::Gone { len, why: Gone::NotUnderstood },
        },
        gimli::Location::ImplicitPointer { .. } => Piece::Gone { len, why: Gone::ImplicitPointer },
    }
}

fn value_bytes(value: Value, skipped: u64, len: u64) -> Option<Vec<u8>> {
    let bytes = match value {
        Value::F32(value) => value.to_le_bytes().to_vec(),
        Value::F64(value) => value.to_le_bytes().to_vec(),
        Value::I8(value) => i64::from(value).to_le_bytes().to_vec(),
        Value::I16(value) => i64::from(value).to_le_bytes().to_vec(),
        Value::I32(value) => i64::from(value).to_le_bytes().to_vec(),
        other => other.to_u64(u64::MAX).ok()?.to_le_bytes().to_vec(),
    };
    part(&bytes, skipped, len)
}

fn part(bytes: &[u8], skipped: u64, len: u64) -> Option<Vec<u8>> {
    let first = usize::try_from(skipped).ok()?;
    let end = first.checked_add(usize::try_from(len).ok()?)?;
    Some(bytes.get(first..end)?.to_vec())
}

/// The bytes of a constant. Small negative ones are stored short.
fn constant_bytes(constant: &Attribute, size: u64) -> Result<Vec<u8>, Gone> {
    let number = match constant {
        Attribute::Block(bytes) => return Ok(bytes.bytes().to_vec()),
        Attribute::Sdata(value) => Some(*value as u64),
        other => other.udata_value(),
    };
    let number = number.ok_or(Gone::NotUnderstood)?;
    part(&number.to_le_bytes(), 0, size).ok_or(Gone::NotUnderstood)
}

/// A little-endian number of up to eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
