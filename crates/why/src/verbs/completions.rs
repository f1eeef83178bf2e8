//! `why completions`: what a shell needs to complete our words.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::command_line::CommandLine;

/// Print what a shell needs to complete the words of `why`.
#[derive(Args)]
#[command(after_help = "Examples:
  why completions bash > ~/.local/share/bash-completion/completions/why
  why completions zsh > ~/.zfunc/_why
  why completions fish > ~/.config/fish/completions/why.fish")]
pub struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    /// Prints it.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut CommandLine::command(), "why", &mut text);
        out.write_all(&text)?;
        Ok(0)
    }
}
