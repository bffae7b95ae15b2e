// SPDX-License-Identifier: Apache-2.0
//! Threads as ranks, and a unit of one small parameter.
#![allow(dead_code)] // each file of tests uses a part

use shardwright::hsdp::{Communicator, Hsdp, HsdpOptions, Lane, Mesh, Param, Unit, UnitOptions, thread_communicators};
use shardwright::{ErrorKind, Result};
use std::time::Duration;

pub fn ends_of_threads(size: i32) -> Vec<Communicator> {
    thread_communicators(size).unwrap()
}

pub type Transport = fn(i32) -> Vec<Communicator>;

/// A mesh for each rank, of one axis or of replicas and shards.
pub fn meshes(shards: i32, replicas: i32, transport: Transport) -> Vec<Mesh> {
    let shape = [i64::from(replicas), i64::from(shards)];
    let shape = if replicas > 1 { &shape[..] } else { &shape[1..] };
    let mut made: Vec<_> = (0..shards * replicas).map(|rank| Mesh::new(shape, rank).unwrap()).collect();
    for replica in 0..replicas {
        for (shard, end) in transport(shards).iter().enumerate() {
            let rank = replica as usize * shards as usize + shard;
            made[rank].set_communicator(shape.len() as i32 - 1, Lane::Gather, end).unwrap();
        }
    }
    for shard in 0..if replicas > 1 { shards } else { 0 } {
        for (replica, end) in transport(replicas).iter().enumerate() {
            made[replica * shards as usize + shard as usize].set_communicator(0, Lane::Gather, end).unwrap();
        }
    }
    made
}

pub fn on_ranks<T: Send>(meshes: Vec<Mesh>, body: impl Fn(i32, Mesh) -> T + Sync) -> Vec<T> {
    std::thread::scope(|threads| {
        let body = &body;
        let started: Vec<_> =
            meshes.into_iter().enumerate().map(|(rank, mesh)| threads.spawn(move || body(rank as i32, mesh))).collect();
        started.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

// ---- one small unit ----

pub const ROWS: usize = 5;
pub const COLUMNS: usize = 3;

pub fn weight() -> Vec<f32> {
    (0..ROWS * COLUMNS).map(|n| n as f32 + 1.0).collect()
}

pub fn with_layer(mesh: &Mesh, options: &UnitOptions) -> Result<(Hsdp, Unit)> {
    let mut hsdp = Hsdp::new(mesh, &HsdpOptions::new().timeout(Some(Duration::from_secs(60))))?;
    let weight = weight();
    let unit = hsdp.add_unit("layer", options, &[Param::new("weight", &[ROWS as i64, COLUMNS as i64], &weight)])?;
    Ok((hsdp, unit))
}

pub fn iterate(hsdp: &mut Hsdp, unit: Unit, value: f32) -> Result<()> {
    hsdp.pre_forward(unit)?;
    assert_eq!(hsdp.full::<f32>(unit, 0)?.len(), ROWS * COLUMNS);
    hsdp.post_forward(unit)?;
    hsdp.pre_backward(unit)?;
    hsdp.add_grads(unit, &[(0, &[value; ROWS * COLUMNS][..])])?;
    hsdp.post_backward(unit)?;
    hsdp.finalize_backward()
}

pub fn alone() -> (Hsdp, Unit) {
    with_layer(&Mesh::new(&[1], 0).unwrap(), &UnitOptions::default()).unwrap()
}

pub fn message_of(outcome: Result<impl std::fmt::Debug>, kind: ErrorKind) -> String {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error.message().to_owned()
}
