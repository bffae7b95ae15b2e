// SPDX-License-Identifier: Apache-2.0
//! Gathers and reductions that are begun, and ended later.

#[path = "support/ranks.rs"]
mod ranks;

use ranks::{COLUMNS, ROWS, alone, ends_of_threads, meshes, message_of, on_ranks, weight, with_layer};
use shardwright::ErrorKind;
use shardwright::hsdp::{GradState, Hsdp, Lane, Mesh, Unit, UnitOptions, UnitState, thread_communicators};
use std::sync::Barrier;
use std::time::Duration;

fn hand_in(hsdp: &mut Hsdp, unit: Unit, value: f32) {
    hsdp.unshard(unit).unwrap();
    hsdp.add_grads(unit, &[(0, &[value; ROWS * COLUMNS][..])]).unwrap();
}

#[test]
fn a_gather_is_polled_until_all_ranks_are_there() {
    let sealed = Barrier::new(2);
    let asked = Barrier::new(2);
    on_ranks(meshes(2, 1, ends_of_threads), |rank, mesh| {
        let (mut hsdp, unit) = with_layer(&mesh, &UnitOptions::default()).unwrap();
        sealed.wait();
        if rank == 1 {
            asked.wait(); // the other one has asked in vain
        }
        let mut gather = hsdp.begin_unshard(unit).unwrap();
        if rank == 0 {
            assert!(!gather.poll(&mut hsdp).unwrap());
            assert!(!gather.wait_for(&mut hsdp, Duration::from_nanos(1)).unwrap());
            assert_eq!(hsdp.state(unit).unwrap(), UnitState::Gathering);
            asked.wait();
        }
        gather.wait(&mut hsdp).unwrap();
        assert_eq!(hsdp.state(unit).unwrap(), UnitState::Unsharded);
        assert_eq!(hsdp.full::<f32>(unit, 0).unwrap(), weight());
        assert!(gather.poll(&mut hsdp).unwrap()); // again
    });
}

#[test]
fn a_reduction_is_waited_for() {
    on_ranks(meshes(2, 1, ends_of_threads), |rank, mesh| {
        let (mut hsdp, unit) = with_layer(&mesh, &UnitOptions::default()).unwrap();
        hand_in(&mut hsdp, unit, rank as f32 + 1.0);
        let mut reduction = hsdp.begin_reduce(unit).unwrap();
        assert_eq!(hsdp.grad_state(unit).unwrap(), GradState::Scattering);
        assert!(hsdp.grad::<f32>(unit, 0).unwrap().is_none());
        reduction.wait(&mut hsdp).unwrap();
        assert_eq!(hsdp.grad_state(unit).unwrap(), GradState::Ready);
        assert!(hsdp.grad::<f32>(unit, 0).unwrap().unwrap().iter().all(|grad| *grad == 1.5));
    });
}

#[test]
fn a_reduction_that_is_dropped_goes_on() {
    on_ranks(meshes(2, 1, ends_of_threads), |_, mesh| {
        let (mut hsdp, unit) = with_layer(&mesh, &UnitOptions::default()).unwrap();
        hand_in(&mut hsdp, unit, 1.0);
        drop(hsdp.begin_reduce(unit).unwrap());
        hsdp.finalize_backward().unwrap();
        assert!(hsdp.grad::<f32>(unit, 0).unwrap().unwrap().iter().all(|grad| *grad == 1.0));
    });
}

#[test]
fn works_ask_for_their_own_context() {
    let (mut hsdp, unit) = alone();
    let (mut other, _) = alone();
    let mut gather = hsdp.begin_unshard(unit).unwrap();
    assert!(message_of(gather.wait(&mut other), ErrorKind::InvalidArgument).contains("another context"));
    drop(hsdp); // which the work keeps alive
    message_of(gather.poll(&mut other), ErrorKind::InvalidArgument);
}

#[test]
fn a_failure_of_another_rank_ends_the_work() {
    let ends = thread_communicators(2).unwrap();
    let begun = Barrier::new(2);
    std::thread::scope(|threads| {
        for (rank, end) in ends.into_iter().enumerate() {
            let begun = &begun;
            threads.spawn(move || {
                let mut mesh = Mesh::new(&[2], rank as i32).unwrap();
                mesh.set_communicator(0, Lane::Gather, &end).unwrap();
                let (mut hsdp, unit) = with_layer(&mesh, &UnitOptions::default()).unwrap();
                if rank == 1 {
                    begun.wait();
                    return end.abort(ErrorKind::Unavailable, "no data is left").unwrap();
                }
                let mut gather = hsdp.begin_unshard(unit).unwrap();
                begun.wait();
                for _ in 0..2 {
                    assert!(gather.wait(&mut hsdp).unwrap_err().message().contains("no data is left"));
                }
            });
        }
    });
}
