//! The repository's own files, for tests about them.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A file's text, by its path from the root.
#[must_use]
pub fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files below a folder with this extension, by their paths from the root, sorted.
#[must_use]
pub fn below(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Folders that hold packages.
pub const FOLDERS: [&str; 5] = ["shared", "functions", "operator", "tests", "tools"];

/// Every Rust file that is ours.
#[must_use]
pub fn rust() -> Vec<PathBuf> {
    FOLDERS.into_iter().flat_map(|folder| below(folder, "rs")).collect()
}
