// SPDX-License-Identifier: Apache-2.0
//! The JSON texts that the library gives, as typed structs take them apart.

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use serde_json::Value;
use std::str::FromStr;

/// The value of a whole text.
pub(crate) fn read(json: &str) -> Result<Value> {
    serde_json::from_str(json)
        .map_err(|e| Error::new(ErrorKind::Internal, format!("the library gave a text that is no JSON: {e}")))
}

/// One JSON object. What is not there is empty, 0 or false: another release of the library may leave it out.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'v>(pub &'v Value);

impl<'v> Facts<'v> {
    pub fn has(self, key: &str) -> bool {
        !self.0[key].is_null()
    }

    pub fn text(self, key: &str) -> String {
        self.0[key].as_str().unwrap_or_default().to_owned()
    }

    pub fn number(self, key: &str) -> u64 {
        self.0[key].as_u64().unwrap_or_default()
    }

    /// A rank, or -1 where there is none.
    pub fn rank(self, key: &str) -> i32 {
        self.0[key].as_i64().and_then(|rank| i32::try_from(rank).ok()).unwrap_or_default()
    }

    pub fn real(self, key: &str) -> f64 {
        self.0[key].as_f64().unwrap_or_default()
    }

    pub fn flag(self, key: &str) -> bool {
        self.0[key].as_bool().unwrap_or_default()
    }

    /// A value that has words in all languages.
    pub fn word<T: FromStr<Err = Error>>(self, key: &str) -> Result<T> {
        self.text(key).parse()
    }

    pub fn dtype(self, key: &str) -> Result<DType> {
        DType::from_name(&self.text(key))
    }

    pub fn object(self, key: &str) -> Facts<'v> {
        Facts(&self.0[key])
    }

    pub fn list(self, key: &str) -> impl Iterator<Item = Facts<'v>> {
        self.0[key].as_array().into_iter().flatten().map(Facts)
    }

    pub fn texts(self, key: &str) -> Vec<String> {
        self.list(key).filter_map(|each| each.0.as_str().map(str::to_owned)).collect()
    }

    pub fn numbers(self, key: &str) -> Vec<u64> {
        self.object(key).values()
    }

    /// The numbers of a list.
    pub fn values(self) -> Vec<u64> {
        self.0.as_array().into_iter().flatten().map(|each| each.as_u64().unwrap_or_default()).collect()
    }

    /// Keys and values in their order.
    pub fn pairs(self) -> impl Iterator<Item = (&'v String, Facts<'v>)> {
        self.0.as_object().into_iter().flatten().map(|(key, value)| (key, Facts(value)))
    }
}
