//! The log, one event ahead.

use crate::Error;
use recording::event::Event;
use recording::{Reader, Recording};

/// Reads events; the next one can be looked at before it is taken.
pub struct Log {
    reader: Reader,
    next: Option<Vec<u8>>,
    number: u64,
}

impl Log {
    /// At the first event.
    pub fn new(recording: &Recording) -> Result<Log, Error> {
        Log::from(recording.reader()?)
    }

    /// At the first event of the log itself, for a replay that has followed its
    /// ancestors'.
    pub fn own(recording: &Recording) -> Result<Log, Error> {
        Log::from(recording.own_reader()?)
    }

    fn from(reader: Reader) -> Result<Log, Error> {
        let mut log = Log { reader, next: Some(Vec::new()), number: 0 };
        log.advance()?;
        log.number = 0;
        Ok(log)
    }

    /// The next event; `None` where the log ends.
    pub fn peek(&self) -> Result<Option<Event<'_>>, Error> {
        match &self.next {
            None => Ok(None),
            Some(bytes) => Event::decode(bytes).map(Some).map_err(|_| {
                Error::Recording(recording::Error::Damaged {
                    what: "an event of the log is malformed".to_owned(),
                    at: self.number,
                })
            }),
        }
    }

    /// Takes the bytes of the next event, to be given back to [`Self::done`].
    pub fn take(&mut self) -> Vec<u8> {
        self.next.take().unwrap_or_default()
    }

    /// Goes on after [`Self::take`], reusing the buffer.
    pub fn done(&mut self, mut buffer: Vec<u8>) -> Result<(), Error> {
        buffer.clear();
        self.next = Some(buffer);
        self.advance()
    }

    /// Drops the next event.
    pub fn advance(&mut self) -> Result<(), Error> {
        self.number += 1;
        match self.reader.next()? {
            Some(bytes) => {
                let buffer = self.next.get_or_insert_default();
                buffer.clear();
                buffer.extend_from_slice(bytes);
            }
            None => self.next = None,
        }
        Ok(())
    }

    /// Number of the next event.
    pub fn number(&self) -> u64 {
        self.number
    }
}
