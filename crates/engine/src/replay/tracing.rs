//! A replay that is traced: what happens between records.

use super::replayer::{Halt, Replayer};
use crate::Error;
use crate::guest::machine::{Fault, Stop};
use crate::guest::memory::{Backing, Change};
use crate::kernel::files::What;
use crate::kernel::process::Asked;
use crate::kernel::table;
use crate::trace::{Call, Descriptor, DescriptorKind, Event, Mapped, Tracer};
use iced_x86::{Decoder, DecoderOptions, Instruction, Register};

/// Memory: where it begins, and its length.
type Piece = (u64, u64);

/// What is known of a call before it is made.
pub(super) struct Before {
    descriptor: Option<Descriptor>,
    vector: Vec<(u64, u64)>,
    path: Option<Vec<u8>>,
    file: Option<String>,
    sp: u64,
}

impl Replayer {
    /// Traces from here on.
    pub(crate) fn trace_into(&mut self, tracer: Tracer) {
        self.process.machine.tracer = Some(tracer);
        self.process.machine.memory.take_changes();
        self.event(Event::Thread(self.current.0));
        self.trace_bases();
        let images: Vec<Mapped> = self.initial_images();
        for mapped in images {
            self.event(Event::Mapped(mapped));
        }
    }

    /// Hands on what is left of the trace.
    pub(crate) fn end_trace(&mut self) -> Result<(), Error> {
        let Some(mut tracer) = self.process.machine.tracer.take() else { return Ok(()) };
        tracer.finish();
        match tracer.broken() {
            None => Ok(()),
            Some(error) => Err(Error::Io { what: "nobody reads the trace", error }),
        }
    }

    pub(super) fn is_traced(&self) -> bool {
        self.process.machine.tracer.is_some()
    }

    pub(super) fn event(&mut self, event: Event) {
        if let Some(tracer) = &mut self.process.machine.tracer {
            tracer.event(event);
        }
    }

    fn initial_images(&self) -> Vec<Mapped> {
        let memory = &self.process.machine.memory;
        let regions = memory.regions().filter_map(|(start, region)| {
            let Backing::File { path, offset } = &region.backing else { return None };
            let image = self.images.iter().find(|(p, _)| p == path).map(|(_, id)| id);
            let file = image.or_else(|| self.moving.opened.get(path)).cloned();
            Some(Mapped {
                start,
                end: region.end,
                offset: *offset,
                executable: region.prot & libc::PROT_EXEC != 0,
                path: path.clone(),
                file,
            })
        });
        regions.collect()
    }

    /// The segment bases, which instructions name without showing them.
    pub(super) fn trace_bases(&mut self) {
        if !self.is_traced() {
            return;
        }
        let regs = self.registers();
        let (fs, gs) = (regs.fs, crate::kernel::calls::gs());
        self.event(Event::FsBase(fs));
        if gs != 0 {
            self.event(Event::GsBase(gs));
        }
    }

    /// Changes of memory since the last event: written, and mapped.
    fn changes(&mut self) -> (Vec<Piece>, Vec<Piece>) {
        let (mut written, mut mapped) = (Vec::new(), Vec::new());
        for change in self.process.machine.memory.take_changes() {
            match change {
                Change::Written(r) => written.push((r.start, r.end - r.start)),
                Change::Mapped(r) => mapped.push((r.start, r.end - r.start)),
                Change::Protected(_) => {}
            }
        }
        (written, mapped)
    }

    /// Looks at a call before it is made.
    pub(super) fn before_call(&mut self, asked: &Asked) -> Option<Before> {
        if !self.is_traced() {
            return None;
        }
        // What an emulated instruction wrote is its own, not the call's.
        self.changes();
        let a = &asked.args;
        let memory = &self.process.machine.memory;
        let mut vector = Vec::new();
        let number = asked.number as u32;
        if is_vectored(number) {
            for n in 0..a[2].min(1024) {
                let at = a[1] + 16 * n;
                let (Some(base), Some(len)) = (memory.read_u64(at), memory.read_u64(at + 8)) else {
                    break;
                };
                vector.push((base, len));
            }
        } else if matches!(number, table::sendmsg | table::recvmsg) {
            vector = message_vector(memory, a[1]);
        }
        let path_at = match number {
            table::open | table::creat | table::unlink | table::execve | table::chdir => Some(a[0]),
            table::openat | table::openat2 | table::unlinkat => Some(a[1]),
            _ => None,
        };
        let path = path_at.and_then(|at| memory.read_string(at, 4096));
        let fd = if number == table::mmap { asked.fd(4) } else { asked.fd(0) };
        let described = self.process.files.get(fd);
        let file = described.and_then(|d| match &d.what {
            What::Regular { file, .. } => file.map(|f| f.0.to_string()),
            _ => None,
        });
        let descriptor = described.map(|d| Descriptor { kind: kind(&d.what), offset: d.offset });
        let sp = self.registers().gpr[crate::context::reg::RSP];
        Some(Before { descriptor, vector, path, file, sp })
    }

    /// A call has been made.
    pub(super) fn after_call(
        &mut self,
        asked: &Asked,
        result: i64,
        before: Option<Before>,
        spawned: Option<u32>,
    ) {
        let Some(before) = before else { return };
        let (written, mapped) = self.changes();
        let number = asked.number as u32;
        if number == table::mmap && (asked.fd(4) >= 0) && !(-4095..0).contains(&result) {
            self.trace_map(asked, result as u64, &before);
        }
        let call = Call {
            number,
            args: asked.args,
            result,
            sp: before.sp,
            written,
            mapped,
            vector: before.vector,
            descriptor: before.descriptor,
            pair: self.pair(asked, result),
            spawned,
            path: before.path,
        };
        self.event(Event::Call(Box::new(call)));
        if matches!(number, table::arch_prctl | table::rt_sigreturn | table::execve) {
            self.trace_bases();
        }
        if number == table::execve && result == 0 {
            let images: Vec<Mapped> = self.initial_images();
            for mapped in images {
                self.event(Event::Mapped(mapped));
            }
        }
    }

    fn trace_map(&mut self, asked: &Asked, start: u64, before: &Before) {
        let Some(Descriptor { kind: DescriptorKind::File(_, _, path), .. }) = &before.descriptor
        else {
            return;
        };
        let mapped = Mapped {
            start,
            end: start + asked.args[1],
            offset: asked.args[5],
            executable: asked.args[2] as i32 & libc::PROT_EXEC != 0,
            path: path.clone(),
            file: before.file.clone(),
        };
        self.event(Event::Mapped(mapped));
    }

    /// The descriptors that `pipe` and `socketpair` made.
    fn pair(&self, asked: &Asked, result: i64) -> Option<(i32, i32)> {
        let at = match asked.number as u32 {
            table::pipe | table::pipe2 => asked.args[0],
            table::socketpair => asked.args[3],
            _ => return None,
        };
        let both = self.process.machine.memory.read_u64(at).filter(|_| result == 0)?;
        Some((both as i32, (both >> 32) as i32))
    }

    /// A signal's handler is about to run, if a frame was made.
    pub(super) fn trace_signal(&mut self, signal: i32) {
        if !self.is_traced() {
            return;
        }
        let (written, _) = self.changes();
        if !written.is_empty() {
            let sp = self.registers().gpr[crate::context::reg::RSP];
            self.event(Event::Signal { signal, written, sp });
        }
    }

    pub(super) fn trace_fault(&mut self, fault: &Fault) {
        let pc = self.registers().rip;
        let Fault { signal, code, address, .. } = *fault;
        self.event(Event::Fault { signal, code, address, pc });
    }

    /// An instruction that the engine performs: its record.
    pub(super) fn trace_one(&mut self) {
        let context = self.context();
        self.process.machine.trace_one(context);
    }

    /// It raised an exception instead.
    pub(super) fn alone_faults(&mut self) {
        let machine = &mut self.process.machine;
        if let Some(tracer) = &mut machine.tracer {
            tracer.alone_faults(&|pc| machine.memory.code(pc));
        }
    }

    /// A gather is at RIP: its addresses are in a vector register.
    pub(super) fn gather(&mut self) -> Result<(), Halt> {
        let regs = self.registers();
        let code = self.process.machine.memory.code(regs.rip);
        let i = Decoder::with_ip(64, code, regs.rip, DecoderOptions::NONE).decode();
        let elements = gather_addresses(&i, regs);
        self.event(Event::Gather(elements));
        self.trace_one();
        match self.process.machine.run_prefix(self.registers().rip, 1) {
            // It is done: what comes next is no gather because of that.
            Stop::Block => Ok(()),
            stop => self.after_stop(&stop),
        }
    }
}

fn kind(what: &What) -> DescriptorKind {
    match what {
        What::Stdin => DescriptorKind::Stdin,
        What::Stdout => DescriptorKind::Stdout,
        What::Stderr => DescriptorKind::Stderr,
        What::Regular { identity, path, .. } => {
            DescriptorKind::File(identity.0, identity.1, path.clone())
        }
        _ => DescriptorKind::Other,
    }
}

fn is_vectored(number: u32) -> bool {
    matches!(
        number,
        table::readv
            | table::writev
            | table::preadv
            | table::pwritev
            | table::preadv2
            | table::pwritev2
    )
}

fn message_vector(memory: &crate::guest::memory::Memory, at: u64) -> Vec<(u64, u64)> {
    let (Some(iov), Some(n)) = (memory.read_u64(at + 16), memory.read_u64(at + 24)) else {
        return Vec::new();
    };
    let piece = |n| Some((memory.read_u64(iov + 16 * n)?, memory.read_u64(iov + 16 * n + 8)?));
    (0..n.min(1024)).map_while(piece).collect()
}

/// Addresses of a gather's elements, masked ones included.
pub(super) fn gather_addresses(i: &Instruction, regs: &crate::Registers) -> Vec<u64> {
    let index = i.memory_index();
    let wide = i.is_vsib64();
    let bytes = vector_bytes(regs, index);
    let base = match i.memory_base() {
        Register::None => 0,
        register => regs.gpr[register.full_register().number()],
    };
    let at = |offset: i64| {
        let scaled = offset.wrapping_mul(i64::from(i.memory_index_scale()));
        base.wrapping_add(scaled as u64).wrapping_add(i.memory_displacement64())
    };
    let data = i.op0_register().size() / i.memory_size().element_size().max(1);
    let indices: Vec<i64> = if wide {
        bytes.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().expect("8"))).collect()
    } else {
        let number = |b: &[u8]| i64::from(i32::from_le_bytes(b.try_into().expect("4")));
        bytes.chunks_exact(4).map(number).collect()
    };
    indices.into_iter().take(data).map(at).collect()
}

fn vector_bytes(regs: &crate::Registers, register: Register) -> Vec<u8> {
    let n = register.number();
    let v = &regs.vectors.0;
    let mut bytes = v[160 + 16 * n..160 + 16 * n + 16].to_vec();
    if register.is_ymm() {
        bytes.extend_from_slice(&v[576 + 16 * n..576 + 16 * n + 16]);
    }
    bytes
}
