// SPDX-License-Identifier: Apache-2.0
//! Scratch directories and the steps that change files.

use crate::Failure;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed at the end, unless it is to stay.
pub struct Scratch {
    path: PathBuf,
    stays: bool,
}

impl Scratch {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.stays {
            // Left-overs in the temporary directory are harmless.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

pub fn scratch_directory() -> Scratch {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("rust-contract-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    fs::create_dir_all(&path).expect("a scratch directory");
    Scratch { path, stays: false }
}

/// A directory of the caller, which may be there.
pub fn kept_directory(path: &Path) -> Scratch {
    fs::create_dir_all(path).expect("a directory of the caller");
    Scratch { path: path.to_owned(), stays: true }
}

/// A path in which one `*` stands for the only entry that fits.
pub fn resolve(root: &Path, text: &str) -> Result<PathBuf, Failure> {
    let mut path = root.to_owned();
    for part in text.split('/') {
        if part == "*" {
            let directories: Vec<PathBuf> =
                fs::read_dir(&path)?.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.is_dir()).collect();
            let [only] = &directories[..] else {
                return Err(Failure::Wrong(format!("{} entries fit {text}", directories.len())));
            };
            path = only.clone();
        } else {
            path = path.join(part);
        }
    }
    Ok(path)
}

/// Runs a file step; false when `step` is none.
pub fn file_step(root: &Path, step: &Value) -> Result<bool, Failure> {
    let path = || resolve(root, step["path"].as_str().unwrap_or_default());
    let number = |key: &str| step[key].as_u64().unwrap_or(0);
    match step["op"].as_str().unwrap_or_default() {
        "make_directory" => fs::create_dir_all(path()?)?,
        "write_file" => {
            let path = path()?;
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            fs::write(path, step["text"].as_str().unwrap_or_default())?;
        }
        "remove_file" => fs::remove_file(path()?)?,
        "truncate_file" => {
            let bytes = fs::read(path()?)?;
            fs::write(path()?, &bytes[..bytes.len() - number("drop") as usize])?;
        }
        "flip_bit" => {
            let mut bytes = fs::read(path()?)?;
            bytes[number("offset") as usize] ^= 1 << number("bit");
            fs::write(path()?, bytes)?;
        }
        "move_and_link" => {
            let (from, to) = (path()?, root.join(step["to"].as_str().unwrap_or_default()));
            fs::rename(&from, &to)?;
            std::os::unix::fs::symlink(&to, &from)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
