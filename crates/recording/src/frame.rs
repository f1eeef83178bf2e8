//! One compressed run of events in `log`, and how events lie inside it.
//!
//! A frame is a header of 32 bytes (little endian) and `stored_len` bytes of zstd data:
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..4 | magic `WyF1` |
//! | 4..12 | sequence number: 0 for the first frame, then counting up |
//! | 12..16 | `raw_len`: length after decompression |
//! | 16..20 | `stored_len`: length of the zstd data |
//! | 20..24 | number of events |
//! | 24..28 | CRC-32 of the zstd data |
//! | 28..32 | CRC-32 of the 28 bytes before |
//!
//! Decompressed, each event is its length (LEB128) and its bytes. A header with no events and no
//! data is the *end mark*: a log without one was cut short.

use std::ops::Range;

/// The greatest length of one event: 1 GiB.
pub const MAX_EVENT: usize = 1 << 30;

/// The most bytes that a length takes (`MAX_EVENT` has 31 bits, LEB128 stores seven per byte).
pub(crate) const MAX_LENGTH_BYTES: usize = 5;

/// No frame decompresses to more: either a run of small events or one great one.
pub(crate) const MAX_RAW: usize = MAX_EVENT + MAX_LENGTH_BYTES;

pub(crate) const HEADER_LEN: usize = 32;
const MAGIC: [u8; 4] = *b"WyF1";

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) sequence: u64,
    pub(crate) raw_len: u32,
    pub(crate) stored_len: u32,
    pub(crate) events: u32,
    pub(crate) data_crc: u32,
}

impl Header {
    /// The header that closes a log of `sequence` frames.
    pub(crate) fn end_mark(sequence: u64) -> Header {
        Header { sequence, raw_len: 0, stored_len: 0, events: 0, data_crc: 0 }
    }

    pub(crate) fn is_end_mark(&self) -> bool {
        self.events == 0
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..12].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.raw_len.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.stored_len.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.events.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.data_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..28]);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header and refuses, with the reason, one that cannot have been written by us.
    pub(crate) fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Header, &'static str> {
        let header = Header {
            sequence: u64_at(bytes, 4),
            raw_len: u32_at(bytes, 12),
            stored_len: u32_at(bytes, 16),
            events: u32_at(bytes, 20),
            data_crc: u32_at(bytes, 24),
        };
        if bytes[0..4] != MAGIC {
            return Err("no frame begins here");
        }
        if u32_at(bytes, 28) != crc32fast::hash(&bytes[..28]) {
            return Err("a frame's header does not match its checksum");
        }
        let (raw, stored) = (header.raw_len as usize, header.stored_len as usize);
        let plausible = if header.is_end_mark() {
            raw == 0 && stored == 0
        } else {
            // An event takes at least the byte of its length.
            raw <= MAX_RAW
                && header.events as usize <= raw
                && stored <= zstd::zstd_safe::compress_bound(MAX_RAW)
        };
        if plausible { Ok(header) } else { Err("a frame's header states impossible lengths") }
    }
}

/// Writes `len` in front of an event, returns how many bytes that took.
#[inline]
pub(crate) fn put_length(out: &mut [u8; MAX_LENGTH_BYTES], len: usize) -> usize {
    let mut rest = len as u32;
    let mut used = 0;
    while rest >= 0x80 {
        out[used] = rest as u8 | 0x80;
        rest >>= 7;
        used += 1;
    }
    out[used] = rest as u8;
    used + 1
}

/// Where the event that starts at `cursor` has its bytes, or `None` if none can start there.
#[inline]
pub(crate) fn event_at(raw: &[u8], cursor: usize) -> Option<Range<usize>> {
    let mut len = 0u64;
    let mut at = cursor;
    for shift in (0..MAX_LENGTH_BYTES as u32 * 7).step_by(7) {
        let byte = *raw.get(at)?;
        at += 1;
        len |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let end = at.checked_add(usize::try_from(len).ok()?)?;
            return (end <= raw.len()).then_some(at..end);
        }
    }
    None
}

/// How many whole events fill `raw` exactly, or `None` if they do not.
pub(crate) fn count_events(raw: &[u8]) -> Option<u32> {
    let (mut cursor, mut events) = (0, 0u32);
    while cursor < raw.len() {
        cursor = event_at(raw, cursor)?.end;
        events += 1;
    }
    Some(events)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_every_size_come_back() {
        for len in [0, 1, 127, 128, 16383, 16384, 1 << 21, 1 << 28, MAX_EVENT] {
            let mut bytes = [0; MAX_LENGTH_BYTES];
            let used = put_length(&mut bytes, len);
            let mut raw = bytes[..used].to_vec();
            let room = len.min(1 << 22);
            raw.resize(used + room, 0);
            let expected = (room == len).then_some(used..used + len);
            assert_eq!(event_at(&raw, 0), expected);
        }
    }

    #[test]
    fn a_length_without_end_is_no_event() {
        assert_eq!(event_at(&[0xff; 64], 0), None);
        assert_eq!(event_at(&[0x80], 0), None);
        assert_eq!(event_at(&[], 0), None);
        assert_eq!(event_at(&[0], 9), None);
    }

    #[test]
    fn a_header_with_any_bit_flipped_is_refused() {
        let header = Header { sequence: 7, raw_len: 90, stored_len: 50, events: 3, data_crc: 1 };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        for bit in 0..HEADER_LEN * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&damaged).is_err(), "bit {bit}");
        }
    }
}
