// SPDX-License-Identifier: Apache-2.0
//! The bytes of tensors by pattern, and texts that may be written as a repetition.

use serde_json::Value;
use shardwright::DType;

/// A JSON string, or {"repeat": text, "count": n}.
pub fn text_of(value: &Value) -> String {
    match (value.as_str(), value["repeat"].as_str()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(text)) => text.repeat(value["count"].as_u64().unwrap_or(0) as usize),
        _ => String::new(),
    }
}

pub fn numbers(value: &Value) -> Vec<i64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_i64).collect()
}

pub fn bytes_of_hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap_or(0)).collect()
}

/// Row-major bytes of a tensor of this dtype and shape: the step's hex, or by its pattern.
pub fn pattern_bytes(step: &Value, dtype: DType, shape: &[i64]) -> Vec<u8> {
    if let Some(hex) = step["hex"].as_str() {
        return bytes_of_hex(hex);
    }
    let count = shape.iter().product::<i64>() as u64;
    let size = dtype.byte_size(count);
    let seed = step["seed"].as_u64().unwrap_or(0);
    match step["pattern"].as_str().unwrap_or("bytes") {
        "zeros" => vec![0; size as usize],
        "index" => (0..count).flat_map(|i| element(dtype.name(), i)).collect(),
        _ if dtype.name() == "bool" => (0..size).map(|k| ((seed + k) % 2) as u8).collect(),
        _ => (0..size).map(|k| ((seed + 31 * k) % 251) as u8).collect(),
    }
}

fn element(dtype: &str, i: u64) -> Vec<u8> {
    match dtype {
        "float32" => (i as f32).to_le_bytes().to_vec(),
        "float64" => (i as f64).to_le_bytes().to_vec(),
        "int32" => (i as i32).to_le_bytes().to_vec(),
        _ => (i as i64).to_le_bytes().to_vec(),
    }
}

/// Moves whole-byte elements between row-major order and column order (2-d).
pub fn reorder(bytes: &[u8], shape: &[i64], to_columns: bool) -> Vec<u8> {
    let (rows, columns) = (shape[0] as usize, shape[1] as usize);
    let width = bytes.len() / (rows * columns).max(1);
    let mut out = vec![0; bytes.len()];
    for r in 0..rows {
        for c in 0..columns {
            let (row_major, column_major) = ((r * columns + c) * width, (c * rows + r) * width);
            let (from, to) = if to_columns { (row_major, column_major) } else { (column_major, row_major) };
            out[to..to + width].copy_from_slice(&bytes[from..from + width]);
        }
    }
    out
}
