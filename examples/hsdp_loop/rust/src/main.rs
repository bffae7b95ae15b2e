// SPDX-License-Identifier: Apache-2.0
//! rust_hsdp_loop FOLDER STEPS: trains so many steps on two ranks from FOLDER/checkpoint, or from the beginning where there is
//! none, saves there, and prints the digest of all parameters. The programs of the other languages do the same, so each goes
//! on from what another has saved.

mod training;

use shardwright::hsdp::{Communicator, HsdpOptions, Lane, Mesh, thread_communicators};
use shardwright::{
    Collective, Context, LoadOptions, Location, Result, SaveOptions, load_at, save_at,
    thread_collectives,
};
use std::path::Path;
use std::process::ExitCode;
use training::Training;

const RANKS: i32 = 2;

/// One rank: `end` moves elements of training, the collective bytes of saves and loads.
fn run(
    rank: i32,
    end: &Communicator,
    collective: &mut Collective,
    checkpoint: &Path,
    steps: i64,
) -> Result<String> {
    let mut mesh = Mesh::new(&[i64::from(RANKS)], rank)?;
    mesh.set_communicator(0, Lane::Gather, end)?;
    let mut training = Training::new(&mesh, rank, &HsdpOptions::default())?;
    let (context, location) = (Context::shared()?, Location::path(checkpoint));
    if checkpoint.exists() {
        let options = LoadOptions::default();
        training.with_state(|state| {
            load_at(&context, state, &location, Some(collective), &options).map(drop)
        })?;
    }
    for _ in 0..steps {
        training.step()?;
    }
    let options = SaveOptions::default();
    training.with_state(|state| {
        save_at(&context, state, &location, Some(collective), &options).map(drop)
    })?;
    training.digest()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let Some((folder, steps)) = arguments
        .get(1)
        .zip(arguments.get(2).and_then(|steps| steps.parse().ok()))
    else {
        eprintln!("usage: rust_hsdp_loop FOLDER STEPS");
        return ExitCode::from(2);
    };
    let checkpoint = Path::new(folder).join("checkpoint");
    let (ends, collectives) = match (thread_communicators(RANKS), thread_collectives(RANKS)) {
        (Ok(ends), Ok(collectives)) => (ends, collectives),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("rust_hsdp_loop: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcomes: Vec<Result<String>> = std::thread::scope(|threads| {
        let rank = |((rank, end), mut collective): ((usize, Communicator), Collective)| {
            let checkpoint = &checkpoint;
            threads.spawn(move || run(rank as i32, &end, &mut collective, checkpoint, steps))
        };
        let started: Vec<_> = ends
            .into_iter()
            .enumerate()
            .zip(collectives)
            .map(rank)
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().expect("a rank does not panic"))
            .collect()
    });
    match outcomes.into_iter().collect::<Result<Vec<_>>>() {
        Ok(digests) => {
            println!("{}", digests[0]);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("rust_hsdp_loop: {error}");
            ExitCode::FAILURE
        }
    }
}
