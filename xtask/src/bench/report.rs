//! The measurements as a markdown table.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::measure::{Measured, Mode};
use super::rows::Kind;

/// The whole report.
pub fn markdown(rows: &[Measured], modes: &[Mode], runs: usize) -> String {
    let mut text = String::new();
    let date = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec / 86_400;
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "# Overhead\n\nMedians of {runs} interleaved runs on {} ({} CPUs), Linux {}, day {date} since 1970.",
        cpu_name(),
        cpus(),
        kernel()
    );
    let _ = writeln!(
        text,
        "Columns other than native are multiples of native; `four threads` is measured natively with `taskset -c 0`. \
         `first record` has no translated code from earlier runs, the other two have. \
         Memory is the most that one process of the run has, natively and recorded."
    );
    let _ = writeln!(text, "\n{}\n", hardware_counters());
    heading(&mut text, modes);
    for row in rows.iter().filter(|row| row.kind != Kind::StartUp) {
        ratios(&mut text, row);
    }
    means(&mut text, rows, modes);
    start_up(&mut text, rows, modes);
    failures(&mut text, rows);
    text
}

fn heading(text: &mut String, modes: &[Mode]) {
    let _ = write!(text, "| row | native s ");
    for mode in &modes[1..] {
        let _ = write!(text, "| {} ", mode.name());
    }
    let _ = writeln!(
        text,
        "| bits/instruction | recording | memory |\n|{}",
        " --- |".repeat(modes.len() + 4)
    );
}

fn ratios(text: &mut String, row: &Measured) {
    let _ = write!(
        text,
        "| {}{} | {:.2} ",
        row.name,
        if row.failure.is_some() { " (failed)" } else { "" },
        row.seconds[0]
    );
    for seconds in &row.seconds[1..] {
        let _ = write!(text, "| {} ", number(seconds / row.seconds[0], "×"));
    }
    let bits = row.bits_per_instruction.map_or_else(|| "–".into(), |bits| format!("{bits:.4}"));
    let megabytes = |kib: u64| (kib << 10) as f64 / 1e6;
    let memory = row.peaks.map_or_else(
        || "–".into(),
        |[native, recorded]| format!("{:.0} → {:.0} MB", megabytes(native), megabytes(recorded)),
    );
    let _ = writeln!(text, "| {bits} | {:.1} MB | {memory} |", row.recording_bytes as f64 / 1e6);
}

fn means(text: &mut String, rows: &[Measured], modes: &[Mode]) {
    let cpu: Vec<&Measured> = rows.iter().filter(|row| row.kind == Kind::Cpu).collect();
    if cpu.is_empty() {
        return;
    }
    let _ = write!(text, "| **geometric mean, CPU-bound** | ");
    for mode in 1..modes.len() {
        let mean = geometric_mean(cpu.iter().map(|row| row.seconds[mode] / row.seconds[0]));
        let _ = write!(text, "| **{}** ", number(mean, "×"));
    }
    let bits: Vec<f64> = cpu.iter().filter_map(|row| row.bits_per_instruction).collect();
    let bits = if bits.is_empty() {
        "–".into()
    } else {
        format!("**{:.4}**", geometric_mean(bits.into_iter()))
    };
    let _ = writeln!(text, "| {bits} | | |");
}

fn start_up(text: &mut String, rows: &[Measured], modes: &[Mode]) {
    for row in rows.iter().filter(|row| row.kind == Kind::StartUp) {
        let _ = write!(text, "\nStart-up (`{}`), milliseconds: ", row.name);
        let times: Vec<String> = modes
            .iter()
            .zip(&row.seconds)
            .map(|(mode, seconds)| format!("{} {}", mode.name(), number(seconds * 1000.0, "")))
            .collect();
        let _ = writeln!(text, "{}.", times.join(", "));
    }
}

fn failures(text: &mut String, rows: &[Measured]) {
    for row in rows {
        if let Some(reason) = &row.failure {
            let _ = writeln!(text, "\n{} failed: {reason}", row.name);
        }
    }
}

fn number(value: f64, unit: &str) -> String {
    if value.is_finite() { format!("{value:.2}{unit}") } else { "–".into() }
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values
        .filter(|value| value.is_finite() && *value > 0.0)
        .fold((0.0, 0), |(sum, count), value| (sum + value.ln(), count + 1));
    if count == 0 { f64::NAN } else { (sum / f64::from(count)).exp() }
}

/// rr counts retired conditional branches in hardware; the kernel offers a `cpu` event source only
/// where the machine has (or the hypervisor passes on) such a counter.
fn hardware_counters() -> &'static str {
    if Path::new("/sys/bus/event_source/devices/cpu").exists()
        || Path::new("/sys/bus/event_source/devices/cpu_core").exists()
    {
        "rr: this machine has a hardware performance counter, so rr could run here; it is not measured in this table."
    } else {
        "rr: cannot run here. It needs a hardware branch counter, and this machine offers none (no `cpu` event source; `perf stat -e branches` says `<not supported>`)."
    }
}

fn cpu_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(": "))
        .map_or("an unknown CPU", |(_, name)| name)
        .to_string()
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_geometric_mean_of_two_and_eight_is_four() {
        assert!((super::geometric_mean([2.0, 8.0].into_iter()) - 4.0).abs() < 1e-12);
    }
}
