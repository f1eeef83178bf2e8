//! A trace beside its recording, so that the next question need not trace again.
//!
//! The file has a head (units, events, where segments are) and packed segments.
//! Every part has a checksum. A file that is damaged, of another version or of
//! another recording is as good as none.

use crate::builder::Targets;
use crate::captured::{Uppers, shorten};
use crate::code::{Code, PathId};
use crate::images::Contents;
use crate::packed::{Guess, Layout, Packer, Unpacker, counts};
use crate::records::{Held, Kept, PLAIN_BYTES, Records, SEGMENT, SHORT, Time};
use engine::trace::{Ended, Event, Unit};
use recording::Recording;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Its name among the things derived from a recording.
pub(crate) const NAME: &str = "trace";

/// First bytes of a file of this version. What units and captures mean is part of
/// it.
const MAGIC: [u8; 8] = *b"WHYTRC05";

/// No JSON has it.
const HEAD_ENDS: u8 = 0;

/// All that a replay told.
pub(crate) struct Parts {
    pub code: Code,
    pub records: Records,
    pub events: Vec<(Time, Event)>,
    pub contents: Contents,
    pub targets: Targets,
    pub ended: Ended,
}

/// The same, by reference, but for what is in files.
pub(crate) struct View<'a> {
    pub code: &'a Code,
    pub records: &'a Records,
    pub events: &'a [(Time, Event)],
    pub targets: &'a Targets,
    pub ended: Ended,
}

#[derive(Serialize, Deserialize)]
struct Head<'a> {
    recording: u32,
    /// Bytes of the units, which come behind this.
    units: usize,
    events: Cow<'a, [(Time, Event)]>,
    targets: Cow<'a, Targets>,
    ended: Ended,
    segments: Vec<Piece>,
}

/// A packed segment: bytes and their checksum.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Piece {
    len: u32,
    sum: u32,
}

/// Says which recording a file belongs to.
fn identity(recording: &Recording) -> u32 {
    let manifest = serde_json::to_vec(recording.manifest()).unwrap_or_default();
    let log = recording.usage().map(|u| u.log).unwrap_or_default();
    let mut sum = crc32fast::Hasher::new();
    sum.update(&manifest);
    sum.update(&log.to_le_bytes());
    sum.finalize()
}

/// Keeps a trace. Returns how many bytes it takes.
pub(crate) fn store(recording: &Recording, trace: &View) -> std::io::Result<u64> {
    let packed = pack_all(trace.records, Guess::Last)?;
    let piece = |p: &[u8]| Piece { len: p.len() as u32, sum: crc32fast::hash(p) };
    let units: Vec<u8> = (0..trace.code.units()).flat_map(|n| trace.code.told(n)).collect();
    let head = Head {
        recording: identity(recording),
        units: units.len(),
        events: Cow::Borrowed(trace.events),
        targets: Cow::Borrowed(trace.targets),
        ended: trace.ended,
        segments: packed.iter().map(|p| piece(p)).collect(),
    };
    let mut head = serde_json::to_vec(&head)?;
    head.push(HEAD_ENDS);
    head.extend(units);
    let head = zstd::bulk::compress(&head, 1)?;
    let mut file = MAGIC.to_vec();
    file.extend((head.len() as u64).to_le_bytes());
    file.extend(crc32fast::hash(&head).to_le_bytes());
    file.extend(head);
    packed.iter().for_each(|p| file.extend(&p[..]));
    recording.keep_derived(NAME, &file).map_err(std::io::Error::other)?;
    Ok(file.len() as u64)
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Bytes that packed segments take told by another guess.
pub(crate) fn packed_size(records: &Records, guess: Guess) -> std::io::Result<u64> {
    let packed = pack_all(records, guess)?;
    Ok(packed.iter().map(|p| p.len() as u64).sum())
}

fn pack_all(records: &Records, guess: Guess) -> std::io::Result<Vec<Box<[u8]>>> {
    let segments = records.segments();
    let packed: Vec<Mutex<Box<[u8]>>> = segments.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    let work = || -> std::io::Result<()> {
        let mut packer = Packer::new(guess)?;
        while let n = next.fetch_add(1, Ordering::Relaxed)
            && let Some(segment) = segments.get(n)
        {
            let bytes = match &segment.held {
                Held::Plain(..) => {
                    let captured: Vec<u64> = records.captured(n).all().all().collect();
                    packer.pack(records.paths_of(n), &captured, records.layout())?.into()
                }
                Held::Packed(bytes) => bytes.clone(),
            };
            *packed[n].lock().expect("no worker panics") = bytes;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers()).map(|_| scope.spawn(work)).collect();
        let mut results = vec![work()];
        results.extend(others.into_iter().map(|o| o.join().expect("no worker panics")));
        results.into_iter().collect::<std::io::Result<()>>()
    })?;
    Ok(packed.into_iter().map(|p| p.into_inner().expect("no worker panics")).collect())
}

/// The trace that was kept, if it can be used.
pub(crate) fn load(recording: &Recording) -> Option<Parts> {
    let file = std::fs::read(recording.derived(NAME)).ok()?;
    let rest = file.strip_prefix(&MAGIC)?;
    let (len, rest) = rest.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (head, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    if crc32fast::hash(head) != u32::from_le_bytes(*sum) {
        return None;
    }
    let head = zstd::stream::decode_all(head).ok()?;
    let (head, mut units) = head.split_at(head.iter().position(|byte| *byte == HEAD_ENDS)?);
    let head: Head = serde_json::from_slice(head).ok()?;
    units = units.strip_prefix(&[HEAD_ENDS])?;
    if head.recording != identity(recording) {
        return None;
    }
    if head.units != units.len() {
        return None;
    }
    let mut code = Code::default();
    while !units.is_empty() {
        let (unit, rest) = Unit::read(units)?;
        let next = code.paths().len() as u32;
        if !unit.is_sound() || unit.first_path() != next {
            return None;
        }
        code.add(unit.first_path(), &unit);
        units = rest;
    }
    let mut layout = Layout::default();
    layout.extend(&code);
    let kept = unpack_all(&head.segments, rest, &layout)?;
    let records = Records::from_kept(kept, layout, PLAIN_BYTES);
    Some(Parts {
        code,
        records,
        events: head.events.into_owned(),
        contents: Contents::of(recording),
        targets: head.targets.into_owned(),
        ended: head.ended,
    })
}

/// A segment that is to be unpacked.
struct Task<'a> {
    bytes: &'a [u8],
    paths: &'a mut [PathId],
    /// `None` for one that stays packed.
    captured: Option<(&'a mut [u32], &'a mut Uppers)>,
}

fn unpack_all(pieces: &[Piece], mut bytes: &[u8], layout: &Layout) -> Option<Kept> {
    let mut packed = Vec::new();
    for piece in pieces {
        let (this, rest) = bytes.split_at_checked(piece.len as usize)?;
        if crc32fast::hash(this) != piece.sum {
            return None;
        }
        packed.push((this, counts(this, layout)?));
        bytes = rest;
    }
    let (last, full) = packed.split_last()?;
    let is_whole = full.iter().all(|(_, (records, _))| *records == SEGMENT) && last.1.0 > 0;
    if !bytes.is_empty() || !is_whole {
        return None;
    }
    let (mut records, mut plain, mut held) = (0, 0, Vec::new());
    for (bytes, (len, captures)) in &packed {
        records += len;
        held.push(match (SHORT * (plain + captures)) as u64 <= PLAIN_BYTES {
            true => Held::Plain(plain..plain + captures, Box::default()),
            false => Held::Packed((*bytes).into()),
        });
        if let Some(Held::Plain(range, _)) = held.last() {
            plain = range.end;
        }
    }
    let mut kept = Kept { paths: Vec::new(), plain: engine::large::zeros(plain), held };
    engine::large::reserve(&mut kept.paths, records);
    kept.paths.resize(records, PathId(0));
    let (mut paths, mut captured) = (&mut kept.paths[..], &mut kept.plain[..]);
    let mut tasks = Vec::new();
    for ((bytes, (records, captures)), held) in packed.iter().zip(&mut kept.held) {
        let own = paths.split_off_mut(..*records)?;
        let values = match held {
            Held::Plain(_, uppers) => Some((captured.split_off_mut(..*captures)?, &mut **uppers)),
            Held::Packed(_) => None,
        };
        tasks.push(Mutex::new(Task { bytes, paths: own, captured: values }));
    }
    let next = AtomicUsize::new(0);
    let work = || -> Option<()> {
        let mut unpacker = Unpacker::new().ok()?;
        while let n = next.fetch_add(1, Ordering::Relaxed)
            && let Some(task) = tasks.get(n)
        {
            unpack(&mut unpacker, &mut task.lock().expect("no worker panics"), layout)?;
        }
        Some(())
    };
    let all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers()).map(|_| scope.spawn(work)).collect();
        let mut results = vec![work()];
        results.extend(others.into_iter().map(|o| o.join().expect("no worker panics")));
        results.into_iter().collect::<Option<()>>()
    });
    drop(tasks);
    all.map(|()| kept)
}

fn unpack(unpacker: &mut Unpacker, task: &mut Task<'_>, layout: &Layout) -> Option<()> {
    let (_, captures) = counts(task.bytes, layout)?;
    let mut values = vec![0; captures];
    unpacker.unpack(task.bytes, layout, task.paths, &mut values)?;
    if let Some((places, uppers)) = &mut task.captured {
        **uppers = shorten(&values, places);
    }
    Some(())
}
