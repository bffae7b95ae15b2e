// SPDX-License-Identifier: Apache-2.0
//! Described jobs, and what their saves and loads would cost.

use shardwright::{EstimateOptions, JobDescription, Owner, Plan, StatusCode};

const HALVES: &str = r#"{"schema": 1, "meshes": {"m": {"axes": {"dp": 2}}},
    "tensors": [{"name": "w", "dtype": "float32", "shape": [8, 4], "placements": {"dp": "Shard(0)"}}]}"#;

#[test]
fn saves_and_loads_are_estimated() {
    let job = JobDescription::new(HALVES).unwrap();
    assert_eq!(job.rank_count(), 2);
    let options = EstimateOptions { owner: Owner::LowestRank, rank_bytes_per_second: 1000, ..Default::default() };
    let estimate = job.estimate_save(&options).unwrap();
    assert!(estimate.contains("\"writes\":[1,1]") && estimate.contains("\"limit\":\"rank\""), "{estimate}");
    let listed = job.estimate_save(&EstimateOptions { chunks: true, ..options }).unwrap();
    assert!(listed.contains("\"chunk_list\"") && !estimate.contains("\"chunk_list\""), "{listed}");
    let target = JobDescription::new(r#"{"schema": 1, "ranks": 4, "rules": [{"match": "*"}]}"#).unwrap();
    let wanted = job.lay_out(&target).unwrap();
    let load = job.estimate_load(Some(&wanted), &EstimateOptions::default()).unwrap();
    assert!(load.contains("\"reads\":[2,2,2,2]"), "{load}");
    assert!(job.estimate_load(None, &EstimateOptions::default()).unwrap().contains("\"reads\":[1,1]"));
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
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert!(error.to_string().contains("line 2, column 2"), "{error}");
}
