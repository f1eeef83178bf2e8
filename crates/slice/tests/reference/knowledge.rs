//! What the processor said of each instruction, kept between runs.

use super::relation::{self, From, Location};
use engine::lockstep::probe::{self, CODE, Place, Probe};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use program::effects::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Rounds in which anything at all is looked for.
const ROUNDS: u32 = 16;
/// Rounds in which dependences that the model has are looked for besides.
const MORE_ROUNDS: u32 = 400;

/// Of one instruction.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its memory operands.
    pub operands: Vec<Location>,
    /// What it defines, and from what.
    pub from: From,
    /// Could the processor be asked?
    pub observed: bool,
}

/// All that was asked so far.
pub struct Knowledge {
    probe: Option<Probe>,
    by_bytes: BTreeMap<Vec<u8>, Option<From>>,
    file: PathBuf,
    changed: bool,
}

/// The instruction's bytes, with the constant part of an address, a jump's distance
/// and a number that is merely put somewhere made the same for all, since none of them
/// matters. An address that is computed is a sum: as long as the lowest byte of its
/// constant is not zero, every byte can get a carry from all below.
fn normal(i: &Instruction, bytes: &[u8]) -> Vec<u8> {
    let mut normal = bytes.to_vec();
    let mut decoder = Decoder::with_ip(64, bytes, i.ip(), DecoderOptions::NONE);
    let again = decoder.decode();
    let offsets = decoder.get_constant_offsets(&again);
    let (at, size) = (offsets.displacement_offset(), offsets.displacement_size());
    let is_address = i.mnemonic() != iced_x86::Mnemonic::Lea || i.is_ip_rel_memory_operand();
    match size {
        1 if is_address || normal[at] != 0 => normal[at] = 0x10,
        4 if is_address => normal[at..at + 4].copy_from_slice(&0x0100_0000u32.to_le_bytes()),
        4 if normal[at] != 0 => normal[at..at + 4].copy_from_slice(&0x0101_0110u32.to_le_bytes()),
        _ => {}
    }
    let puts = matches!(i.mnemonic(), iced_x86::Mnemonic::Mov | iced_x86::Mnemonic::Push);
    if puts && offsets.has_immediate() {
        let at = offsets.immediate_offset();
        normal[at..at + offsets.immediate_size()].fill(0x11);
    }
    if i.near_branch_target() != 0 && offsets.has_immediate() {
        let at = offsets.immediate_offset();
        normal[at..at + offsets.immediate_size()].fill(0x11);
    }
    normal
}

impl Knowledge {
    /// What was kept in a file.
    pub fn open(file: &Path) -> Knowledge {
        let mut by_bytes = BTreeMap::new();
        for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
            if let Some((bytes, from)) = parse(line) {
                by_bytes.insert(bytes, from);
            }
        }
        Knowledge { probe: None, by_bytes, file: file.to_path_buf(), changed: false }
    }

    /// How many instructions are known.
    pub fn len(&self) -> usize {
        self.by_bytes.len()
    }

    /// Keeps it.
    pub fn save(&mut self) {
        if std::mem::take(&mut self.changed) {
            let lines: String = self.by_bytes.iter().map(|(b, f)| line(b, f.as_ref())).collect();
            let new = self.file.with_extension(std::process::id().to_string());
            std::fs::write(&new, lines).expect("the folder can be written");
            std::fs::rename(&new, &self.file).expect("the folder can be written");
        }
    }

    /// Of one instruction, at its own address. `None` if its operands cannot be
    /// told.
    pub fn of(&mut self, i: &Instruction, bytes: &[u8]) -> Option<Known> {
        let normal = normal(i, bytes);
        if !self.by_bytes.contains_key(&normal) {
            let from = self.ask(&normal);
            self.by_bytes.insert(normal.clone(), from);
            self.changed = true;
            if self.by_bytes.len().is_multiple_of(200) {
                self.save();
            }
        }
        if let Some(from) = &self.by_bytes[&normal] {
            let operands = probe::operands(i)?.into_iter().map(Location::Sum).collect();
            let mut from = from.clone();
            // What a processor makes of flags that the manual leaves open says nothing of others.
            let model = relation::modelled(i, &probe::operands(i)?)?;
            for (to, sources) in &mut from {
                if relation::is_open(i, to) {
                    *sources = model.get(to).cloned().unwrap_or_default();
                }
            }
            // All of the x87 is one place: what writes to a part of it keeps the rest.
            let x87 = Place::Register(Cell::X87.number());
            if let Some(sources) = from.get_mut(&x87) {
                sources.insert(x87);
            }
            return Some(Known { operands, from, observed: true });
        }
        let (operands, from) = relation::only_modelled(i)?;
        Some(Known { operands, from, observed: false })
    }

    /// Asks the processor. What the model has beside and is excused counts as seen.
    fn ask(&mut self, bytes: &[u8]) -> Option<From> {
        let i = Decoder::with_ip(64, bytes, CODE, DecoderOptions::NONE).decode();
        let modelled = relation::modelled(&i, &probe::operands(&i)?)?;
        let probe = match &mut self.probe {
            Some(probe) => probe,
            none => {
                let probe = none.insert(Probe::new().expect("a scratch process"));
                probe.rounds = ROUNDS;
                probe
            }
        };
        let mut from = relation::observe(probe, bytes, &modelled, MORE_ROUNDS)?.from;
        for (to, sources) in &modelled {
            if !from.contains_key(to) && relation::excuse(&i, to, None).is_some() {
                from.insert(*to, BTreeSet::new());
            }
            if let Some(into) = from.get_mut(to) {
                into.extend(sources.iter().filter(|s| relation::excuse(&i, to, Some(s)).is_some()));
            }
        }
        Some(from)
    }
}

fn line(bytes: &[u8], from: Option<&From>) -> String {
    let mut text: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let Some(from) = from else { return text + " -\n" };
    for (to, sources) in from {
        text += &format!(" {}=", code(to));
        text += &sources.iter().map(code).collect::<Vec<_>>().join(",");
    }
    text + "\n"
}

fn code(place: &Place) -> String {
    match place {
        Place::Register(n) => n.to_string(),
        Place::Memory(operand, offset) => format!("m{operand}:{offset}"),
        Place::Next => "n".to_owned(),
    }
}

fn parse(line: &str) -> Option<(Vec<u8>, Option<From>)> {
    let mut words = line.split(' ');
    let hex = words.next()?;
    let byte = |n: usize| u8::from_str_radix(hex.get(n..n + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
    let mut from = From::new();
    for word in words {
        if word == "-" {
            return Some((bytes?, None));
        }
        let (to, sources) = word.split_once('=')?;
        let sources = sources.split(',').filter(|s| !s.is_empty());
        from.insert(decode(to)?, sources.map(decode).collect::<Option<_>>()?);
    }
    Some((bytes?, Some(from)))
}

fn decode(word: &str) -> Option<Place> {
    if word == "n" {
        return Some(Place::Next);
    }
    match word.strip_prefix('m') {
        Some(rest) => {
            let (operand, offset) = rest.split_once(':')?;
            Some(Place::Memory(operand.parse().ok()?, offset.parse().ok()?))
        }
        None => Some(Place::Register(word.parse().ok()?)),
    }
}
