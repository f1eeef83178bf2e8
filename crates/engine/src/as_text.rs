//! Bytes that are text as a rule, written as text where they are kept: for
//! `#[serde(with = …)]`. A list of numbers, one for each byte, costs a run of many short
//! processes more than what it says is worth.

use recording::ByteString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One string of bytes.
pub mod one {
    use super::*;

    /// Writes it.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        ByteString(bytes.to_vec()).serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        Ok(ByteString::deserialize(deserializer)?.0)
    }
}

/// Several of them.
pub mod many {
    use super::*;

    /// Writes them.
    pub fn serialize<S: Serializer>(all: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(all.iter().map(|bytes| ByteString(bytes.clone())))
    }

    /// Reads them.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Vec<u8>>, D::Error> {
        let all = Vec::<ByteString>::deserialize(deserializer)?;
        Ok(all.into_iter().map(|text| text.0).collect())
    }
}

/// Several, each with another that may be absent.
pub mod pairs {
    use super::*;

    type Pair = (Vec<u8>, Option<Vec<u8>>);

    /// Writes them.
    pub fn serialize<S: Serializer>(all: &[Pair], serializer: S) -> Result<S::Ok, S::Error> {
        let text = |bytes: &Vec<u8>| ByteString(bytes.clone());
        serializer.collect_seq(all.iter().map(|(one, other)| (text(one), other.as_ref().map(text))))
    }

    /// Reads them.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pair>, D::Error> {
        let all = Vec::<(ByteString, Option<ByteString>)>::deserialize(deserializer)?;
        Ok(all.into_iter().map(|(one, other)| (one.0, other.map(|text| text.0))).collect())
    }
}
