//! Which code is the user's own, and which came with a library?

use std::path::Path;

use super::program::Program;
use super::source_lines::{Frame, SourceLine};

/// Where systems keep shared libraries.
const SYSTEM: [&str; 5] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"];

/// Where source files of libraries are, or were when they were compiled.
const LIBRARY_SOURCES: [&str; 6] =
    ["/rustc", "/rust/deps", "/usr/include", "/usr/lib", "/usr/src", "/usr/local/go"];

/// Parts of paths that only unpacked packages have.
const PACKAGE_FOLDERS: [&str; 4] =
    [".cargo/registry", "cargo/registry/src", ".cargo/git/checkouts", "lib/rustlib/src"];

impl Program {
    /// Whether the code at an address belongs to the user's program rather than
    /// to a library.
    ///
    /// The main executable and libraries outside the system's folders are the
    /// user's. Within a file that has debug information, code without lines is a
    /// library's, for it was linked in without; so is code whose source is in the
    /// folder of a package, unless it was inlined into the user's. Stubs belong to nobody.
    pub fn is_own(&self, address: u64) -> bool {
        let Some((index, image)) = self.image_at(address) else { return false };
        let is_code = image.code().any(|code| code.contains(&address));
        if !is_code || index != 0 && is_system(image.path()) || self.is_plt(address) {
            return false;
        }
        let Ok(info) = image.debug(&self.loader) else { return true };
        let Some(unit) = info.unit_at(image.to_link(address)) else { return false };
        let table = self.line_table(info, &info.units[unit]);
        let Some(row) = table.row(image.to_link(address)) else { return false };
        if !is_library_source(&self.path(row.file)) {
            return true;
        }
        table.has_own && self.own_frames(address).next().is_some()
    }

    /// Whether a line is in a file that is no library's.
    pub fn is_own_line(&self, line: SourceLine) -> bool {
        !is_library_source(&self.path(line.file))
    }

    /// The lines of the user's own source around an address, innermost first: those of
    /// libraries that were inlined are left out.
    pub fn own_frames(&self, address: u64) -> impl Iterator<Item = Frame> {
        let own = |frame: &Frame| frame.line.is_some_and(|line| self.is_own_line(line));
        self.lines(address).into_iter().filter(own)
    }
}

impl Program {
    /// Whether an image is a library in one of the system's folders.
    pub(super) fn is_system(&self, image: usize) -> bool {
        image != 0 && is_system(self.images()[image].path())
    }

    /// The same, of the image at an address.
    pub(super) fn is_system_at(&self, address: u64) -> bool {
        self.image_at(address).is_some_and(|(image, _)| self.is_system(image))
    }
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder))
}

pub(super) fn is_library_source(path: &Path) -> bool {
    if LIBRARY_SOURCES.iter().any(|folder| path.starts_with(folder)) {
        return true;
    }
    let path = path.to_string_lossy();
    PACKAGE_FOLDERS.iter().any(|folder| path.contains(&format!("/{folder}/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_packages_are_not_the_users() {
        for path in [
            "/rustc/59807616e1/library/core/src/fmt/mod.rs",
            "/home/u/.cargo/registry/src/index.crates.io-1/memchr-2.7/src/lib.rs",
            "/rust/deps/hashbrown-0.15.4/src/raw/mod.rs",
            "/usr/include/c++/12/bits/stl_vector.h",
        ] {
            assert!(is_library_source(Path::new(path)), "{path}");
        }
        assert!(!is_library_source(Path::new("/home/u/registry/src/main.rs")));
    }

    #[test]
    fn libraries_of_the_system_are_known_by_their_folder() {
        assert!(is_system(Path::new("/lib/x86_64-linux-gnu/libc.so.6")));
        assert!(!is_system(Path::new("/home/u/lib/libmine.so")));
        assert!(!is_system(Path::new("/library/libmine.so")));
    }
}
