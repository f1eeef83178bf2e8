//! `why demo`: the whole story of a bundled faulty program.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use clap::Args;

/// A program that adds up a shopping list, and gets it wrong.
const SOURCE: &str = include_str!("../../../../examples/receipt.c");
const INPUT: &str = include_str!("../../../../examples/receipt.txt");
/// What it should print: from 10.00 on there is a tenth off.
const EXPECTED: &str = "3 items\ntotal 7.00\n";

/// Compile a bundled faulty program, run it, and explain why it fails.
///
/// It needs a C compiler: `cc`, from the package gcc or clang.
#[derive(Args)]
#[command(after_help = "Examples:
  why demo
  why demo --keep    and leave its files in ./why-demo")]
pub struct Demo {
    /// Leave the program, its input and the recording in ./why-demo
    #[arg(long)]
    keep: bool,
}

impl Demo {
    /// Builds, records and explains.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let folder = match self.keep {
            true => std::path::PathBuf::from("why-demo"),
            false => std::env::temp_dir().join(format!("why-demo-{}", std::process::id())),
        };
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let done = self.tell(&folder, out);
        if !self.keep {
            let _ = std::fs::remove_dir_all(&folder);
        }
        done.map(|()| 0)
    }

    fn tell(&self, folder: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
        let put = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        put("receipt.c", SOURCE)?;
        put("receipt.txt", INPUT)?;
        put("expected.txt", EXPECTED)?;
        compile(folder)?;
        writeln!(out, "$ why --expect expected.txt -- ./receipt < receipt.txt\n")?;
        out.flush()?;
        let why = std::env::current_exe().context("cannot find why itself")?;
        let input = std::fs::File::open(folder.join("receipt.txt"))?;
        let recorded = Command::new(why)
            .args(["-q", "--expect", "expected.txt", "-o", "story.txt", "--", "./receipt"])
            .current_dir(folder)
            .env("WHY_DIR", folder.canonicalize()?.join("recordings"))
            .stdin(input)
            .status()
            .context("cannot run why")?;
        let story = std::fs::read_to_string(folder.join("story.txt")).with_context(|| {
            format!("the program could not be explained; why ended with {recorded}")
        })?;
        writeln!(out, "\n{story}")?;
        if self.keep {
            writeln!(out, "All of it is in {}.", folder.display())?;
        }
        Ok(())
    }
}

fn compile(folder: &Path) -> anyhow::Result<()> {
    let compiled = Command::new("cc")
        .args(["-g", "-O0", "-o", "receipt", "receipt.c"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .status()
        .context("there is no C compiler; install one, as with `apt install gcc`")?;
    anyhow::ensure!(compiled.success(), "the C compiler failed on the bundled program");
    Ok(())
}
