//! huff: codes text with canonical Huffman codes and shows what it did.
//!
//! usage: huff table|encode|decode|test < INPUT
//!
//! `table` prints the codes of the characters, `encode` prints a header line with the code
//! lengths and the bits as 0 and 1, `decode` reads that back, `test` does both and compares.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Read;

type Lengths = BTreeMap<u8, usize>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Code {
    bits: u64,
    length: usize,
}

impl Code {
    fn text(&self) -> String {
        (0..self.length).rev().map(|i| if self.bits >> i & 1 == 1 { '1' } else { '0' }).collect()
    }
}

// ---- the tree ----

/// A tree is kept flat: leaves first, then the inner nodes in the order they were made.
struct Tree {
    parents: Vec<Option<usize>>,
    leaves: Vec<u8>,
}

impl Tree {
    fn build(counts: &BTreeMap<u8, usize>) -> Tree {
        let leaves: Vec<u8> = counts.keys().copied().collect();
        let mut parents: Vec<Option<usize>> = vec![None; leaves.len()];
        let mut open: BinaryHeap<Reverse<(usize, usize)>> =
            counts.values().enumerate().map(|(node, count)| Reverse((*count, node))).collect();
        while open.len() > 1 {
            let (Some(Reverse(first)), Some(Reverse(second))) = (open.pop(), open.pop()) else {
                break;
            };
            let node = parents.len();
            parents.push(None);
            parents[first.1] = Some(node);
            parents[second.1] = Some(node);
            open.push(Reverse((first.0 + second.0, node)));
        }
        Tree { parents, leaves }
    }

    fn depth(&self, mut node: usize) -> usize {
        let mut depth = 0;
        while let Some(parent) = self.parents[node] {
            node = parent;
            depth += 1;
        }
        depth
    }

    fn lengths(&self) -> Lengths {
        let mut lengths = Lengths::new();
        for (node, byte) in self.leaves.iter().enumerate() {
            // A text of one letter only still needs a bit per letter.
            lengths.insert(*byte, self.depth(node).max(1));
        }
        lengths
    }
}

fn counts(input: &[u8]) -> BTreeMap<u8, usize> {
    let mut counts = BTreeMap::new();
    for byte in input {
        *counts.entry(*byte).or_insert(0) += 1;
    }
    counts
}

// ---- canonical codes ----

/// Codes are counted up in order of their lengths, then of the bytes; a longer code is shifted.
fn canonical(lengths: &Lengths) -> BTreeMap<u8, Code> {
    let mut order: Vec<(usize, u8)> = lengths.iter().map(|(byte, length)| (*length, *byte)).collect();
    order.sort();
    let mut codes = BTreeMap::new();
    let mut bits = 0u64;
    let mut previous = order.first().map_or(0, |(length, _)| *length);
    for (length, byte) in order {
        if length > previous {
            bits <<= 1;
        }
        previous = length;
        codes.insert(byte, Code { bits, length });
        bits += 1;
    }
    codes
}

// ---- coding ----

fn encode(input: &[u8], codes: &BTreeMap<u8, Code>) -> String {
    input.iter().map(|byte| codes[byte].text()).collect()
}

fn decode(bits: &str, codes: &BTreeMap<u8, Code>) -> Result<Vec<u8>, String> {
    let mut meanings = BTreeMap::new();
    for (byte, code) in codes {
        meanings.insert((code.length, code.bits), *byte);
    }
    let mut output = Vec::new();
    let (mut length, mut value) = (0, 0u64);
    for (position, bit) in bits.chars().enumerate() {
        value = value << 1
            | match bit {
                '0' => 0,
                '1' => 1,
                _ => return Err(format!("not a bit: {bit}")),
            };
        length += 1;
        if let Some(byte) = meanings.get(&(length, value)) {
            output.push(*byte);
            (length, value) = (0, 0);
        } else if length > 60 {
            return Err(format!("no code near bit {position}"));
        }
    }
    if length > 0 { Err("the last code is not complete".to_string()) } else { Ok(output) }
}

fn header(lengths: &Lengths) -> String {
    let parts: Vec<String> =
        lengths.iter().map(|(byte, length)| format!("{byte:02x}:{length}")).collect();
    parts.join(" ")
}

fn parse_header(line: &str) -> Result<Lengths, String> {
    let mut lengths = Lengths::new();
    for part in line.split_whitespace() {
        let wrong = || format!("bad header: {part}");
        let (byte, length) = part.split_once(':').ok_or_else(wrong)?;
        let byte = u8::from_str_radix(byte, 16).map_err(|_| wrong())?;
        let length: usize = length.parse().map_err(|_| wrong())?;
        if length == 0 || length > 60 {
            return Err(wrong());
        }
        lengths.insert(byte, length);
    }
    Ok(lengths)
}

// ---- orders ----

fn shown(byte: u8) -> String {
    if byte.is_ascii_graphic() { (byte as char).to_string() } else { format!("\\x{byte:02x}") }
}

fn print_table(input: &[u8]) {
    let counts = counts(input);
    let lengths = Tree::build(&counts).lengths();
    let codes = canonical(&lengths);
    let mut bits = 0;
    for (byte, count) in &counts {
        println!("{:<5} {count:>5} {}", shown(*byte), codes[byte].text());
        bits += count * codes[byte].length;
    }
    println!("{} bytes, {} bits, {} codes", input.len(), bits, codes.len());
}

fn encoded(input: &[u8]) -> (String, String) {
    let lengths = Tree::build(&counts(input)).lengths();
    (header(&lengths), encode(input, &canonical(&lengths)))
}

fn decoded(header: &str, bits: &str) -> Result<Vec<u8>, String> {
    decode(bits.trim(), &canonical(&parse_header(header)?))
}

fn print_lines(bits: &str) {
    let mut rest = bits;
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        println!("{line}");
        rest = after;
    }
}

fn run(order: &str, input: &[u8]) -> Result<(), String> {
    match order {
        "table" => print_table(input),
        "encode" => {
            let (header, bits) = encoded(input);
            println!("{header}");
            print_lines(&bits);
        }
        "decode" => {
            let text = String::from_utf8(input.to_vec()).map_err(|_| "not text".to_string())?;
            let (header, bits) = text.split_once('\n').ok_or("no header")?;
            let bits: String = bits.split_whitespace().collect();
            let output = decoded(header, &bits)?;
            print!("{}", String::from_utf8_lossy(&output));
        }
        "test" => {
            let (header, bits) = encoded(input);
            let output = decoded(&header, &bits)?;
            println!("{} bytes, {} bits", input.len(), bits.len());
            if output != input {
                return Err("what comes back is different".to_string());
            }
        }
        _ => return Err("usage: huff table|encode|decode|test".to_string()),
    }
    Ok(())
}

fn main() {
    let order = std::env::args().nth(1).unwrap_or_default();
    let mut input = Vec::new();
    if std::io::stdin().read_to_end(&mut input).is_err() {
        std::process::exit(2);
    }
    if let Err(error) = run(&order, &input) {
        println!("huff: {error}");
        std::process::exit(1);
    }
}
