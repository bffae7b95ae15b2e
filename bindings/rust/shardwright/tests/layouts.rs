// SPDX-License-Identifier: Apache-2.0
//! Layouts of every form, shards of grids, and states that hold what they say.

use shardwright::{
    Checkpoint, Context, DType, ErrorKind, FlatEntry, GridShard, Layout, LoadOptions, Location, Piece, Placement, Plan,
    SaveOptions, SavePlanner, Shard, State, Storage, TensorBatch, TensorSpec, flat_entry_pieces, load_at,
    overlapping_parts, save_at,
};

fn piece(offsets: &[i64], sizes: &[i64], local_offset: i64) -> Piece {
    Piece { offsets: offsets.to_vec(), sizes: sizes.to_vec(), local_offset }
}

fn refused<T>(result: shardwright::Result<T>, code: ErrorKind, words: &str) {
    let error = result.err().expect("refused");
    assert_eq!(error.kind(), code, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn strided_shards_give_every_box() {
    let layout = Layout::new(&[2], &[], &[Placement::StridedShard { dim: 0, factor: 2 }]).unwrap();
    let wanted = [piece(&[3, 0], &[2, 3], 0), piece(&[8, 0], &[2, 3], 6)];
    assert_eq!(layout.pieces(&[10, 3], 1).unwrap(), wanted);
    assert_eq!(layout.boxes(&[10, 3], 1).unwrap()[1], (vec![8, 0], vec![2, 3]));
    assert_eq!(layout.local_shape(&[10, 3], 1).unwrap(), [4, 3]);
    assert_eq!(layout.local_shape(&[10, 3], 2).unwrap(), [0]);
    assert!(layout.contains(1) && !layout.contains(2) && layout.rank_count() == 2);
    let zero = Layout::new(&[2], &[], &[Placement::StridedShard { dim: 0, factor: 0 }]);
    refused(zero, ErrorKind::InvalidArgument, "factor 0");
}

#[test]
fn flat_layouts_cut_elements() {
    let layout = Layout::new(&[2, 2], &[], &[Placement::Flat, Placement::Shard(0)]).unwrap();
    let wanted = [piece(&[4, 2], &[1, 1], 0), piece(&[5, 0], &[1, 3], 1)];
    assert_eq!(layout.pieces(&[6, 3], 3).unwrap(), wanted);
    assert_eq!(layout.local_shape(&[6, 3], 3).unwrap(), [4]);
    let scalars = Layout::new(&[2], &[], &[Placement::Flat]).unwrap();
    assert_eq!(scalars.pieces(&[], 0).unwrap(), [piece(&[], &[], 0)]);
    assert_eq!(scalars.pieces(&[], 1).unwrap(), []);
}

#[test]
fn tensor_maps_nest_from_the_outermost_axis() {
    let names = ["dp", "cp", "tp"];
    let layout = Layout::with_tensor_map(&[2, 2, 2], &[], &names, &[&[0, 2], &[-1]]).unwrap();
    assert_eq!(layout.boxes(&[8, 8], 1).unwrap(), [(vec![4, 0], vec![2, 8])]);
    refused(layout.pieces(&[8], 1), ErrorKind::InvalidArgument, "2 dimensions");
    for axis in [3, -2] {
        let map: [&[i32]; 1] = [&[axis]];
        refused(Layout::with_tensor_map(&[2, 2, 2], &[], &[], &map), ErrorKind::InvalidArgument, "axis");
    }
    refused(Layout::with_tensor_map(&[2], &[], &names, &[&[0]]), ErrorKind::InvalidArgument, "3 names");
    let interleaved = Layout::with_tensor_map(&[2], &[], &["interleaved_parallel"], &[&[0]]);
    refused(interleaved, ErrorKind::Unimplemented, "'interleaved_parallel'");
    assert_eq!(Layout::with_tensor_map(&[2], &[], &[], &[]).unwrap().pieces(&[], 1).unwrap().len(), 1);
}

#[test]
fn states_take_strided_and_flat_parts() {
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let location = Location::storage(&storage, "p");
    let columns = Layout::new(&[1], &[], &[Placement::StridedShard { dim: 1, factor: 2 }]).unwrap();
    let flat = Layout::new(&[1], &[], &[Placement::Flat]).unwrap();
    let (uint8, all): (_, Vec<u8>) = (DType::from_name("uint8").unwrap(), (0..30).collect());
    let mut state = State::new();
    state.add_owned_laid_out("w", uint8, &[5, 6], (&columns, 0), &all).unwrap();
    save_at(&context, &state, &location, None, &SaveOptions::default()).unwrap();
    assert_eq!(Checkpoint::open_at(&context, &location).unwrap().read("w").unwrap().bytes(), all);
    let mut into = State::new();
    into.add_owned_laid_out("w", uint8, &[5, 6], (&flat, 0), &[0; 30]).unwrap();
    load_at(&context, &mut into, &location, None, &LoadOptions::default()).unwrap();
    assert_eq!(into.tensor_bytes("w").unwrap(), all);
}

#[test]
fn boxes_are_windows_of_a_local_tensor_of_their_dimensions() {
    let uint8 = DType::from_name("uint8").unwrap();
    let boxes: [(&[i64], &[i64], i64); 2] = [(&[0, 2], &[2, 2], 0), (&[0, 0], &[2, 2], 2)];
    let shard = Some(Shard { global_shape: &[2, 4], boxes: &boxes });
    let mut state = State::new();
    state
        .add_owned(&TensorSpec { shard, ..TensorSpec::whole("w", uint8, &[2, 4]) }, &[2, 3, 0, 1, 6, 7, 4, 5])
        .unwrap();
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let location = Location::storage(&storage, "p");
    save_at(&context, &state, &location, None, &SaveOptions::default()).unwrap();
    let read = Checkpoint::open_at(&context, &location).unwrap().read("w").unwrap();
    assert_eq!(read.bytes(), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn grid_shards_are_placed_and_checked() {
    let shard = GridShard::at(&[3, 4], 1, &[(0, 2, 5), (2, 1, 3)]).unwrap();
    assert_eq!((&shard.global_shape[..], &shard.offsets[..]), (&[5, 3, 12][..], &[2, 0, 4][..]));
    assert_eq!(shard.fragments, Some(vec![5, 1, 3]));
    assert_eq!(shard.pieces().unwrap(), [piece(&[2, 0, 4], &[1, 3, 4], 0)]);
    refused(GridShard::at(&[3, 4], 0, &[(0, 5, 5)]), ErrorKind::InvalidArgument, "part 5 of 5");
    let wide = GridShard { fragments: Some(vec![5, 1, 4]), ..shard.clone() };
    refused(wide.pieces(), ErrorKind::InvalidArgument, "axis 2");
    assert!(GridShard { shape_may_differ: true, ..wide }.pieces().is_ok());
    let beyond = GridShard { fragments: None, offsets: vec![5, 0, 0], ..shard.clone() };
    refused(beyond.pieces(), ErrorKind::OutOfRange, "dimension 0");
    refused(GridShard { prepended: 0, ..shard }.pieces(), ErrorKind::InvalidArgument, "prepended");
    assert_eq!(GridShard::default().pieces().unwrap(), [piece(&[], &[], 0)]);
}

#[test]
fn flat_ranges_are_few_boxes() {
    let shard = GridShard { flat_range: Some(10..24), ..GridShard::at(&[4, 6], 0, &[]).unwrap() };
    let wanted = [piece(&[1, 4], &[1, 2], 0), piece(&[2, 0], &[2, 6], 2)];
    assert_eq!(shard.pieces().unwrap(), wanted);
    let entry = shard.flat_entry().unwrap();
    assert_eq!(entry, FlatEntry { shape: vec![1, 1, 24], offsets: vec![0, 0, 10], sizes: vec![1, 1, 14] });
    assert_eq!(flat_entry_pieces(&[4, 6], &entry).unwrap(), wanted);
    refused(flat_entry_pieces(&[4], &entry), ErrorKind::InvalidArgument, "does not fit");
    assert_eq!(overlapping_parts(7, 25, 24).unwrap(), 6..7);
    refused(overlapping_parts(2, 2, 2), ErrorKind::InvalidArgument, "part 2");
}

#[test]
fn saves_are_planned_by_the_layouts_of_a_state() {
    let (uint8, data) = (DType::from_name("uint8").unwrap(), [7u8; 6]);
    let half = Layout::new(&[2], &[], &[Placement::Shard(0)]).unwrap();
    let plans: Vec<Plan> = (0..2)
        .map(|rank| {
            let mut state = State::new();
            state.add_owned_laid_out("w", uint8, &[4, 3], (&half.clone(), rank), &data).unwrap();
            let mut planner = SavePlanner::new(&state, rank, 2, &SaveOptions::default()).unwrap();
            Plan::from_bytes(&planner.local_plan().unwrap()).unwrap()
        })
        .collect();
    let digest = |plan: &Plan| {
        let json = plan.json(10).unwrap();
        assert!(json.contains("\"kind\":\"local_save\"") && json.contains("\"form\":\"layout\""), "{json}");
        json.split("\"description_digest\":").nth(1).unwrap()[..34].to_owned()
    };
    assert_eq!(digest(&plans[0]), digest(&plans[1]));
    assert_eq!((plans[0].rank(), plans[1].rank()), (0, 1));
    let mut batch = TensorBatch::new();
    batch.add_owned_laid_out("a", uint8, &[4, 3], (&half, 0), &data).unwrap();
    batch.add_owned_laid_out("b", uint8, &[4, 3], (&half, 1), &data).unwrap(); // kept as its boxes
    batch.add("c", &[2], &[1.0f32, 2.0]).unwrap();
    let mut state = State::new();
    state.add_batch(batch).unwrap();
    let json = {
        let mut planner = SavePlanner::new(&state, 0, 2, &SaveOptions::default()).unwrap();
        Plan::from_bytes(&planner.local_plan().unwrap()).unwrap().json(10).unwrap()
    };
    let forms: Vec<&str> = json.split("\"form\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(forms, ["layout", "boxes", "whole"]);
}
