// SPDX-License-Identifier: Apache-2.0
//! Byte objects of a checkpoint as streams.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use crate::Checkpoint;

const BUFFER_BYTES: u64 = 1 << 20; // of one read from the checkpoint

/// A byte object that is read in parts; made by [`Checkpoint::open_object`]. Failures are [`io::Error`]s that hold the
/// library's [`Error`](crate::Error).
#[derive(Debug)]
pub struct ObjectReader<'a> {
    checkpoint: &'a Checkpoint,
    index: u64,
    size: u64,
    position: u64,
    buffer: Vec<u8>,
    buffer_begin: u64,
}

impl<'a> ObjectReader<'a> {
    pub(crate) fn new(checkpoint: &'a Checkpoint, index: u64, size: u64) -> Self {
        ObjectReader { checkpoint, index, size, position: 0, buffer: Vec::new(), buffer_begin: 0 }
    }

    /// Bytes of the whole object.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl BufRead for ObjectReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.position >= self.size {
            return Ok(&[]);
        }
        let end = self.buffer_begin + self.buffer.len() as u64;
        if self.position < self.buffer_begin || self.position >= end {
            self.buffer =
                self.checkpoint.object_part(self.index, self.position, BUFFER_BYTES).map_err(io::Error::other)?;
            self.buffer_begin = self.position;
        }
        Ok(&self.buffer[(self.position - self.buffer_begin) as usize..])
    }

    fn consume(&mut self, count: usize) {
        self.position += count as u64;
    }
}

impl Read for ObjectReader<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(target)?;
        self.consume(count);
        Ok(count)
    }
}

impl Seek for ObjectReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
            SeekFrom::End(offset) => self.size.checked_add_signed(offset),
        };
        let out_of_range = || io::Error::new(io::ErrorKind::InvalidInput, "a seek before the first byte");
        self.position = position.ok_or_else(out_of_range)?;
        Ok(self.position)
    }
}
