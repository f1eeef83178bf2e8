//! What does an expression over variables mean at an instant?

use super::error::Error;
use super::located::Located;
use super::location::number;
use super::parse::{Expression, Operator, parse};
use super::program::Program;
use super::scalars;
use super::state::State;
use super::types::{Kind, Shape, Type};
use super::wrappers::Wrapped;

/// How the bytes of a number are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// A number, a character, an enumeration or a pointer.
    Whole,
    /// Floating point.
    Float,
}

/// How many pointers a member access follows. Only damaged types have more.
const MOST_POINTERS: usize = 8;

impl Program {
    /// The value of an expression when the code at `pc` is about to run, and the
    /// places that hold it: variables, `p->a.b[3]`, `*p`, `&x`, `a[i + 1]`.
    pub fn evaluate(&self, pc: u64, expression: &str, state: &dyn State) -> Result<Located, Error> {
        Evaluator { program: self, pc, state }.value(&parse(expression)?)
    }

    /// Can an expression be read?
    pub fn check(expression: &str) -> Result<(), Error> {
        parse(expression).map(|_| ())
    }

    /// The value of a number, a character, an enumeration or a pointer.
    pub fn integer(&self, value: &Located, state: &dyn State) -> Result<i128, Error> {
        let is_signed = match self.kind(&value.ty) {
            Kind::Base { encoding, .. } if !scalars::is_float(encoding) => {
                scalars::is_signed(encoding)
            }
            Kind::Enumeration(_) | Kind::Pointer { .. } => false,
            _ => return Err(self.wrong_type("a whole number", &value.ty)),
        };
        let bytes = value.bytes(state)?;
        let (raw, bits) = match value.bits {
            Some(bits) => (scalars::extract(&bytes, bits), bits.len),
            None => (scalars::wide(&bytes), (bytes.len().min(16) * 8) as u32),
        };
        Ok(if is_signed { scalars::signed(raw, bits) } else { raw as i128 })
    }

    /// What kind of number a value is; `None` if it is none.
    pub fn number_kind(&self, value: &Located) -> Option<NumberKind> {
        match self.kind(&value.ty) {
            Kind::Base { encoding, .. } if scalars::is_float(encoding) => Some(NumberKind::Float),
            Kind::Base { .. } | Kind::Enumeration(_) | Kind::Pointer { .. } => {
                Some(NumberKind::Whole)
            }
            _ => None,
        }
    }

    fn wrong_type(&self, operator: &str, ty: &Type) -> Error {
        Error::WrongType { operator: operator.to_owned(), type_name: self.type_name(ty) }
    }
}

struct Evaluator<'a> {
    program: &'a Program,
    pc: u64,
    state: &'a dyn State,
}

impl Evaluator<'_> {
    fn value(&self, expression: &Expression) -> Result<Located, Error> {
        match expression {
            Expression::Number(number) => Ok(computed(*number, Type(Shape::Integer))),
            Expression::Name(name) => self.name(name),
            Expression::Dereference(inner) => self.dereference(&self.value(inner)?),
            Expression::AddressOf(inner) => self.address_of(inner),
            Expression::Member(whole, name) => self.member(&self.value(whole)?, name),
            Expression::Index(whole, index) => {
                let index = self.number(&self.value(index)?)?;
                self.index(&self.value(whole)?, index)
            }
            Expression::Binary(operator, left, right) => {
                self.binary(*operator, &self.value(left)?, &self.value(right)?)
            }
        }
    }

    /// A variable; inside a C++ method, also a member of its object.
    fn name(&self, name: &str) -> Result<Located, Error> {
        let missing = match self.program.variable(self.pc, name) {
            Ok(variable) => return self.program.locate(&variable, self.pc, self.state),
            Err(error) => error,
        };
        let this = self.program.variable(self.pc, "this");
        let this = this.and_then(|this| self.program.locate(&this, self.pc, self.state));
        let object = this.and_then(|this| self.dereference(&this));
        object.and_then(|object| self.member(&object, name)).map_err(|_| missing)
    }

    fn dereference(&self, pointer: &Located) -> Result<Located, Error> {
        let pointer = self.behind_reference(pointer.clone())?;
        match self.program.kind(&pointer.ty) {
            Kind::Pointer { target, .. } => self.pointed(&pointer, &target),
            Kind::Array { .. } => self.index(&pointer, 0),
            _ => match self.program.wrapped(&pointer, self.state) {
                Some(Wrapped::Pointer(owned)) => match self.program.kind(&owned.ty) {
                    Kind::Pointer { target, .. } => self.pointed(&owned, &target),
                    _ => Err(self.program.wrong_type("*", &pointer.ty)),
                },
                Some(Wrapped::Held(value)) => Ok(value),
                _ => Err(self.program.wrong_type("*", &pointer.ty)),
            },
        }
    }

    /// What a pointer points to.
    fn pointed(&self, pointer: &Located, target: &Type) -> Result<Located, Error> {
        if target.is_void() {
            return Err(self.program.wrong_type("*", &pointer.ty));
        }
        let address = number(&pointer.bytes(self.state)?);
        let size = self.program.size_of(target).unwrap_or(0);
        Ok(Located::in_memory(address, size, target.clone()))
    }

    fn address_of(&self, inner: &Expression) -> Result<Located, Error> {
        let value = self.behind_reference(self.value(inner)?)?;
        let what = match inner {
            Expression::Name(name) => name.clone(),
            _ => self.program.type_name(&value.ty),
        };
        let address = value.address().filter(|_| value.bits.is_none());
        let address = address.ok_or(Error::NoAddress { what })?;
        Ok(computed(address as i64, Type(Shape::Pointer(Box::new(value.ty)))))
    }

    /// A member. As in Rust, a pointer to a structure is followed, also one that a structure
    /// of a library has: what that stands for is meant rather than the structure itself.
    fn member(&self, whole: &Located, name: &str) -> Result<Located, Error> {
        let (mut whole, mut wrappers) = (whole.clone(), Vec::new());
        for _ in 0..MOST_POINTERS {
            let inner = match self.program.kind(&whole.ty) {
                Kind::Pointer { target, .. } if !target.is_void() => {
                    self.pointed(&whole, &target)?
                }
                _ => match self.program.wrapped(&whole, self.state) {
                    Some(
                        Wrapped::Value(inner) | Wrapped::Held(inner) | Wrapped::Pointer(inner),
                    ) => {
                        wrappers.push(whole);
                        inner
                    }
                    Some(Wrapped::Nothing) | None => break,
                },
            };
            whole = inner;
        }
        let named = |whole: &Located| self.program.member_named(whole, name, self.state);
        named(&whole).or_else(|missing| {
            wrappers.iter().rev().find_map(|wrapper| named(wrapper).ok()).ok_or(missing)
        })
    }

    fn index(&self, whole: &Located, index: i128) -> Result<Located, Error> {
        let whole = self.indexed(whole.clone())?;
        if let Some(sequence) = self.program.sequence(&whole, self.state) {
            return Ok(self.program.element(&sequence, index as u64));
        }
        match self.program.kind(&whole.ty) {
            Kind::Array { element, .. } => {
                let size = self.program.size_of(&element).unwrap_or(0);
                let offset = (index as u64).wrapping_mul(size);
                match whole.address() {
                    // As in C, an index outside of the array is still a place.
                    Some(start) => {
                        Ok(Located::in_memory(start.wrapping_add(offset), size, element))
                    }
                    None => Ok(whole.part(offset, size, element)),
                }
            }
            Kind::Pointer { .. } => self.dereference(&self.advance(&whole, index)?),
            _ => Err(self.program.wrong_type("[]", &whole.ty)),
        }
    }

    /// What an index is of: what references stand for, and in Rust what `&` and `Box` point to.
    fn indexed(&self, value: Located) -> Result<Located, Error> {
        let mut value = self.behind_reference(value)?;
        for _ in 0..MOST_POINTERS {
            if self.program.is_rust_reference(&value.ty)
                && let Kind::Pointer { target, .. } = self.program.kind(&value.ty)
            {
                value = self.pointed(&value, &target)?;
            } else if let Some(Wrapped::Value(inner) | Wrapped::Held(inner)) =
                self.program.wrapped(&value, self.state)
            {
                value = inner;
            } else {
                break;
            }
        }
        Ok(value)
    }

    fn binary(
        &self,
        operator: Operator,
        left: &Located,
        right: &Located,
    ) -> Result<Located, Error> {
        let left_pointer = self.as_pointer(left)?;
        match operator {
            Operator::Add if left_pointer.is_none() && self.as_pointer(right)?.is_some() => {
                return self.binary(operator, right, left);
            }
            Operator::Add | Operator::Subtract => {
                if let Some(pointer) =
                    left_pointer.filter(|_| self.as_pointer(right).ok().flatten().is_none())
                {
                    let distance = self.number(right)?;
                    let back = operator == Operator::Subtract;
                    return self
                        .advance(&pointer, if back { distance.wrapping_neg() } else { distance });
                }
            }
            Operator::Multiply => {}
        }
        let (a, b) = (self.number(left)?, self.number(right)?);
        let result = match operator {
            Operator::Add => a.wrapping_add(b),
            Operator::Subtract => a.wrapping_sub(b),
            Operator::Multiply => a.wrapping_mul(b),
        };
        Ok(computed(result as i64, Type(Shape::Integer)))
    }

    /// A pointer, or the array that it decays from.
    fn as_pointer(&self, value: &Located) -> Result<Option<Located>, Error> {
        let value = self.behind_reference(value.clone())?;
        Ok(match self.program.kind(&value.ty) {
            Kind::Pointer { .. } => Some(value),
            Kind::Array { element, .. } => {
                let pointer = Type(Shape::Pointer(Box::new(element)));
                value.address().map(|address| computed(address as i64, pointer))
            }
            _ => None,
        })
    }

    /// A pointer that is so many objects further.
    fn advance(&self, pointer: &Located, distance: i128) -> Result<Located, Error> {
        let Kind::Pointer { target, .. } = self.program.kind(&pointer.ty) else {
            return Err(self.program.wrong_type("+", &pointer.ty));
        };
        let size = self.program.size_of(&target).unwrap_or(1);
        let address = number(&pointer.bytes(self.state)?);
        let moved = address.wrapping_add((distance as u64).wrapping_mul(size));
        Ok(computed(moved as i64, pointer.ty.clone()))
    }

    fn number(&self, value: &Located) -> Result<i128, Error> {
        self.program.integer(&self.behind_reference(value.clone())?, self.state)
    }

    /// The object that a C++ reference stands for.
    fn behind_reference(&self, value: Located) -> Result<Located, Error> {
        match self.program.kind(&value.ty) {
            Kind::Pointer { target, is_reference: true } => self.pointed(&value, &target),
            _ => Ok(value),
        }
    }
}

fn computed(number: i64, ty: Type) -> Located {
    Located::value(number.to_le_bytes().to_vec(), ty)
}
