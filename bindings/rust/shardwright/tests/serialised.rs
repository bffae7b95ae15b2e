// SPDX-License-Identifier: Apache-2.0
//! The feature `serde`: options from configurations, infos and summaries as data.
#![cfg(feature = "serde")]

use shardwright::{
    Cast, Checkpoint, Context, DType, Location, Overwrite, Owner, SaveOptions, State, Storage, Summary, TensorInfo,
    save_at,
};

#[test]
fn options_are_read_from_a_configuration() {
    let text = r#"{"overwrite": "refuse", "owner": "lowest_rank", "kind": [["opt.*", "rank_local"]], "threads": 2}"#;
    let options: SaveOptions = serde_json::from_str(text).unwrap();
    assert_eq!((options.overwrite, options.owner, options.threads), (Overwrite::Refuse, Owner::LowestRank, 2));
    assert_eq!(options.kind[0].1.word(), "rank_local");
    assert!(options.digests); // what is left out has its default
    let again: SaveOptions = serde_json::from_str(&serde_json::to_string(&options).unwrap()).unwrap();
    assert_eq!(format!("{options:?}"), format!("{again:?}"));
}

#[test]
fn what_is_no_option_or_word_is_refused() {
    let unknown = serde_json::from_str::<SaveOptions>(r#"{"overwite": "refuse"}"#).unwrap_err().to_string();
    assert!(unknown.contains("overwite") && unknown.contains("overwrite"), "{unknown}");
    assert!(serde_json::from_str::<Cast>("\"maybe\"").is_err());
    let error = "maybe".parse::<Cast>().unwrap_err();
    assert!(error.message().contains("error, allow"), "{error}");
    assert!(serde_json::from_str::<DType>("\"float33\"").is_err());
}

#[test]
fn infos_and_summaries_are_data() {
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let location = Location::storage(&storage, "p");
    let mut state = State::new();
    state.add("w", &[2, 2], &[1.0f32; 4]).unwrap();
    let report = save_at(&context, &state, &location, None, &SaveOptions::new()).unwrap();
    let summary = report.summary().unwrap();
    let again: Summary = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
    assert_eq!(again, summary);
    let infos = Checkpoint::open_at(&context, &location).unwrap().tensors().unwrap();
    let value = serde_json::to_value(&infos).unwrap();
    assert_eq!((&value[0]["name"], &value[0]["dtype"]), (&serde_json::json!("w"), &serde_json::json!("float32")));
    let again: Vec<TensorInfo> = serde_json::from_value(value).unwrap();
    assert_eq!((again[0].dtype, &again[0].shape[..]), (infos[0].dtype, &[2, 2][..]));
}
