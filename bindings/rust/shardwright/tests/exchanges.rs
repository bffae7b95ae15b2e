// SPDX-License-Identifier: Apache-2.0
//! Three ranks in one process read for each other, and the test moves the bytes: a checkpoint saved in rows is loaded in
//! columns, and a replica.

use shardwright::{
    Checkpoint, Context, ErrorKind, ExchangeRound, LoadExchange, LoadOptions, LoadPlanner, Location, Plan, SaveOptions,
    SavePlanner, Shard, State, Storage, exchange_plans,
};

const RANKS: usize = 3;
const ROWS: usize = 1023;
const COLUMNS: usize = 3 * 1024;
const WIDTH: usize = COLUMNS / RANKS;
const REPLICA: usize = 1 << 20;
const GLOBAL: [i64; 2] = [ROWS as i64, COLUMNS as i64];

fn save(location: &Location) {
    let whole: Vec<f32> = (0..ROWS * COLUMNS).map(|i| i as f32).collect();
    let replica: Vec<f32> = (0..REPLICA).map(|i| -(i as f32)).collect();
    let states: Vec<State> = (0..RANKS)
        .map(|rank| {
            let (begin, end) = (ROWS * rank / RANKS, ROWS * (rank + 1) / RANKS);
            let shape = [(end - begin) as i64, COLUMNS as i64];
            let boxes = [(&[begin as i64, 0][..], &shape[..], 0)];
            let shard = Shard { global_shape: &GLOBAL, boxes: &boxes };
            let mut state = State::new();
            state.add_shard("w", &shape, shard, &whole[begin * COLUMNS..end * COLUMNS]).unwrap();
            state.add("r", &[REPLICA as i64], &replica).unwrap();
            state
        })
        .collect();
    let options = SaveOptions::default();
    let mut planners: Vec<_> = states
        .iter()
        .zip(0..)
        .map(|(state, rank)| SavePlanner::new(state, rank, RANKS as i32, &options).unwrap())
        .collect();
    let locals: Vec<_> = planners.iter_mut().map(|p| p.local_plan().unwrap()).collect();
    let parts = planners[0].global_plan(&locals, location).unwrap();
    let results: Vec<_> = planners
        .iter_mut()
        .zip(&parts)
        .map(|(planner, part)| {
            let plan = planner.finish(part).unwrap();
            planner.execute(&plan, location).unwrap()
        })
        .collect();
    planners[0].commit(&results).unwrap();
}

/// What each rank fills.
struct Targets {
    columns: Vec<Vec<f32>>,
    replicas: Vec<Vec<f32>>,
}

impl Targets {
    fn new() -> Targets {
        Targets { columns: vec![vec![0.0; ROWS * WIDTH]; RANKS], replicas: vec![vec![0.0; REPLICA]; RANKS] }
    }

    fn states(&mut self) -> Vec<State<'_>> {
        let shape = [ROWS as i64, WIDTH as i64];
        self.columns
            .iter_mut()
            .zip(&mut self.replicas)
            .enumerate()
            .map(|(rank, (columns, replica))| {
                let boxes = [(&[0, (rank * WIDTH) as i64][..], &shape[..], 0)];
                let mut state = State::new();
                state.add_shard_mut("w", &shape, Shard { global_shape: &GLOBAL, boxes: &boxes }, columns).unwrap();
                state.add_mut("r", &[REPLICA as i64], replica).unwrap();
                state
            })
            .collect()
    }

    fn are_loaded(&self) -> bool {
        let columns = self.columns.iter().enumerate().all(|(rank, found)| {
            found.iter().enumerate().all(|(i, v)| *v == (i / WIDTH * COLUMNS + rank * WIDTH + i % WIDTH) as f32)
        });
        columns && self.replicas.iter().all(|found| found.iter().enumerate().all(|(i, v)| *v == -(i as f32)))
    }
}

fn saved() -> (Context, Storage) {
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    save(&Location::storage(&storage, "p"));
    (context, storage)
}

fn planners<'p, 's>(checkpoint: &'p Checkpoint, states: &'p mut [State<'s>]) -> Vec<LoadPlanner<'p, 's>> {
    let options = LoadOptions::default();
    states
        .iter_mut()
        .zip(0..)
        .map(|(state, rank)| LoadPlanner::new(checkpoint, state, rank, &options).unwrap())
        .collect()
}

/// Load plans and exchange plans of all ranks.
fn plan(planners: &mut [LoadPlanner]) -> (Vec<Plan>, Vec<Plan>) {
    let plans: Vec<Plan> = planners.iter_mut().map(|p| p.local_plan().unwrap()).collect();
    let wants: Vec<Plan> =
        planners.iter_mut().zip(&plans).map(|(p, plan)| p.want_list(plan, RANKS as i32).unwrap()).collect();
    let exchanges = exchange_plans(&wants).unwrap();
    assert_eq!(exchanges.iter().map(Plan::rank).collect::<Vec<_>>(), [0, 1, 2]);
    (plans, exchanges)
}

/// What a transport would do.
fn move_bytes(rounds: &mut [ExchangeRound]) {
    let sent: Vec<Vec<Vec<u8>>> =
        rounds.iter().map(|round| (0..RANKS).map(|to| round.outgoing(to).to_vec()).collect()).collect();
    for (to, round) in rounds.iter_mut().enumerate() {
        assert_eq!(round.rank_count(), RANKS);
        for from in 0..RANKS {
            round.incoming(from).copy_from_slice(&sent[from][to]);
        }
    }
}

fn all_rounds(exchanges: &mut [LoadExchange]) {
    for _ in 0..exchanges[0].round_count() {
        let mut rounds: Vec<_> = exchanges.iter_mut().map(|e| e.begin_round().unwrap()).collect();
        move_bytes(&mut rounds);
        exchanges.iter_mut().for_each(|e| e.end_round().unwrap());
    }
}

#[test]
fn each_byte_is_read_once() {
    let (context, storage) = saved();
    let checkpoint = Checkpoint::open_at(&context, &Location::storage(&storage, "p")).unwrap();
    let mut targets = Targets::new();
    let mut states = targets.states();
    let mut planners = planners(&checkpoint, &mut states);
    let (plans, exchange_plans) = plan(&mut planners);
    let mut exchanges: Vec<_> = planners
        .iter_mut()
        .zip(plans.iter().zip(&exchange_plans))
        .map(|(p, (a, b))| p.exchange(a, b).unwrap())
        .collect();
    assert!(exchanges[0].round_count() > 0);
    all_rounds(&mut exchanges);
    let reports: Vec<_> = exchanges.iter_mut().map(|e| e.finish().unwrap().summary().unwrap()).collect();
    let payload = 4 * (ROWS * COLUMNS + REPLICA) as u64;
    let read: u64 = reports.iter().map(|r| r.bytes).sum();
    let received: u64 = reports.iter().map(|r| r.bytes_received).sum();
    assert!(payload <= read && read * 100 <= payload * 105, "{read} bytes of {payload}");
    assert!(received * 10 > payload * 19, "{received} bytes");
    drop(exchanges);
    drop(planners);
    drop(states);
    assert!(targets.are_loaded());
}

#[test]
fn steps_out_of_order_and_plans_of_others_are_refused() {
    let (context, storage) = saved();
    let checkpoint = Checkpoint::open_at(&context, &Location::storage(&storage, "p")).unwrap();
    let mut targets = Targets::new();
    let mut states = targets.states();
    let mut planners = planners(&checkpoint, &mut states);
    let (plans, exchanges) = plan(&mut planners);
    let too_few = planners[2].want_list(&plans[2], 2).unwrap_err();
    assert_eq!(too_few.kind(), ErrorKind::InvalidArgument);
    assert_eq!(exchange_plans(&[]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(exchange_plans(&plans).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let planner = &mut planners[0];
    assert_eq!(planner.exchange(&plans[0], &exchanges[1]).unwrap_err().kind(), ErrorKind::FailedPrecondition);
    assert_eq!(planner.exchange(&plans[0], &plans[0]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let mut exchange = planner.exchange(&plans[0], &exchanges[0]).unwrap();
    assert_eq!(exchange.end_round().unwrap_err().kind(), ErrorKind::FailedPrecondition);
    assert_eq!(exchange.finish().unwrap_err().kind(), ErrorKind::FailedPrecondition);
    exchange.begin_round().unwrap();
    assert_eq!(exchange.begin_round().unwrap_err().kind(), ErrorKind::FailedPrecondition);
    assert_eq!(exchange.finish().unwrap_err().kind(), ErrorKind::FailedPrecondition);
}

#[test]
fn machines_are_texts_without_nul() {
    Context::builder().threads(1).machine("a").build().unwrap();
    let refused = Context::builder().machine("a\0b").build().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
}
