// SPDX-License-Identifier: Apache-2.0
//! Planning by descriptions: there and back, the originals' choices, matches, and what is refused.

use shardwright::planning::{
    self, DescribeOptions, Described, Entry, EntryBatch, HeldShards, MatchOptions, MergeOptions, Merged, NOT_KEPT,
};
use shardwright::{Cover, DType, ErrorKind, Kind, MatchOrder, Missing, Owner, Plan, Preset, Result, VerifyReplicas};

fn f32() -> DType {
    DType::from_name("float32").unwrap()
}

/// Whole tensors of one dimension.
fn wholes(tensors: &[(&str, i64)]) -> EntryBatch {
    let mut batch = EntryBatch::new();
    for (name, extent) in tensors {
        batch.add(&Entry::tensor(name, f32(), &[*extent]));
    }
    batch
}

/// A tensor of one dimension and boxes of it.
fn pieces(name: &str, extent: i64, boxes: &[(i64, i64)]) -> EntryBatch {
    let mut batch = EntryBatch::new();
    let boxes = boxes.iter().map(|(begin, size)| ([*begin], [*size]));
    batch.add_boxes(&Entry::tensor(name, f32(), &[extent]), boxes).unwrap();
    batch
}

fn plans(ranks: &[EntryBatch]) -> Vec<Vec<u8>> {
    let world_size = ranks.len() as i32;
    let of = |(rank, batch): (usize, &EntryBatch)| {
        let options = DescribeOptions::new().rank(rank as i32).world_size(world_size);
        planning::describe(batch, &options).unwrap()
    };
    ranks.iter().enumerate().map(of).collect()
}

fn entries(plan: &[u8]) -> EntryBatch {
    planning::entries(&Plan::from_bytes(plan).unwrap()).unwrap()
}

fn stored(batch: &EntryBatch) -> Plan {
    let options = DescribeOptions::new().kind(Described::MergedSave);
    Plan::from_bytes(&planning::describe(batch, &options).unwrap()).unwrap()
}

/// By rank the names of the entries of which it keeps a box.
fn kept_names(plans: &[Vec<u8>], merged: &Merged) -> Vec<Vec<String>> {
    assert_eq!(plans.len(), merged.kept.len());
    let names = |(plan, kept): (&Vec<u8>, &Vec<u32>)| {
        let boxes = entries(plan);
        assert_eq!(boxes.box_count(), kept.len());
        let is_kept = |i: &usize| kept[boxes.box_range(*i)].iter().any(|number| *number != NOT_KEPT);
        (0..boxes.len()).filter(is_kept).map(|i| boxes.entry(i).name.to_owned()).collect()
    };
    plans.iter().zip(&merged.kept).map(names).collect()
}

fn refused<T>(result: Result<T>, code: ErrorKind, text: &str) -> shardwright::Error {
    let error = result.err().expect("an error");
    assert!(error.kind() == code && error.message().contains(text), "{error}");
    error
}

#[test]
fn entries_come_back_as_they_were_described() {
    let digest = planning::content_digest(b"values").unwrap();
    let mut given = EntryBatch::new();
    let weight = Entry { path: "[\"m\",\"w\"]", attributes: b"abc", ..Entry::tensor("w", f32(), &[4, 2]) };
    given.add_boxes(&weight, [([1, 0], [2, 2]), ([3, 0], [1, 2])]).unwrap();
    given.add(&Entry { digest, ..Entry::object("step", 6) });
    given.add(&Entry { kind: Kind::RankLocal, ..Entry::tensor("scale", f32(), &[]) });
    given.set_order(vec![2, 0, 3, 1]);
    given.set_secondary(vec![false, true, false, false]);
    let options = DescribeOptions::new().rank(1).world_size(2).agreement("mode=test\n".into());
    let plan = planning::describe(&given, &options).unwrap();
    assert_eq!(Plan::from_bytes(&plan).unwrap().rank(), 1);
    let back = entries(&plan);
    assert_eq!((back.len(), back.box_count(), back.names()), (3, 4, vec!["w", "step", "scale"]));
    assert_eq!(back.entry(0), Entry { kind: Kind::Sharded, ..weight });
    assert_eq!(back.entry(1), Entry { kind: Kind::Replicated, ..given.entry(1) });
    assert_eq!(back.entry(2), given.entry(2));
    assert_eq!(back.boxes(0).collect::<Vec<_>>(), [(&[1, 0][..], &[2, 2][..]), (&[3, 0], &[1, 2])]);
    assert_eq!(back.boxes(2).collect::<Vec<_>>(), [(&[][..], &[][..])]);
    assert_eq!(back.box_range(1), 2..3);
    assert_eq!((back.numbers().unwrap(), back.order().unwrap()), (&[0, 1, 0, 0][..], &[2, 0, 3, 1][..]));
    assert_eq!(back.secondary().unwrap(), [false, true, false, false]);
    assert_eq!(planning::describe(&back, &options).unwrap(), plan);
}

#[test]
fn globs_give_kinds() {
    let kinds = vec![("a*".into(), Kind::RankLocal), ("*".into(), Kind::Sharded)];
    let plan = planning::describe(&wholes(&[("ab", 1), ("b", 1)]), &DescribeOptions::new().kinds(kinds));
    let found: Vec<Kind> = entries(&plan.unwrap()).iter().map(|entry| entry.kind).collect();
    assert_eq!(found, [Kind::RankLocal, Kind::Sharded]);
}

#[test]
fn presets_choose_as_their_originals() {
    let mut one = wholes(&[("a", 8), ("b", 4), ("c", 16), ("d", 2)]);
    one.add(&Entry::object("o", 0));
    let all = plans(&[one.clone(), one.clone(), one.clone(), one]);
    let options = |owner, preset| MergeOptions::new().owner(owner).preset(preset);
    let names = |owner, preset| kept_names(&all, &planning::merge(&all, &options(owner, preset)).unwrap());
    assert_eq!(names(Owner::Exact, Preset::Torch), [vec!["a"], vec!["b"], vec!["c"], vec!["d", "o"]]);
    assert_eq!(names(Owner::LowestRank, Preset::Torch)[0], ["a", "b", "c", "d", "o"]);
    assert_eq!(names(Owner::Balanced, Preset::Hyperparallel)[0][0], "c");
    let every = planning::merge(&all, &options(Owner::All, Preset::Hyperparallel)).unwrap();
    assert_eq!(every.kept[3], [3, 3, 3, 3, 0]);
}

#[test]
fn numbers_of_chunks_follow_what_was_kept() {
    let all = plans(&[pieces("w", 4, &[(2, 2)]), pieces("w", 4, &[(0, 2)])]);
    let merged = planning::merge(&all, &MergeOptions::new().owner(Owner::Exact).preset(Preset::Hyperparallel)).unwrap();
    assert_eq!(merged.kept, [[0], [1]]);
    let stored = entries(&merged.plan);
    assert_eq!(stored.boxes(0).map(|(offsets, _)| offsets[0]).collect::<Vec<_>>(), [2, 0]);
    assert_eq!(stored.numbers().unwrap(), [0, 1]);
}

#[test]
fn what_is_kept_is_said_box_by_box() {
    let all = plans(&[pieces("w", 6, &[(0, 2), (2, 2)]), pieces("w", 6, &[(4, 2), (2, 2)]), EntryBatch::new()]);
    let options = MergeOptions::new().owner(Owner::LowestRank).preset(Preset::Megatron);
    let merged = planning::merge(&all, &options).unwrap();
    assert_eq!(merged.kept, [vec![0, 1], vec![2, NOT_KEPT], vec![]]);
}

#[test]
fn conflicts_and_covers_are_refused_by_name() {
    let options = MergeOptions::default();
    let conflict = planning::merge(&plans(&[wholes(&[("w", 4)]), wholes(&[("w", 5)])]), &options);
    let error = refused(conflict, ErrorKind::InvalidArgument, "rank 0");
    assert!(error.message().contains("rank 1"), "{error}");
    let hole = plans(&[pieces("w", 4, &[(0, 1)]), pieces("w", 4, &[(2, 2)])]);
    let error = refused(planning::merge(&hole, &options), ErrorKind::InvalidArgument, "w");
    assert_eq!(error.details()["cover"], "full");
    planning::merge(&hole, &options.clone().cover(Cover::Disjoint)).unwrap();
    let mut torn = plans(&[wholes(&[("w", 4)])]).remove(0);
    torn.truncate(torn.len() - 8);
    refused(planning::merge(&[torn], &options), ErrorKind::DataLoss, "");
}

#[test]
fn matches_say_where_common_parts_lie() {
    let chunks: Vec<(i64, i64)> = (0..8).map(|i| (2 * i, 2)).collect();
    let mut there = pieces("w", 16, &chunks);
    there.add(&Entry::object("o", 0));
    let there = stored(&there);
    let mut wanted = pieces("w", 16, &[(1, 4), (15, 1)]);
    wanted.add(&Entry::object("o", 0));
    let found = planning::match_entries(&there, &wanted, &MatchOptions::default()).unwrap();
    assert_eq!((&found.wanted[..], &found.chunks[..]), (&[0, 0, 0, 1, 2][..], &[0, 1, 2, 7, 0][..]));
    assert_eq!((&found.wanted_offsets[..], &found.stored_offsets[..]), (&[0, 1, 3, 0][..], &[1, 0, 0, 1][..]));
    assert_eq!((&found.sizes[..], &found.entry_begins[..]), (&[1, 2, 1, 1][..], &[0, 4, 5][..]));
    let sweep = MatchOptions::new().order(MatchOrder::Sweep);
    assert_eq!(planning::match_entries(&there, &wanted, &sweep).unwrap().chunks.len(), 5);
    let other = wholes(&[("v", 16)]);
    refused(planning::match_entries(&there, &other, &MatchOptions::default()), ErrorKind::NotFound, "w");
    let missing = MatchOptions::new().missing(Missing::Report);
    assert_eq!(planning::match_entries(&there, &other, &missing).unwrap().entry_begins, [0, 0]);
}

#[test]
fn unfilled_wants_are_refused_unless_asked() {
    let there = stored(&pieces("w", 8, &[(0, 4), (0, 4)]));
    let (inside, beyond) = (pieces("w", 8, &[(1, 2)]), pieces("w", 8, &[(2, 4)]));
    let first = MatchOptions::new().first_replica(true);
    let plain = planning::match_entries(&there, &inside, &MatchOptions::default());
    refused(plain, ErrorKind::InvalidArgument, "overlaps");
    assert_eq!(planning::match_entries(&there, &inside, &first).unwrap().chunks, [0]);
    refused(planning::match_entries(&there, &beyond, &first), ErrorKind::InvalidArgument, "fill box [2:6]");
    let off = MatchOptions::new().cover(Cover::Off);
    assert_eq!(planning::match_entries(&there, &beyond, &off).unwrap().chunks, [0, 1]);
}

#[test]
fn columns_of_wrong_lengths_are_refused_before_they_are_read() {
    let wrong = |change: fn(&mut EntryBatch)| {
        let mut batch = wholes(&[("w", 4), ("v", 4)]);
        change(&mut batch);
        planning::describe(&batch, &DescribeOptions::default())
    };
    refused(wrong(|batch| batch.set_numbers(vec![0])), ErrorKind::InvalidArgument, "numbers");
    refused(wrong(|batch| batch.set_order(vec![0, 1, 2])), ErrorKind::InvalidArgument, "order");
    refused(wrong(|batch| batch.set_secondary(vec![])), ErrorKind::InvalidArgument, "secondary");
    let mut batch = EntryBatch::new();
    let flat = batch.add_boxes(&Entry::tensor("w", f32(), &[4, 2]), [([0], [4])]);
    refused(flat, ErrorKind::InvalidArgument, "box 0 of w");
    assert!(batch.is_empty());
    batch.add(&Entry::tensor("w", f32(), &[4]));
    assert_eq!(entries(&planning::describe(&batch, &DescribeOptions::default()).unwrap()).boxes(0).len(), 1);
}

#[test]
fn descriptions_that_are_wrong_are_refused() {
    let describe = |batch: &EntryBatch| planning::describe(batch, &DescribeOptions::default());
    refused(describe(&pieces("w", 4, &[(3, 2)])), ErrorKind::OutOfRange, "w");
    refused(describe(&wholes(&[("w", 4), ("w", 4)])), ErrorKind::AlreadyExists, "w");
    assert_eq!(entries(&describe(&EntryBatch::new()).unwrap()), EntryBatch::new());
    let generation = "0123456789abcdef0123456789abcdef";
    assert!(Plan::from_bytes(generation.as_bytes()).is_err());
}

#[test]
fn digests_name_what_is_described() {
    let with = |content: &[u8], extent: i64| {
        let mut batch = EntryBatch::new();
        let digest = planning::content_digest(content).unwrap();
        batch.add(&Entry { digest, ..Entry::tensor("w", f32(), &[extent]) });
        batch
    };
    let of = |batch: &EntryBatch| {
        let plan = planning::describe(batch, &DescribeOptions::default()).unwrap();
        planning::digest(&Plan::from_bytes(&plan).unwrap()).unwrap()
    };
    let (first, later) = (with(b"values", 4), with(b"other values", 4));
    assert_eq!(of(&first), of(&later));
    assert_ne!(of(&first), of(&with(b"values", 5)));
    let both = plans(&[first, later]);
    refused(planning::merge(&both, &MergeOptions::default()), ErrorKind::InvalidArgument, "content differs");
    let options = MergeOptions::new().verify_replicas(VerifyReplicas::Off);
    planning::merge(&both, &options).unwrap();
}

#[test]
fn owners_of_plain_arrays() {
    let shards = HeldShards {
        weights: &[10, 5, 1, 10],
        sets: &[0, 1, 2, 0],
        set_offsets: &[0, 3, 5, 6],
        holders: &[0, 1, 2, 1, 2, 2],
        secondary: None,
    };
    assert_eq!(planning::owners(&shards, 3).unwrap(), [0, 1, 2, 2]);
    let last = HeldShards { secondary: Some(&[true, false, false, false]), ..shards };
    assert_eq!(planning::owners(&last, 3).unwrap(), [2, 1, 2, 0]);
    let short = HeldShards { holders: &[0], ..shards };
    refused(planning::owners(&short, 3), ErrorKind::InvalidArgument, "differ in length");
    let unknown = HeldShards { weights: &[1], sets: &[7], set_offsets: &[0, 1], holders: &[0], secondary: None };
    refused(planning::owners(&unknown, 1), ErrorKind::InvalidArgument, "");
    let none = HeldShards { weights: &[], sets: &[], set_offsets: &[0], holders: &[], secondary: None };
    assert_eq!(planning::owners(&none, 1).unwrap(), Vec::<i32>::new());
}
