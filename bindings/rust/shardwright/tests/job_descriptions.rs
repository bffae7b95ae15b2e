// SPDX-License-Identifier: Apache-2.0
//! Described jobs, and what their saves and loads would cost.

use shardwright::{DType, ErrorKind, EstimateOptions, JobDescription, Kind, NodeExchange, Owner, Plan};
use std::time::Duration;

const HALVES: &str = r#"{"schema": 1, "meshes": {"m": {"axes": {"dp": 2}}},
    "tensors": [{"name": "w", "dtype": "float32", "shape": [8, 4], "placements": {"dp": "Shard(0)"}}]}"#;

#[test]
fn saves_and_loads_are_estimated() {
    let job = JobDescription::new(HALVES).unwrap();
    assert_eq!(job.rank_count(), 2);
    let options = EstimateOptions::new().owner(Owner::LowestRank).rank_bytes_per_second(1000);
    let estimate = job.estimate_save(&options).unwrap();
    assert!(!estimate.is_load && estimate.rank_count == 2 && estimate.json.contains("\"schema\":1"));
    let (stored, bytes) = (estimate.stored, estimate.bytes);
    assert_eq!((stored.tensor_count, stored.chunk_count, stored.file_count, stored.byte_size), (1, 2, 2, 128));
    assert_eq!((bytes.min, bytes.max, bytes.max_rank, bytes.total), (64, 64, 0, 128));
    assert_eq!((&estimate.per_rank.operations[..], &estimate.per_rank.bytes[..]), (&[1, 1][..], &[64, 64][..]));
    let time = estimate.time.unwrap();
    assert_eq!((time.span, time.is_limited_by_rank), (Duration::from_millis(64), true));
    assert!(estimate.plan_bytes > 0 && estimate.tensors[0].chunks.is_empty());
    let listed = job.estimate_save(&options.clone().chunks(true)).unwrap();
    let group = &listed.tensors[0];
    assert_eq!((&group.first[..], group.count, group.dtype, group.kind), ("w", 1, DType::FLOAT32, Kind::Sharded));
    assert_eq!((&group.shape[..], group.byte_size, group.chunk_count), (&[8, 4][..], 128, 2));
    let chunk = &group.chunks[1];
    assert_eq!((&chunk.offsets[..], &chunk.sizes[..], chunk.rank, chunk.holders), (&[4, 0][..], &[4, 4][..], 1, 1));
    let target = JobDescription::new(r#"{"schema": 1, "ranks": 4, "rules": [{"match": "*"}]}"#).unwrap();
    let wanted = job.lay_out(&target).unwrap();
    let load = job.estimate_load(Some(&wanted), &EstimateOptions::default()).unwrap();
    assert!(load.is_load && load.time.is_none() && load.plan_bytes == 0);
    assert_eq!(load.per_rank.operations, [2, 2, 2, 2]);
    assert_eq!(job.estimate_load(None, &EstimateOptions::default()).unwrap().per_rank.operations, [1, 1]);
    assert_eq!((estimate.sent_bytes.total, estimate.per_rank.sent_bytes.len()), (0, 0));
    // Half of 128 bytes is read by a rank of each machine; the other three get it from there.
    let pairs = EstimateOptions::new().ranks_per_node(2).exchange(NodeExchange::Always);
    let load = job.estimate_load(Some(&wanted), &pairs).unwrap();
    assert_eq!((load.bytes.total, load.received_bytes.total, load.sent_bytes.total), (128, 128, 128));
    let ranks = &load.per_rank;
    assert_eq!((ranks.received_bytes[3], ranks.sent_bytes[3], ranks.shared_bytes[3]), (32, 32, 64));
    let alone = job.estimate_load(None, &EstimateOptions::new().exchange("always".parse().unwrap())).err().unwrap();
    assert_eq!(alone.kind(), ErrorKind::InvalidArgument);
    assert!(alone.to_string().contains("exchange") && alone.to_string().contains("ranks_per_node"), "{alone}");
    let plans = job.load_plans(Some(&wanted), &EstimateOptions::default()).unwrap();
    assert_eq!(plans.len(), 4);
    Plan::from_bytes(&plans[3]).unwrap();
    let json = job.json().unwrap();
    assert_eq!(JobDescription::new(&json).unwrap().json().unwrap(), json);
    Plan::from_bytes(&job.save_plan(&options).unwrap()).unwrap();
}

#[test]
fn what_is_wrong_says_where() {
    let error = JobDescription::new("{\"schema\": 1,\n \"mesh\": 1}").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("line 2, column 2"), "{error}");
}
