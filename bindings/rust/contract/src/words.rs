// SPDX-License-Identifier: Apache-2.0
//! Options of the contract as those of the crate. What is not known here is no option that is left out: it is wrong.

use crate::Failure;
use crate::pattern::text_of;
use serde_json::Value;
use shardwright::planning::{MatchOptions, MergeOptions};
use shardwright::{ConvertOptions, Error, Kind, LoadOptions, SaveOptions};
use std::str::FromStr;
use std::time::Duration;

/// The texts are equal, or the wanted one holds a `*` for the part of the found one that is not fixed.
pub fn matches(wanted: &str, found: &str) -> bool {
    let Some((before, after)) = wanted.split_once('*') else { return found == wanted };
    found.len() >= before.len() + after.len() && found.starts_with(before) && found.ends_with(after)
}

/// The value of a word.
fn word<T: FromStr<Err = Error>>(value: &Value) -> Result<T, Failure> {
    let word = value.as_str().unwrap_or_default();
    word.parse().map_err(|error| Failure::Wrong(format!("unknown word {value}: {error}")))
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
    if value.is_null() { Ok(Kind::Auto) } else { word(value) }
}

pub fn save_options(words: &Value) -> Result<SaveOptions, Failure> {
    let mut options = SaveOptions::default();
    for (key, value) in pairs(words) {
        match &key[..] {
            "overwrite" => {
                options.overwrite = word(value)?;
            }
            "owner" => options.owner = word(value)?,
            "preset" => options.preset = word(value)?,
            "verify_replicas" => options.verify_replicas = word(value)?,
            "format" => options.format = word(value)?,
            "common" => options.common = word(value)?,
            "max_shard_size" => options.max_shard_size = value.as_u64().unwrap_or(0),
            "hold" => options.hold = value.as_bool().unwrap_or(false),
            "priority" => options.priority = word(value)?,
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
            "missing" => options.missing = word(value)?,
            "cast" => options.cast = word(value)?,
            "shape" => options.shape = word(value)?,
            "read_path" => options.read_path = word(value)?,
            "exchange" => options.exchange = word(value)?,
            "preset" => options.preset = word(value)?,
            "deadline" => options.deadline = seconds(value),
            _ => return Err(unknown(key)),
        }
    }
    Ok(options)
}

pub fn convert_options(words: &Value) -> Result<ConvertOptions, Failure> {
    let mut options = ConvertOptions::default();
    for (key, value) in pairs(words) {
        match &key[..] {
            "format" => options.format = word(value)?,
            "overwrite" => options.overwrite = word(value)?,
            "max_shard_size" => options.max_shard_size = value.as_u64().unwrap_or(0),
            _ => return Err(unknown(key)),
        }
    }
    Ok(options)
}

pub fn merge_options(words: &Value) -> Result<MergeOptions, Failure> {
    let mut options = MergeOptions::default();
    for (key, value) in pairs(words) {
        match &key[..] {
            "owner" => options.owner = word(value)?,
            "preset" => options.preset = word(value)?,
            "cover" => options.cover = word(value)?,
            "verify_replicas" => options.verify_replicas = word(value)?,
            _ => return Err(unknown(key)),
        }
    }
    Ok(options)
}

pub fn match_options(words: &Value) -> Result<MatchOptions, Failure> {
    let mut options = MatchOptions::default();
    for (key, value) in pairs(words) {
        match &key[..] {
            "order" => options.order = word(value)?,
            "cover" => options.cover = word(value)?,
            "missing" => options.missing = word(value)?,
            "first_replica" => options.first_replica = value == true,
            "rank" => options.rank = value.as_i64().map(|rank| rank as i32),
            _ => return Err(unknown(key)),
        }
    }
    Ok(options)
}
