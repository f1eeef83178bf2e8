//! Reading events.

use super::tags::*;
use super::{Effect, Effects, Event, When};
use crate::FileId;

/// Bytes that are not an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the log is malformed")]
pub struct Malformed;

impl<'a> Event<'a> {
    /// Reads an event.
    pub fn decode(bytes: &'a [u8]) -> Result<Event<'a>, Malformed> {
        let mut r = Cursor(bytes);
        let event = match r.byte()? {
            CALL => {
                let state = r.state()?;
                let number = u32::try_from(r.number()?).map_err(|_| Malformed)?;
                let z = r.number()?;
                let result = (z >> 1) as i64 ^ -((z & 1) as i64);
                Event::Call { number, result, state, effects: Effects(r.0) }
            }
            VALUE => {
                let state = r.state()?;
                Event::Value { value: r.number()?, state }
            }
            SIGNAL => {
                let state = r.state()?;
                Event::Signal { when: r.when()?, info: r.slice()?, state }
            }
            SWITCH => {
                let state = r.state()?;
                let when = r.when()?;
                let to = u32::try_from(r.number()?).map_err(|_| Malformed)?;
                Event::Switch { when, to, state }
            }
            SHARED => Event::Shared { when: r.when()?, effects: Effects(r.0) },
            MEMORY => Event::Memory { hash: r.hash()? },
            END => Event::End { status: r.number()? as u32 as i32, memory: r.hash()? },
            ENTRY => Event::Entry { state: r.slice()? },
            CONTENTS => {
                let own = r.byte()? != 0;
                Event::Contents { address: r.number()?, own, data: r.slice()? }
            }
            CUT => Event::Cut { when: r.when()? },
            STRETCH => Event::Stretch {
                state: r.state()?,
                thread: u32::try_from(r.number()?).map_err(|_| Malformed)?,
                number: r.number()?,
                count: r.number()?,
                registers: r.slice()?,
                effects: Effects(r.0),
            },
            _ => return Err(Malformed),
        };
        Ok(event)
    }
}

impl<'a> Effects<'a> {
    /// Reads the effects in order; stops at the first malformed one.
    pub fn iter(self) -> impl Iterator<Item = Result<Effect<'a>, Malformed>> {
        let mut r = Cursor(self.0);
        let mut broken = false;
        std::iter::from_fn(move || {
            if broken || r.0.is_empty() {
                return None;
            }
            let effect = r.effect();
            broken = effect.is_err();
            Some(effect)
        })
    }
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(Malformed)?;
        self.0 = rest;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    fn hash(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| Malformed)?))
    }

    fn state(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().map_err(|_| Malformed)?))
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let b = self.byte()?;
            n |= ((b & 0x7f) as u64) << shift;
            if b < 0x80 {
                return Ok(n);
            }
        }
        Err(Malformed)
    }

    fn slice(&mut self) -> Result<&'a [u8], Malformed> {
        let n = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        self.take(n)
    }

    fn when(&mut self) -> Result<When, Malformed> {
        match self.byte()? {
            0 => Ok(When::Here),
            1 => Ok(When::Safepoint(self.number()?)),
            _ => Err(Malformed),
        }
    }

    fn file(&mut self) -> Result<FileId, Malformed> {
        Ok(FileId(self.take(16)?.try_into().map_err(|_| Malformed)?))
    }

    fn effect(&mut self) -> Result<Effect<'a>, Malformed> {
        Ok(match self.byte()? {
            WRITE => Effect::Write { address: self.number()?, data: self.slice()? },
            COPY => Effect::Copy {
                address: self.number()?,
                file: self.file()?,
                offset: self.number()?,
                len: self.number()?,
            },
            OPENED => {
                Effect::Opened { file: self.file()?, device: self.number()?, inode: self.number()? }
            }
            EMPTIED => Effect::Emptied {
                file: self.file()?,
                device: self.number()?,
                inode: self.number()?,
            },
            SPAWNED => {
                Effect::Spawned { thread: u32::try_from(self.number()?).map_err(|_| Malformed)? }
            }
            OUTPUT => Effect::Output { data: self.slice()? },
            FORKED => Effect::Forked {
                log: self.number()?,
                pid: u32::try_from(self.number()?).map_err(|_| Malformed)?,
            },
            EXECUTED => Effect::Executed { log: self.number()? },
            ORDER => Effect::Order { number: self.number()? },
            MAPPED => Effect::Mapped {
                fresh: self.byte()? != 0,
                address: self.number()?,
                len: self.number()?,
                protection: match self.number()? {
                    0 => None,
                    n => Some(u32::try_from(n - 1).map_err(|_| Malformed)?),
                },
            },
            BETWEEN => Effect::Between { gaps: self.slice()? },
            FOUND => Effect::Found { stat: self.take(144)?.try_into().map_err(|_| Malformed)? },
            CHANGED => Effect::Changed {
                device: self.number()?,
                inode: self.number()?,
                size: self.number()?,
                offset: self.number()?,
                data: self.slice()?,
            },
            _ => return Err(Malformed),
        })
    }
}
