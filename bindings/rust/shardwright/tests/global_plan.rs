// SPDX-License-Identifier: Apache-2.0
//! Global plans: one description for many ranks, equal to the merge of explicit plans, and what is refused.

use shardwright::global_plan::{self, Description, GlobalPlan};
use shardwright::planning::{self, DescribeOptions, Digest, Entry, EntryBatch, MergeOptions};
use shardwright::{Cover, DType, ErrorKind, Kind, Layout, Owner, Placement, Plan, Result};

const GENERATION: &str = "0123456789abcdef0123456789abcdef";
const RANKS: i32 = 8;

fn f32() -> DType {
    DType::from_name("float32").unwrap()
}

fn two_by_four() -> Layout {
    Layout::new(&[2, 4], &[], &[Placement::Replicate, Placement::Shard(0)]).unwrap()
}

fn options(rank: i32, world_size: i32) -> DescribeOptions {
    DescribeOptions::new().rank(rank).world_size(world_size)
}

/// Descriptions of 2 replicas of 4 shards: a sharded weight, a plain scale, a step, a random state per rank.
fn hybrid(rows: i64) -> Vec<Description> {
    let layout = two_by_four();
    let of = |rank| {
        let mut batch = EntryBatch::new();
        batch.add_laid_out(&Entry::tensor("weight", f32(), &[rows, 3]));
        batch.add(&Entry::tensor("scale", f32(), &[5]));
        batch.add(&Entry::object("step", 6));
        batch.add(&Entry::object("rng", 10 + rank as u64));
        let kinds = vec![("rng".into(), Kind::RankLocal)];
        let rules = options(rank, RANKS).kinds(kinds);
        global_plan::describe(&batch, &[Some(&layout), None, None, None], &rules).unwrap()
    };
    (0..RANKS).map(of).collect()
}

fn digests(all: &[Description]) -> Vec<Digest> {
    all.iter().map(|each| each.digest).collect()
}

fn plan_of(all: &[Description], rules: &MergeOptions) -> Result<GlobalPlan> {
    let digests = digests(all);
    let chosen = global_plan::representatives(&digests)?;
    let descriptions: Vec<&[u8]> = chosen.iter().map(|rank| &all[*rank as usize].description[..]).collect();
    let parts: Vec<&[u8]> = all.iter().map(|each| &each.part[..]).collect();
    GlobalPlan::new(&digests, &descriptions, &parts, rules)
}

fn made(all: &[Description]) -> GlobalPlan {
    plan_of(all, &MergeOptions::default()).unwrap()
}

fn refused<T>(result: Result<T>, code: ErrorKind, text: &str) {
    let error = result.err().expect("an error");
    assert!(error.kind() == code && error.message().contains(text), "{error}");
}

#[test]
fn ranks_of_a_mesh_describe_alike() {
    let all = hybrid(16);
    assert!(all.iter().all(|each| each.digest == all[0].digest && each.description == all[0].description));
    assert_eq!(global_plan::representatives(&digests(&all)).unwrap(), [0]);
    assert_eq!(Plan::from_bytes(&all[3].part).unwrap().rank(), 3);
    let json = made(&all).json().unwrap();
    for count in ["\"ranks\":8", "\"descriptions\":1", "\"items\":32", "\"chunks\":5", "\"objects\":9"] {
        assert!(json.contains(count), "{count} in {json}");
    }
}

#[test]
fn owners_are_those_of_the_explicit_merge() {
    let layout = two_by_four();
    let weight = Entry { kind: Kind::Sharded, ..Entry::tensor("weight", f32(), &[14, 3]) };
    let scale = Entry::tensor("scale", f32(), &[5]);
    for owner in [Owner::Balanced, Owner::LowestRank] {
        let (mut explicit, mut all) = (Vec::new(), Vec::new());
        for rank in 0..RANKS {
            let (mut listed, mut laid_out) = (EntryBatch::new(), EntryBatch::new());
            listed.add_boxes(&weight, layout.boxes(weight.shape, rank).unwrap()).unwrap();
            listed.add(&scale);
            explicit.push(planning::describe(&listed, &options(rank, RANKS)).unwrap());
            laid_out.add_laid_out(&weight);
            laid_out.add(&scale);
            all.push(global_plan::describe(&laid_out, &[Some(&layout), None], &options(rank, RANKS)).unwrap());
        }
        let rules = MergeOptions::new().owner(owner);
        let plan = plan_of(&all, &rules).unwrap();
        let merged = planning::merge(&explicit, &rules).unwrap();
        let merged = planning::entries(&Plan::from_bytes(&merged.plan).unwrap()).unwrap();
        for (i, name) in merged.names().into_iter().enumerate() {
            let wanted: Vec<i32> = merged.numbers().unwrap()[merged.box_range(i)].iter().map(|n| *n as i32).collect();
            assert_eq!(plan.owners(name).unwrap(), wanted, "{name} of {owner:?}");
        }
    }
}

#[test]
fn write_lists_are_those_of_the_expanded_plan() {
    let plan = made(&hybrid(16));
    let expanded = plan.expand(GENERATION).unwrap();
    assert_eq!(expanded.write_lists.len(), RANKS as usize);
    let merged = planning::entries(&Plan::from_bytes(&expanded.plan).unwrap()).unwrap();
    assert_eq!(merged.box_count(), 5 + 1 + RANKS as usize);
    for (rank, wanted) in expanded.write_lists.iter().enumerate() {
        // The lists differ in the digest of the plan that they carry, and in nothing that is written.
        let alone = Plan::from_bytes(&plan.write_list(rank as i32, GENERATION, None).unwrap()).unwrap();
        let wanted = Plan::from_bytes(wanted).unwrap();
        let items = |plan: &Plan| plan.json(1000).unwrap().split_once("\"items\"").expect("items").1.to_owned();
        assert_eq!((alone.rank(), items(&alone)), (rank as i32, items(&wanted)));
    }
    let named = plan.write_list(0, GENERATION, Some(&[7; 16])).unwrap();
    assert_ne!(named, plan.write_list(0, GENERATION, None).unwrap());
}

#[test]
fn boxes_without_a_layout_travel_in_parts() {
    let of = |(rank, (begin, size)): (usize, (i64, i64))| {
        let mut batch = EntryBatch::new();
        batch.add_boxes(&Entry::tensor("ragged", f32(), &[10]), [([begin], [size])]).unwrap();
        global_plan::describe(&batch, &[], &options(rank as i32, 3)).unwrap()
    };
    let all: Vec<Description> = [(0, 3), (3, 1), (4, 6)].into_iter().enumerate().map(of).collect();
    assert!(all.iter().all(|each| each.digest == all[0].digest && !each.part.is_empty()));
    let plan = made(&all);
    assert_eq!(plan.owners("ragged").unwrap(), [0, 1, 2]);
    assert_eq!(plan.rank_bytes().unwrap(), [12, 4, 24]);
}

#[test]
fn the_digest_is_the_plans_own() {
    let digest = |rows, owner| {
        let rules = MergeOptions::new().owner(owner);
        plan_of(&hybrid(rows), &rules).unwrap().digest().unwrap()
    };
    assert_eq!(digest(16, Owner::Balanced), digest(16, Owner::Balanced));
    assert_ne!(digest(16, Owner::Balanced), digest(17, Owner::Balanced));
    assert_ne!(digest(16, Owner::Balanced), digest(16, Owner::LowestRank));
}

#[test]
fn plans_are_shared_by_threads() {
    let plan = made(&hybrid(16));
    let wanted = plan.rank_bytes().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(plan.rank_bytes().unwrap(), wanted));
        }
    });
}

#[test]
fn refusals_name_ranks() {
    let all = hybrid(16);
    let (mut digests, rules) = (digests(&all), MergeOptions::default());
    let invalid = ErrorKind::InvalidArgument;
    refused(GlobalPlan::new(&digests, &[&all[0].description], &[], &rules), invalid, "part of rank 0");
    digests[7] = [0; 16];
    let one = GlobalPlan::new(&digests, &[&all[0].description], &[], &rules);
    refused(one, invalid, "1 descriptions for 2 distinct");
    refused(global_plan::representatives(&[]), invalid, "rank_count");
    let rules = MergeOptions::new().owner(Owner::All);
    refused(plan_of(&all, &rules), invalid, "owner");
    let rules = MergeOptions::new().cover(Cover::Off);
    refused(plan_of(&all, &rules), invalid, "cover");
    refused(made(&all).owners("nothing"), ErrorKind::NotFound, "nothing");
    refused(made(&all).write_list(RANKS, GENERATION, None), invalid, "rank 8 of 8");
    refused(made(&all).expand("0\0"), invalid, "NUL");
    let mut batch = EntryBatch::new();
    batch.add(&Entry::tensor("a", f32(), &[2]));
    refused(global_plan::describe(&batch, &[None, None], &options(0, 1)), invalid, "2 layouts for 1 entries");
    batch.add(&Entry::tensor("a", f32(), &[2]));
    refused(global_plan::describe(&batch, &[], &options(0, 1)), ErrorKind::AlreadyExists, "described twice");
}
