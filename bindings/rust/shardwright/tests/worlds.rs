// SPDX-License-Identifier: Apache-2.0
//! Described jobs and their prices.

use shardwright::{Owner, Plan, PriceOptions, StatusCode, World};

const HALVES: &str = r#"{"schema": 1, "meshes": {"m": {"axes": {"dp": 2}}},
    "tensors": [{"name": "w", "dtype": "float32", "shape": [8, 4], "placements": {"dp": "Shard(0)"}}]}"#;

#[test]
fn saves_and_loads_are_priced() {
    let world = World::new(HALVES).unwrap();
    assert_eq!(world.rank_count(), 2);
    let options = PriceOptions { owner: Owner::LowestRank, rank_bytes_per_second: 1000, ..Default::default() };
    let price = world.price_save(&options).unwrap();
    assert!(price.contains("\"writes\":[1,1]") && price.contains("\"limit\":\"rank\""), "{price}");
    let target = World::new(r#"{"schema": 1, "ranks": 4, "rules": [{"match": "*"}]}"#).unwrap();
    let wanted = world.lay_out(&target).unwrap();
    let load = world.price_load(Some(&wanted), &PriceOptions::default()).unwrap();
    assert!(load.contains("\"reads\":[2,2,2,2]"), "{load}");
    assert!(world.price_load(None, &PriceOptions::default()).unwrap().contains("\"reads\":[1,1]"));
    let plans = world.load_plans(Some(&wanted), &PriceOptions::default()).unwrap();
    assert_eq!(plans.len(), 4);
    Plan::from_bytes(&plans[3]).unwrap();
    let json = world.json().unwrap();
    assert_eq!(World::new(&json).unwrap().json().unwrap(), json);
    Plan::from_bytes(&world.save_plan(&options).unwrap()).unwrap();
}

#[test]
fn what_is_wrong_says_where() {
    let error = World::new("{\"schema\": 1,\n \"mesh\": 1}").err().unwrap();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert!(error.to_string().contains("line 2, column 2"), "{error}");
}
