//! A small assembler for the glue between copied instructions.
//!
//! Only what the translator needs, as bytes: an order of magnitude faster than a
//! general encoder, and translation time is start-up time. None of these
//! instructions changes a flag unless its name says so.

use crate::context::reg;

/// Machine code being written for a known address.
pub struct Emit {
    /// Address of the first byte once installed.
    pub base: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A 32-bit displacement to be filled in later.
#[derive(Clone, Copy, Debug)]
pub struct Hole(pub usize);

/// An 8-bit displacement to be filled in later.
#[derive(Clone, Copy, Debug)]
pub struct ShortHole(usize);

impl Emit {
    /// Starts at `base`.
    pub fn new(base: u64) -> Emit {
        Emit { base, bytes: Vec::with_capacity(512) }
    }

    /// Address of the next byte.
    pub fn here(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Offset of the next byte.
    pub fn offset(&self) -> usize {
        self.bytes.len()
    }

    /// Raw bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn imm32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn rex_w(&mut self, reg: usize, base: usize) {
        self.bytes.push(0x48 | ((reg as u8 >> 3) << 2) | (base as u8 >> 3));
    }

    fn absolute(&mut self, reg: usize, address: i32) {
        self.raw(&[((reg as u8 & 7) << 3) | 4, 0x25]);
        self.imm32(address);
    }

    /// `mov [address], reg`
    pub fn store(&mut self, address: i32, reg: usize) {
        self.rex_w(reg, 0);
        self.bytes.push(0x89);
        self.absolute(reg, address);
    }

    /// `mov reg, [address]`
    pub fn load(&mut self, reg: usize, address: i32) {
        self.rex_w(reg, 0);
        self.bytes.push(0x8b);
        self.absolute(reg, address);
    }

    /// `movzx ecx, byte [address]`
    pub fn load_byte_rcx(&mut self, address: i32) {
        self.raw(&[0x0f, 0xb6, 0x0c, 0x25]);
        self.imm32(address);
    }

    /// `mov dword [address], value`
    pub fn store_u32(&mut self, address: i32, value: u32) {
        self.raw(&[0xc7, 0x04, 0x25]);
        self.imm32(address);
        self.imm32(value as i32);
    }

    /// Stores a 64-bit constant.
    pub fn store_u64(&mut self, address: i32, value: u64) {
        if value as i64 == value as i32 as i64 {
            self.raw(&[0x48, 0xc7, 0x04, 0x25]);
            self.imm32(address);
            self.imm32(value as i32);
        } else {
            self.store_u32(address, value as u32);
            self.store_u32(address + 4, (value >> 32) as u32);
        }
    }

    /// `mov reg, value`, shortest form.
    pub fn load_constant(&mut self, reg: usize, value: u64) {
        if value >> 31 == 0 {
            if reg >= 8 {
                self.bytes.push(0x41);
            }
            self.bytes.push(0xb8 | (reg as u8 & 7));
            self.imm32(value as i32);
        } else {
            self.rex_w(0, reg);
            self.bytes.push(0xb8 | (reg as u8 & 7));
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// `mov to, from`
    pub fn copy(&mut self, to: usize, from: usize) {
        self.rex_w(from, to);
        self.raw(&[0x89, 0xc0 | ((from as u8 & 7) << 3) | (to as u8 & 7)]);
    }

    /// `mov reg, [reg]`; not for RSP, RBP, R12, R13 (other encodings).
    pub fn load_through(&mut self, reg: usize) {
        debug_assert!(!matches!(reg & 7, reg::RSP | reg::RBP));
        self.rex_w(reg, reg);
        self.raw(&[0x8b, ((reg as u8 & 7) << 3) | (reg as u8 & 7)]);
    }

    /// `mov [base + offset], reg`
    pub fn store_through(&mut self, base: usize, offset: i32, reg: usize) {
        self.rex_w(reg, base);
        self.bytes.push(0x89);
        self.based(base, offset, reg);
    }

    /// `mov dword [base], value`
    pub fn store_u32_through(&mut self, base: usize, value: u32) {
        if base >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0xc7);
        self.based(base, 0, 0);
        self.imm32(value as i32);
    }

    /// ModRM for `[base + offset]`, always with a displacement.
    fn based(&mut self, base: usize, offset: i32, reg: usize) {
        let (b, r) = (base as u8 & 7, (reg as u8 & 7) << 3);
        let short = i8::try_from(offset).ok();
        self.bytes.push(if short.is_some() { 0x40 } else { 0x80 } | r | b);
        if b == 4 {
            self.bytes.push(0x24);
        }
        match short {
            Some(offset) => self.bytes.push(offset as u8),
            None => self.imm32(offset),
        }
    }

    /// `lea reg, [reg + displacement]`
    pub fn add_constant(&mut self, reg: usize, displacement: i32) {
        self.rex_w(reg, reg);
        self.bytes.push(0x8d);
        self.based(reg, displacement, reg);
    }

    /// `lea rcx, [rcx + rax]`
    pub fn add_rax_to_rcx(&mut self) {
        self.raw(&[0x48, 0x8d, 0x0c, 0x01]);
    }

    /// `movzx ecx, cx`
    pub fn low16_rcx(&mut self) {
        self.raw(&[0x0f, 0xb7, 0xc9]);
    }

    /// `movzx ecx, sp`
    pub fn low16_rsp(&mut self) {
        self.raw(&[0x0f, 0xb7, 0xcc]);
    }

    /// `mov qword [table + rcx], value`
    pub fn store_at_rcx(&mut self, table: i32, value: i32) {
        self.raw(&[0x48, 0xc7, 0x81]);
        self.imm32(table);
        self.imm32(value);
    }

    /// `mov rcx, [table + rcx]`
    pub fn load_at_rcx(&mut self, table: i32) {
        self.raw(&[0x48, 0x8b, 0x89]);
        self.imm32(table);
    }

    /// `movzx ecx, word [address]`
    pub fn load_low16_rcx(&mut self, address: i32) {
        self.raw(&[0x0f, 0xb7, 0x0c, 0x25]);
        self.imm32(address);
    }

    /// `jmp rcx`
    pub fn jump_rcx(&mut self) {
        self.raw(&[0xff, 0xe1]);
    }

    /// `mov rcx, [rsp]`
    pub fn load_top(&mut self) {
        self.raw(&[0x48, 0x8b, 0x0c, 0x24]);
    }

    /// `mov [rsp], rcx`
    pub fn store_top(&mut self) {
        self.raw(&[0x48, 0x89, 0x0c, 0x24]);
    }

    /// `mov [rsp - 8], rcx`
    pub fn store_below(&mut self) {
        self.raw(&[0x48, 0x89, 0x4c, 0x24, 0xf8]);
    }

    /// `mov qword [rsp + offset], value`, also for 64-bit values.
    pub fn store_stack(&mut self, offset: i8, value: u64) {
        if value as i64 == value as i32 as i64 {
            self.raw(&[0x48, 0xc7, 0x44, 0x24, offset as u8]);
            self.imm32(value as i32);
        } else {
            self.raw(&[0xc7, 0x44, 0x24, offset as u8]);
            self.imm32(value as i32);
            self.raw(&[0xc7, 0x44, 0x24, offset as u8 + 4]);
            self.imm32((value >> 32) as i32);
        }
    }

    /// `call rel32`
    pub fn call(&mut self) -> Hole {
        self.bytes.push(0xe8);
        self.hole()
    }

    /// `ret`
    pub fn ret(&mut self) {
        self.bytes.push(0xc3);
    }

    /// `mov ecx, [table + rcx*4]`, `jmp rcx`
    pub fn jump_table_rcx(&mut self, table: i32) {
        self.raw(&[0x8b, 0x0c, 0x8d]);
        self.imm32(table);
        self.jump_rcx();
    }

    /// `jmp [address]`
    pub fn jump_through(&mut self, address: i32) {
        self.raw(&[0xff, 0x24, 0x25]);
        self.imm32(address);
    }

    /// `dec qword [address]` (changes all flags but CF)
    pub fn decrement_flags(&mut self, address: i32) {
        self.raw(&[0x48, 0xff, 0x0c, 0x25]);
        self.imm32(address);
    }

    /// `dec reg` (changes all flags but CF)
    pub fn decrement_register_flags(&mut self, reg: usize) {
        self.rex_w(0, reg);
        self.raw(&[0xff, 0xc8 | (reg as u8 & 7)]);
    }

    /// `sub qword [address], value` (changes flags)
    pub fn subtract_flags(&mut self, address: i32, value: i32) {
        self.raw(&[0x48, 0x81, 0x2c, 0x25]);
        self.imm32(address);
        self.imm32(value);
    }

    /// `sub reg, value` (changes flags)
    pub fn subtract_register_flags(&mut self, reg: usize, value: i32) {
        self.rex_w(0, reg);
        self.raw(&[0x81, 0xe8 | (reg as u8 & 7)]);
        self.imm32(value);
    }

    /// Saves the six arithmetic flags and RAX: `lahf; seto al` into a slot.
    pub fn save_flags(&mut self, rax_slot: i32, flags_slot: i32) {
        self.store(rax_slot, reg::RAX);
        self.raw(&[0x9f, 0x0f, 0x90, 0xc0]);
        self.store(flags_slot, reg::RAX);
    }

    /// Undoes [`Self::save_flags`].
    pub fn restore_flags(&mut self, rax_slot: i32, flags_slot: i32) {
        self.load(reg::RAX, flags_slot);
        // add al, 127 sets OF as it was; sahf the rest.
        self.raw(&[0x04, 0x7f, 0x9e]);
        self.load(reg::RAX, rax_slot);
    }

    /// `pop rcx`
    pub fn pop_rcx(&mut self) {
        self.bytes.push(0x59);
    }

    /// `jmp rel32`
    pub fn jump(&mut self) -> Hole {
        self.bytes.push(0xe9);
        self.hole()
    }

    /// `jcc rel32` by condition number.
    pub fn jump_if(&mut self, condition: u8) -> Hole {
        self.raw(&[0x0f, 0x80 | condition]);
        self.hole()
    }

    /// `jrcxz rel8`
    pub fn jump_if_rcx_zero(&mut self) -> ShortHole {
        self.raw(&[0xe3, 0]);
        ShortHole(self.bytes.len() - 1)
    }

    /// `jrcxz rel8`, back to an offset.
    pub fn jump_back_if_rcx_zero(&mut self, offset: usize) {
        let displacement = offset as i64 - self.offset() as i64 - 2;
        self.raw(&[0xe3, i8::try_from(displacement).expect("short") as u8]);
    }

    /// `jmp rel8`
    pub fn jump_short(&mut self) -> ShortHole {
        self.raw(&[0xeb, 0]);
        ShortHole(self.bytes.len() - 1)
    }

    /// An instruction with an 8-bit displacement at its end (LOOP and friends).
    pub fn short_branch(&mut self, bytes_before: &[u8]) -> ShortHole {
        self.raw(bytes_before);
        self.bytes.push(0);
        ShortHole(self.bytes.len() - 1)
    }

    fn hole(&mut self) -> Hole {
        self.imm32(0);
        Hole(self.bytes.len() - 4)
    }

    /// Makes a hole point at an absolute address.
    pub fn fill(&mut self, hole: Hole, target: u64) {
        let from = self.base + hole.0 as u64 + 4;
        let displacement = target.wrapping_sub(from) as i64;
        let displacement = i32::try_from(displacement).expect("the cache is smaller than 2 GiB");
        self.bytes[hole.0..hole.0 + 4].copy_from_slice(&displacement.to_le_bytes());
    }

    /// Makes a hole point here.
    pub fn fill_here(&mut self, hole: Hole) {
        let here = self.here();
        self.fill(hole, here);
    }

    /// Makes a short hole point here.
    pub fn fill_short(&mut self, hole: ShortHole) {
        let displacement = self.bytes.len() - hole.0 - 1;
        self.bytes[hole.0] = i8::try_from(displacement).expect("short") as u8;
    }
}
