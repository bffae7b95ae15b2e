// SPDX-License-Identifier: Apache-2.0
//! Whole parameters in memory of the host.

#[path = "support/ranks.rs"]
mod ranks;

use ranks::{COLUMNS, ROWS, ends_of_threads, iterate, meshes, message_of, on_ranks, weight};
use shardwright::hsdp::{ALIGNMENT, Device, HostAllocator, Hsdp, HsdpOptions, Mesh, Param, Phase, Unit, UnitOptions};
use shardwright::{Context, Error, ErrorKind, Result};
use std::sync::{Arc, Mutex};

const BYTES: usize = ROWS * COLUMNS * 4;

#[derive(Default)]
struct Seen {
    lent: usize,
    back: usize,
    places: Vec<usize>,
    last: Vec<u8>,
    is_dropped: bool,
}

/// Bytes at an alignment, or beside it.
struct Piece {
    room: Vec<u8>,
    begin: usize,
    bytes: usize,
}

impl AsMut<[u8]> for Piece {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.room[self.begin..][..self.bytes]
    }
}

/// A pool of one piece; `wrong` bytes are added to what it is asked for, and to where they begin.
struct Pool {
    seen: Arc<Mutex<Seen>>,
    spare: Option<Piece>,
    wrong: (usize, usize),
    panics: bool,
}

impl Pool {
    fn new(seen: &Arc<Mutex<Seen>>) -> Pool {
        Pool { seen: Arc::clone(seen), spare: None, wrong: (0, 0), panics: false }
    }
}

impl HostAllocator for Pool {
    type Memory = Piece;

    fn allocate(&mut self, param: usize, bytes: usize) -> Result<Piece> {
        assert!(!self.panics, "the pool is broken");
        assert_eq!((param, bytes), (0, BYTES));
        let mut piece = self.spare.take().unwrap_or_else(|| {
            let room = vec![0u8; bytes + 2 * ALIGNMENT];
            let begin = room.as_ptr().align_offset(ALIGNMENT) + self.wrong.1;
            Piece { room, begin, bytes: bytes + self.wrong.0 }
        });
        let mut seen = self.seen.lock().unwrap();
        seen.lent += 1;
        seen.places.push(piece.as_mut().as_ptr() as usize);
        Ok(piece)
    }

    fn deallocate(&mut self, _: usize, mut memory: Piece) {
        let mut seen = self.seen.lock().unwrap();
        seen.back += 1;
        seen.last = memory.as_mut().to_vec();
        self.spare = Some(memory);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.seen.lock().unwrap().is_dropped = true;
    }
}

fn with_layer_in(allocator: impl HostAllocator, mesh: &Mesh) -> Result<(Hsdp, Unit)> {
    let mut hsdp = Hsdp::new(mesh, &HsdpOptions::default())?;
    let weight = weight();
    let params = [Param::new("weight", &[ROWS as i64, COLUMNS as i64], &weight)];
    let unit = hsdp.add_unit_in(allocator, "layer", &UnitOptions::default(), &params)?;
    Ok((hsdp, unit))
}

fn alone_in(allocator: impl HostAllocator) -> (Hsdp, Unit) {
    with_layer_in(allocator, &Mesh::new(&[1], 0).unwrap()).unwrap()
}

#[test]
fn parameters_are_gathered_into_memory_of_the_host() {
    on_ranks(meshes(2, 1, ends_of_threads), |_, mesh| {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (mut hsdp, unit) = with_layer_in(Pool::new(&seen), &mesh).unwrap();
        hsdp.unshard(unit).unwrap();
        let full = hsdp.full::<f32>(unit, 0).unwrap();
        assert_eq!(full, weight());
        assert_eq!(seen.lock().unwrap().places, [full.as_ptr() as usize]);
        hsdp.reshard(unit, Phase::Backward).unwrap();
        let bytes: Vec<u8> = weight().iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(seen.lock().unwrap().last, bytes); // what it was is the host's again
        iterate(&mut hsdp, unit, 1.0).unwrap();
        drop(hsdp);
        let seen = seen.lock().unwrap();
        assert!(seen.is_dropped && seen.lent == seen.back && seen.lent >= 2);
        assert!(seen.places.iter().all(|place| *place == seen.places[0])); // the pool gave the same again
    });
}

#[test]
fn what_is_lent_comes_back_with_the_context() {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let (mut hsdp, unit) = alone_in(Pool::new(&seen));
    hsdp.unshard(unit).unwrap();
    assert_eq!(seen.lock().unwrap().back, 0);
    drop(hsdp);
    let seen = seen.lock().unwrap();
    assert!(seen.is_dropped && seen.back == 1);
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    for wrong in [(1, 0), (0, 1), (0, ALIGNMENT / 2)] {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut pool = Pool::new(&seen);
        pool.wrong = wrong;
        let (mut hsdp, unit) = alone_in(pool);
        let text = message_of(hsdp.unshard(unit), ErrorKind::InvalidArgument);
        assert!(text.contains("memory of the host for parameter 0"), "{text}");
        assert_eq!(seen.lock().unwrap().back, 1);
    }
}

/// Has nothing.
struct Empty;

impl HostAllocator for Empty {
    type Memory = Vec<u8>;

    fn allocate(&mut self, _: usize, bytes: usize) -> Result<Vec<u8>> {
        Err(Error::new(ErrorKind::ResourceExhausted, format!("no {bytes} bytes are left")))
    }
    fn deallocate(&mut self, _: usize, _: Vec<u8>) {
        unreachable!()
    }
}

#[test]
fn errors_and_panics_of_the_host_come_out_of_the_call() {
    let (mut hsdp, unit) = alone_in(Empty);
    assert!(message_of(hsdp.unshard(unit), ErrorKind::ResourceExhausted).contains("no 60 bytes are left"));
    let mut pool = Pool::new(&Arc::default());
    pool.panics = true;
    let (mut hsdp, unit) = alone_in(pool);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hsdp.unshard(unit))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the pool is broken"));
}

#[test]
fn memory_of_the_host_is_not_lent_to_a_device() {
    let context = Context::builder().build().unwrap();
    // SAFETY: it is one of ours.
    unsafe { context.load_plugin("apart") }.unwrap();
    let device = Device::open(&context, "apart", "").unwrap();
    let mut hsdp =
        Hsdp::on_device(&context, &device, &Mesh::new(&[1], 0).unwrap(), &HsdpOptions::default()).unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let weight = weight();
    let params = [Param::new("weight", &[ROWS as i64, COLUMNS as i64], &weight)];
    let outcome = hsdp.add_unit_in(Pool::new(&seen), "layer", &UnitOptions::default(), &params);
    assert!(message_of(outcome, ErrorKind::Unimplemented).contains("'layer'"));
    assert!(seen.lock().unwrap().is_dropped);
}
