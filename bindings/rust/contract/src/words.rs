// SPDX-License-Identifier: Apache-2.0
//! Options of the contract as those of the crate. What is not known here is no option that is left out: it is wrong.

use crate::Failure;
use crate::pattern::text_of;
use serde_json::Value;
use shardwright::planning::{MatchOptions, MergeOptions};
use shardwright::{
    Cast, Cover, Format, Kind, LoadOptions, MatchOrder, Missing, Overwrite, Owner, Preset, SaveOptions, Shape,
    VerifyReplicas,
};
use std::time::Duration;

/// The texts are equal, or the wanted one holds a `*` for the part of the found one that is not fixed.
pub fn matches(wanted: &str, found: &str) -> bool {
    let Some((before, after)) = wanted.split_once('*') else { return found == wanted };
    found.len() >= before.len() + after.len() && found.starts_with(before) && found.ends_with(after)
}

/// The value of a word.
fn word<T: Copy>(value: &Value, words: &[(&str, T)]) -> Result<T, Failure> {
    let found = words.iter().find(|(word, _)| value == *word);
    found.map(|(_, value)| *value).ok_or_else(|| Failure::Wrong(format!("unknown word {value}")))
}

fn owner(value: &Value) -> Result<Owner, Failure> {
    let words = [Owner::Balanced, Owner::LowestRank, Owner::Exact, Owner::All];
    word(value, &[("balanced", words[0]), ("lowest_rank", words[1]), ("exact", words[2]), ("all", words[3])])
}

fn preset(value: &Value) -> Result<Preset, Failure> {
    word(value, &[("standard", Preset::Standard), ("default", Preset::Default), ("megatron", Preset::Megatron)])
}

fn verify_replicas(value: &Value) -> Result<VerifyReplicas, Failure> {
    word(value, &[("auto", VerifyReplicas::Auto), ("all", VerifyReplicas::All), ("off", VerifyReplicas::Off)])
}

fn missing(value: &Value) -> Result<Missing, Failure> {
    word(value, &[("error", Missing::Error), ("report", Missing::Report)])
}

fn cover(value: &Value) -> Result<Cover, Failure> {
    word(value, &[("full", Cover::Full), ("disjoint", Cover::Disjoint), ("off", Cover::Off)])
}

fn seconds(value: &Value) -> Option<Duration> {
    value.as_f64().map(Duration::from_secs_f64)
}

fn unknown(option: &str) -> Failure {
    Failure::Wrong(format!("unknown option {option}"))
}

fn pairs(words: &Value) -> impl Iterator<Item = (&String, &Value)> {
    words.as_object().into_iter().flatten()
}

/// Null = auto.
pub fn kind_of(value: &Value) -> Result<Kind, Failure> {
    let words = [("replicated", Kind::Replicated), ("sharded", Kind::Sharded), ("rank_local", Kind::RankLocal)];
    if value.is_null() { Ok(Kind::Auto) } else { word(value, &words) }
}

pub fn save_options(words: &Value) -> Result<SaveOptions, Failure> {
    let mut options = SaveOptions::default();
    for (key, value) in pairs(words) {
        match &key[..] {
            "overwrite" => {
                options.overwrite = word(value, &[("replace", Overwrite::Replace), ("refuse", Overwrite::Refuse)])?;
            }
            "owner" => options.owner = owner(value)?,
            "preset" => options.preset = preset(value)?,
            "verify_replicas" => options.verify_replicas = verify_replicas(value)?,
            "format" => options.format = word(value, &[("native", Format::Native), ("torch_dcp", Format::TorchDcp)])?,
            "deadline" => options.deadline = seconds(value),
            "kind" => {
                let pairs = value.as_array().into_iter().flatten();
                options.kind = pairs.map(|p| Ok((text_of(&p[0]), kind_of(&p[1])?))).collect::<Result<_, Failure>>()?;
            }
            "metadata" => options.metadata = pairs(value).map(|(k, v)| (k.clone(), text_of(v))).collect(),
            _ => return Err(unknown(key)),
        }
    }
    Ok(options)
}

pub fn load_options(words: &Value) -> Result<LoadOptions, Failure> {
    let mut options = LoadOptions::default();
    for (key, value) in pairs(words) {
        match &key[..] {
            "missing" => options.missing = missing(value)?,
            "cast" => options.cast = word(value, &[("error", Cast::Error), ("allow", Cast::Allow)])?,
            "shape" => options.shape = word(value, &[("error", Shape::Error), ("crop_and_pad", Shape::CropAndPad)])?,
            "preset" => options.preset = preset(value)?,
            "deadline" => options.deadline = seconds(value),
            _ => return Err(unknown(key)),
        }
    }
    Ok(options)
}

pub fn merge_options(words: &Value) -> Result<MergeOptions, Failure> {
    let mut options = MergeOptions::default();
    for (key, value) in pairs(words) {
        match &key[..] {
            "owner" => options.owner = owner(value)?,
            "preset" => options.preset = preset(value)?,
            "cover" => options.cover = cover(value)?,
            "verify_replicas" => options.verify_replicas = verify_replicas(value)?,
            _ => return Err(unknown(key)),
        }
    }
    Ok(options)
}

pub fn match_options(words: &Value) -> Result<MatchOptions, Failure> {
    let mut options = MatchOptions::default();
    for (key, value) in pairs(words) {
        match &key[..] {
            "order" => options.order = word(value, &[("wanted", MatchOrder::Wanted), ("sweep", MatchOrder::Sweep)])?,
            "cover" => options.cover = cover(value)?,
            "missing" => options.missing = missing(value)?,
            "first_replica" => options.first_replica = value == true,
            "rank" => options.rank = value.as_i64().map(|rank| rank as i32),
            _ => return Err(unknown(key)),
        }
    }
    Ok(options)
}
