//! `/proc/self/smaps`: the kernel's figures of the pages, by the guest's own regions.
//!
//! The kernel sees the maps of engine and guest together, cut and protected as the engine
//! has them. Each of its entries is counted to the guest's region it lies in; the others
//! are the engine's and are left out.

/// `smaps`: `maps` is what the guest believes is mapped, `real` what the kernel says.
pub fn smaps(maps: &str, real: &str) -> Vec<u8> {
    let entries = parse(real);
    let mut out = String::new();
    for line in maps.lines() {
        let Some((start, end)) = range(line) else { continue };
        out.push_str(line);
        out.push('\n');
        let within = entries.iter().filter(|entry| (start..end).contains(&entry.start));
        for (name, figure) in sum(within) {
            let figure =
                if name == "Size" { Figure::Kilobytes((end - start) >> 10) } else { figure };
            out.push_str(&figure.line(name));
        }
    }
    out.into_bytes()
}

/// `smaps_rollup`: the same for all regions together.
pub fn rollup(maps: &str, real: &str) -> Vec<u8> {
    let ranges: Vec<(u64, u64)> = maps.lines().filter_map(range).collect();
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Vec::new() };
    let entries = parse(real);
    let own = entries
        .iter()
        .filter(|entry| ranges.iter().any(|(start, end)| (*start..*end).contains(&entry.start)));
    let head = format!("{:08x}-{:08x} ---p 00000000 00:00 0", first.0, last.1);
    let mut out = format!("{head:<73}[rollup]\n");
    for (name, figure) in sum(own) {
        if figure.is_sum(name) && name != "Size" {
            out.push_str(&figure.line(name));
        }
    }
    out.into_bytes()
}

/// One of the kernel's maps.
struct Entry<'a> {
    start: u64,
    figures: Vec<(&'a str, Figure<'a>)>,
}

#[derive(Clone, Copy)]
enum Figure<'a> {
    Kilobytes(u64),
    Other(&'a str),
}

impl Figure<'_> {
    /// Is the figure of two maps that of both added?
    fn is_sum(&self, name: &str) -> bool {
        matches!(self, Figure::Kilobytes(_)) && !name.ends_with("PageSize")
    }

    fn line(&self, name: &str) -> String {
        match self {
            Figure::Kilobytes(n) => format!("{:<16}{n:>8} kB\n", format!("{name}:")),
            Figure::Other(text) => format!("{name}:{text}\n"),
        }
    }
}

fn range(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

fn parse(real: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in real.lines() {
        if let Some((start, _)) = range(line) {
            entries.push(Entry { start, figures: Vec::new() });
        } else if let (Some(entry), Some((name, rest))) = (entries.last_mut(), line.split_once(':'))
        {
            let number = rest.trim().strip_suffix(" kB").and_then(|n| n.parse().ok());
            entry.figures.push((name, number.map_or(Figure::Other(rest), Figure::Kilobytes)));
        }
    }
    entries
}

/// Figures of several maps together, in the kernel's order.
fn sum<'a>(entries: impl Iterator<Item = &'a Entry<'a>>) -> Vec<(&'a str, Figure<'a>)> {
    let mut total: Vec<(&str, Figure)> = Vec::new();
    for (name, figure) in entries.flat_map(|entry| &entry.figures) {
        match total.iter_mut().find(|(known, _)| known == name) {
            None => total.push((name, *figure)),
            Some((_, Figure::Kilobytes(sum))) if figure.is_sum(name) => {
                if let Figure::Kilobytes(more) = figure {
                    *sum += more;
                }
            }
            Some(_) => {}
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::{rollup, smaps};

    const MAPS: &str = "1000-4000 r-xp 00000000 00:01 1   /bin/guest\n";
    const REAL: &str = "00001000-00002000 r--p 00000000 fe:00 7   /rec/files/ab
Size:                  4 kB
KernelPageSize:        4 kB
Rss:                   4 kB
VmFlags: rd mr
00002000-00004000 r--p 00001000 fe:00 7   /rec/files/ab
Size:                  8 kB
KernelPageSize:        4 kB
Rss:                   4 kB
VmFlags: rd mr
51000000-51001000 r-xp 00000000 00:01 9   /memfd:why-code (deleted)
Size:                  4 kB
KernelPageSize:        4 kB
Rss:                   4 kB
VmFlags: rd ex
";

    #[test]
    fn maps_of_the_engine_are_left_out_and_pieces_are_added() {
        let shown = String::from_utf8(smaps(MAPS, REAL)).unwrap();
        let expected = "1000-4000 r-xp 00000000 00:01 1   /bin/guest
Size:                 12 kB
KernelPageSize:        4 kB
Rss:                   8 kB
VmFlags: rd mr
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_rollup_is_of_the_guests_regions() {
        let shown = String::from_utf8(rollup(MAPS, REAL)).unwrap();
        assert!(shown.starts_with("00001000-00004000 ---p"), "{shown}");
        assert!(shown.ends_with("[rollup]\nRss:                   8 kB\n"), "{shown}");
    }
}
