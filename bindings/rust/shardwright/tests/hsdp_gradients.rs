// SPDX-License-Identifier: Apache-2.0
//! Gradients that are given away: read where they lie, dropped once.

#[path = "support/ranks.rs"]
mod ranks;

use ranks::{COLUMNS, ROWS, alone, ends_of_threads, meshes, message_of, on_ranks, with_layer};
use shardwright::ErrorKind;
use shardwright::hsdp::{Hsdp, MemoryKind, Setting, Unit, UnitOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const COUNT: usize = ROWS * COLUMNS;

/// Elements whose end is counted.
struct Counted(Vec<f32>, Arc<AtomicUsize>);

impl AsRef<[f32]> for Counted {
    fn as_ref(&self) -> &[f32] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

fn counted(value: f32, ends: &Arc<AtomicUsize>) -> Counted {
    Counted(vec![value; COUNT], Arc::clone(ends))
}

fn grad_of(hsdp: &Hsdp, unit: Unit) -> Vec<f32> {
    hsdp.grad::<f32>(unit, 0).unwrap().unwrap().to_vec()
}

#[test]
fn a_gradient_is_read_where_it_lies_until_it_was_reduced() {
    on_ranks(meshes(2, 1, ends_of_threads), |rank, mesh| {
        let (mut hsdp, unit) = with_layer(&mesh, &UnitOptions::default()).unwrap();
        let ends = Arc::new(AtomicUsize::new(0));
        hsdp.pre_forward(unit).unwrap();
        hsdp.take_grads(unit, [(0, counted(rank as f32 + 1.0, &ends))]).unwrap();
        assert_eq!(ends.load(Ordering::SeqCst), 0);
        assert_eq!(hsdp.stats(MemoryKind::LocalGrads).unwrap().peak_bytes, 0); // there is no copy
        hsdp.post_backward(unit).unwrap();
        hsdp.finalize_backward().unwrap();
        assert_eq!(ends.load(Ordering::SeqCst), 1);
        assert!(grad_of(&hsdp, unit).iter().all(|grad| *grad == 1.5));
    });
}

#[test]
fn further_ones_are_added() {
    let (mut hsdp, unit) = alone();
    hsdp.set(Setting::RequiresGradientSync(false)).unwrap();
    let ends = Arc::new(AtomicUsize::new(0));
    for value in [1.0, 2.0] {
        hsdp.pre_forward(unit).unwrap();
        hsdp.take_grads(unit, [(0, counted(value, &ends))]).unwrap();
        hsdp.post_backward(unit).unwrap();
    }
    hsdp.set(Setting::RequiresGradientSync(true)).unwrap();
    hsdp.pre_forward(unit).unwrap();
    hsdp.take_grads(unit, [(0, vec![4f32; COUNT].into_boxed_slice())]).unwrap();
    hsdp.take_grads(unit, [(0, [8f32; COUNT])]).unwrap(); // lies in what was given away
    hsdp.post_backward(unit).unwrap();
    hsdp.finalize_backward().unwrap();
    assert_eq!(grad_of(&hsdp, unit), [15.0; COUNT]);
    assert_eq!(ends.load(Ordering::SeqCst), 2);
}

#[test]
fn what_is_refused_is_dropped() {
    let (mut hsdp, unit) = alone();
    let ends = Arc::new(AtomicUsize::new(0));
    let early = hsdp.take_grads(unit, [(0, counted(1.0, &ends))]);
    message_of(early, ErrorKind::FailedPrecondition);
    assert_eq!(ends.load(Ordering::SeqCst), 1);
    hsdp.pre_forward(unit).unwrap();
    let short = hsdp.take_grads(unit, [(0, counted(1.0, &ends)), (0, Counted(vec![1.0], Arc::clone(&ends)))]);
    assert!(message_of(short, ErrorKind::InvalidArgument).contains("has 1 elements"));
    assert_eq!(ends.load(Ordering::SeqCst), 3);
    message_of(hsdp.take_grads(unit, [(0, vec![1i32; COUNT])]), ErrorKind::InvalidArgument);
    message_of(hsdp.take_grads(unit, [(7, counted(1.0, &ends))]), ErrorKind::OutOfRange);
    hsdp.post_backward(unit).unwrap();
    hsdp.finalize_backward().unwrap();
    assert_eq!(grad_of(&hsdp, unit), [0.0; COUNT]); // all or none
}

#[test]
fn what_was_given_ends_with_the_context() {
    let (mut hsdp, unit) = alone();
    let ends = Arc::new(AtomicUsize::new(0));
    hsdp.pre_forward(unit).unwrap();
    hsdp.take_grads(unit, [(0, counted(1.0, &ends))]).unwrap();
    drop(hsdp);
    assert_eq!(ends.load(Ordering::SeqCst), 1);
}
