// SPDX-License-Identifier: Apache-2.0
//! The steps that plan by descriptions: layouts, shards of grids, entries, merges, global plans.

use crate::Failure;
use crate::pattern::{numbers, text_of};
use crate::words::{kind_of, match_options, merge_options};
use serde_json::{Value, json};
use shardwright::global_plan::{self, Description, GlobalPlan};
use shardwright::planning::{self, DescribeOptions, Described, Digest, Entry, EntryBatch, HeldShards, NOT_KEPT};
use shardwright::{DType, GridShard, Layout, Piece, Placement, Plan};
use std::collections::HashMap;

type Outcome<T> = Result<T, Failure>;
/// Bytes that the steps keep by id.
pub type Plans = HashMap<String, Vec<u8>>;

/// What the planning steps of a scenario have made, by id.
#[derive(Default)]
pub struct PlanningSteps {
    layouts: HashMap<String, Layout>,
    described: HashMap<String, Description>,
    global_plans: HashMap<String, GlobalPlan>,
}

fn same(found: Value, wanted: &Value, what: &str) -> Outcome<()> {
    if found == *wanted { Ok(()) } else { Err(Failure::Wrong(format!("{what}: found {found}, expected {wanted}"))) }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// An array of numbers of any width.
fn values<T: TryFrom<i64>>(value: &Value) -> Vec<T> {
    numbers(value).into_iter().filter_map(|n| T::try_from(n).ok()).collect()
}

fn hex(bytes: &[u8]) -> Value {
    json!(bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())
}

fn open(plans: &Plans, id: &Value) -> Outcome<Plan> {
    Ok(Plan::from_bytes(&plans[&text_of(id)])?)
}

fn keep(plans: &mut Plans, ids: &Value, first: Vec<u8>, others: Vec<Vec<u8>>) -> Outcome<()> {
    if ids.is_null() {
        return Ok(());
    }
    same(json!(1 + others.len()), &json!(list(ids).count()), "parts")?;
    plans.extend(list(ids).map(text_of).zip([first].into_iter().chain(others)));
    Ok(())
}

// ---- layouts ----

fn placement_of(value: &Value) -> Outcome<Placement> {
    let at = |index: usize| number(&value[index]) as i32;
    match value.as_str().or(value[0].as_str()) {
        Some("replicate") => Ok(Placement::Replicate),
        Some("flat") => Ok(Placement::Flat),
        Some("shard") => Ok(Placement::Shard(at(1))),
        Some("strided_shard") => Ok(Placement::StridedShard { dim: at(1), factor: at(2) }),
        _ => Err(Failure::Wrong(format!("unknown placement {value}"))),
    }
}

fn layout_of(step: &Value) -> Outcome<Layout> {
    let (mesh, ranks): (Vec<i64>, Vec<i32>) = (values(&step["mesh"]), values(&step["ranks"]));
    if step["tensor_map"].is_array() {
        let map: Vec<Vec<i32>> = list(&step["tensor_map"]).map(values).collect();
        let map: Vec<&[i32]> = map.iter().map(Vec::as_slice).collect();
        return Ok(Layout::with_tensor_map(&mesh, &ranks, &[], &map)?);
    }
    let placements = list(&step["placements"]).map(placement_of).collect::<Outcome<Vec<_>>>()?;
    Ok(Layout::new(&mesh, &ranks, &placements)?)
}

fn pieces_json(pieces: &[Piece]) -> Value {
    pieces.iter().map(|piece| json!([piece.offsets, piece.sizes, piece.local_offset])).collect()
}

fn check_pieces(layout: &Layout, step: &Value) -> Outcome<()> {
    let shape = numbers(&step["shape"]);
    for (rank, wanted) in list(&step["expected"]).enumerate() {
        let what = format!("rank {rank}");
        same(pieces_json(&layout.pieces(&shape, rank as i32)?), wanted, &what)?;
        same(json!(layout.local_shape(&shape, rank as i32)?), &step["local_shapes"][rank], &what)?;
    }
    Ok(())
}

fn check_grid(step: &Value) -> Outcome<()> {
    let places: Vec<(i64, i64, i64)> =
        list(&step["places"]).map(|place| (number(&place[0]), number(&place[1]), number(&place[2]))).collect();
    let mut shard = GridShard::at(&numbers(&step["local_shape"]), number(&step["prepended"]) as usize, &places)?;
    same(json!([shard.global_shape, shard.offsets]), &json!([step["global_shape"], step["offsets"]]), "place")?;
    if let [begin, end] = numbers(&step["flat_range"])[..] {
        shard.flat_range = Some(begin..end);
    }
    same(pieces_json(&shard.pieces()?), &step["expected"], "pieces")
}

// ---- descriptions ----

/// The `entries` of a step; boxes that are not listed are the whole tensor, or those of its layout.
fn batch_of(step: &Value) -> Outcome<EntryBatch> {
    let mut batch = EntryBatch::new();
    for given in list(&step["entries"]) {
        let [name, path, attributes] = ["name", "path", "attributes"].map(|key| text_of(&given[key]));
        let shape = numbers(&given["shape"]);
        let entry = Entry {
            name: &name,
            dtype: given["dtype"].as_str().map(DType::from_name).transpose()?,
            shape: &shape,
            kind: kind_of(&given["kind"])?,
            object_size: number(&given["size"]) as u64,
            path: &path,
            attributes: attributes.as_bytes(),
            digest: match given["content"].as_str() {
                Some(content) => planning::content_digest(content.as_bytes())?,
                None => Digest::default(),
            },
        };
        if given["boxes"].is_array() {
            let boxes = list(&given["boxes"]).map(|each| (numbers(&each[0]), numbers(&each[1])));
            batch.add_boxes(&entry, boxes)?;
        } else if given["layout"].is_string() {
            batch.add_laid_out(&entry);
        } else {
            batch.add(&entry);
        }
    }
    if step["order"].is_array() {
        batch.set_order(values(&step["order"]));
    }
    if step["secondary"].is_array() {
        let marked: Vec<usize> = values(&step["secondary"]);
        batch.set_secondary((0..batch.box_count()).map(|i| marked.contains(&i)).collect());
    }
    Ok(batch)
}

fn describe_options(step: &Value) -> Outcome<DescribeOptions> {
    let pair = |pair: &Value| Ok((text_of(&pair[0]), kind_of(&pair[1])?));
    Ok(DescribeOptions::new()
        .kind(if step["kind"] == "merged_save" { Described::MergedSave } else { Described::LocalSave })
        .rank(number(&step["rank"]) as i32)
        .world_size(number(&step["world_size"]) as i32)
        .kinds(list(&step["kinds"]).map(pair).collect::<Outcome<_>>()?)
        .agreement(text_of(&step["agreement"])))
}

fn joined(values: &[i64]) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// One text per box: name, dtype, kind, offsets, sizes, number.
fn box_lines(plan: &Plan) -> Outcome<Vec<String>> {
    let batch = planning::entries(plan)?;
    let boxes = batch.numbers().unwrap_or_default();
    let mut lines = Vec::new();
    for (i, entry) in batch.iter().enumerate() {
        let dtype = entry.dtype.map_or("object", DType::name);
        let kind = ["auto", "replicated", "sharded", "rank_local"][entry.kind as usize];
        for (number, (offsets, sizes)) in boxes[batch.box_range(i)].iter().zip(batch.boxes(i)) {
            let (offsets, sizes, number) = (joined(offsets), joined(sizes), format!("#{number}"));
            let mut words = vec![entry.name, dtype, kind, &offsets, &sizes, &number];
            words.retain(|word| !word.is_empty());
            lines.push(words.join(" "));
        }
    }
    Ok(lines)
}

/// name#number of each box that the rank of the plan keeps; `numbers`: what a merge says of its boxes.
fn kept_names(plan: &[u8], numbers: &[u32]) -> Outcome<Vec<String>> {
    let batch = planning::entries(&Plan::from_bytes(plan)?)?;
    same(json!(numbers.len()), &json!(batch.box_count()), "boxes")?;
    let mut names = Vec::new();
    for (i, entry) in batch.iter().enumerate() {
        let kept = numbers[batch.box_range(i)].iter().filter(|number| **number != NOT_KEPT);
        names.extend(kept.map(|number| format!("{}#{number}", entry.name)));
    }
    Ok(names)
}

fn items_of(plan: &Plan) -> Outcome<Value> {
    let json: Value = serde_json::from_str(&plan.json(1 << 31)?).map_err(|error| Failure::Wrong(error.to_string()))?;
    match json["items"].as_array() {
        Some(items) if !items.is_empty() => Ok(json!(items)),
        _ => Err(Failure::Wrong(String::from("a plan without items"))),
    }
}

fn merge(plans: &mut Plans, step: &Value) -> Outcome<()> {
    let given: Vec<&Vec<u8>> = list(&step["plans"]).map(|id| &plans[&text_of(id)]).collect();
    let merged = planning::merge(&given, &merge_options(&step["options"])?)?;
    if step["digest"].is_string() {
        same(hex(&planning::digest(&Plan::from_bytes(&merged.plan)?)?), &step["digest"], "digest")?;
    }
    if step["kept"].is_array() {
        let kept = given.iter().zip(&merged.kept).map(|(plan, numbers)| kept_names(plan, numbers));
        same(json!(kept.collect::<Outcome<Vec<_>>>()?), &step["kept"], "kept")?;
    }
    if step["id"].is_string() {
        plans.insert(text_of(&step["id"]), merged.plan);
    }
    Ok(())
}

fn check_match(plans: &Plans, step: &Value) -> Outcome<()> {
    let stored = open(plans, &step["stored"])?;
    let found = planning::match_entries(&stored, &batch_of(step)?, &match_options(&step["options"])?)?;
    same(json!(found.wanted), &step["wanted"], "wanted")?;
    same(json!(found.chunks), &step["chunks"], "chunks")?;
    same(json!(found.wanted_offsets), &step["wanted_offsets"], "wanted_offsets")?;
    same(json!(found.stored_offsets), &step["stored_offsets"], "stored_offsets")?;
    same(json!(found.sizes), &step["sizes"], "sizes")?;
    same(json!(found.entry_begins), &step["entry_begins"], "entry_begins")
}

fn check_owners(step: &Value) -> Outcome<()> {
    let (weights, set_offsets): (Vec<u64>, Vec<u64>) = (values(&step["weights"]), values(&step["set_offsets"]));
    let (sets, holders): (Vec<u32>, Vec<i32>) = (values(&step["sets"]), values(&step["holders"]));
    let marks: Vec<bool> = numbers(&step["secondary"]).into_iter().map(|mark| mark != 0).collect();
    let shards = HeldShards {
        weights: &weights,
        sets: &sets,
        set_offsets: &set_offsets,
        holders: &holders,
        secondary: step["secondary"].is_array().then_some(&marks[..]),
    };
    same(json!(planning::owners(&shards, number(&step["rank_count"]) as i32)?), &step["expected"], "owners")
}

impl PlanningSteps {
    /// Runs the step; false when it is none of these.
    pub fn run(&mut self, plans: &mut Plans, step: &Value) -> Outcome<bool> {
        let id = text_of(&step["id"]);
        match step["op"].as_str().unwrap_or_default() {
            "layout" => drop(self.layouts.insert(id, layout_of(step)?)),
            "pieces" => check_pieces(&self.layouts[&text_of(&step["layout"])], step)?,
            "grid" => check_grid(step)?,
            "describe" => drop(plans.insert(id, planning::describe(&batch_of(step)?, &describe_options(step)?)?)),
            "merge" => merge(plans, step)?,
            "entries" => same(json!(box_lines(&open(plans, &step["plan"])?)?), &step["expected"], "entries")?,
            "same_entries" => {
                let [first, second] = [0, 1].map(|i| open(plans, &step["plans"][i]).and_then(|plan| box_lines(&plan)));
                same(json!(first?), &json!(second?), "entries")?;
            }
            "same_items" => {
                let [first, second] = [0, 1].map(|i| open(plans, &step["plans"][i]).and_then(|plan| items_of(&plan)));
                same(first?, &second?, "items")?;
            }
            "plan_digest" => {
                same(hex(&planning::digest(&open(plans, &step["plan"])?)?), &step["expected"], "digest")?;
            }
            "match" => check_match(plans, step)?,
            "plan_owners" => check_owners(step)?,
            "content_digest" => {
                let found = planning::content_digest(text_of(&step["text"]).as_bytes())?;
                same(hex(&found), &step["expected"], "digest")?;
            }
            _ => return self.run_global_plan(plans, step, id),
        }
        Ok(true)
    }

    fn run_global_plan(&mut self, plans: &mut Plans, step: &Value, id: String) -> Outcome<bool> {
        let plan = || &self.global_plans[&text_of(&step["plan"])];
        let generation = text_of(&step["generation"]);
        match step["op"].as_str().unwrap_or_default() {
            "rank_description" => drop(self.described.insert(id, self.describe(step)?)),
            "described_global_plan" => drop(self.global_plans.insert(id, self.make_plan(step)?)),
            "write_list" => {
                let list = plan().write_list(number(&step["rank"]) as i32, &generation, None)?;
                plans.insert(id, list);
            }
            "expand" => {
                let expanded = plan().expand(&generation)?;
                keep(plans, &step["ids"], expanded.plan, expanded.write_lists)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn describe(&self, step: &Value) -> Outcome<Description> {
        let layouts: Vec<Option<&Layout>> =
            list(&step["entries"]).map(|entry| entry["layout"].as_str().map(|id| &self.layouts[id])).collect();
        let described = global_plan::describe(&batch_of(step)?, &layouts, &describe_options(step)?)?;
        if step["digest"].is_string() {
            same(hex(&described.digest), &step["digest"], "digest")?;
        }
        Ok(described)
    }

    fn make_plan(&self, step: &Value) -> Outcome<GlobalPlan> {
        let all: Vec<&Description> = list(&step["descriptions"]).map(|id| &self.described[&text_of(id)]).collect();
        let digests: Vec<Digest> = all.iter().map(|each| each.digest).collect();
        let chosen = global_plan::representatives(&digests)?;
        same(json!(chosen), &step["representatives"], "representatives")?;
        let descriptions: Vec<&[u8]> = chosen.iter().map(|rank| &all[*rank as usize].description[..]).collect();
        let parts: Vec<&[u8]> = all.iter().map(|each| &each.part[..]).collect();
        let plan = GlobalPlan::new(&digests, &descriptions, &parts, &merge_options(&step["options"])?)?;
        if step["digest"].is_string() {
            same(hex(&plan.digest()?), &step["digest"], "digest")?;
            same(json!(plan.rank_bytes()?), &step["rank_bytes"], "rank_bytes")?;
        }
        for (name, owners) in step["owners"].as_object().into_iter().flatten() {
            same(json!(plan.owners(name)?), owners, name)?;
        }
        let totals: Value = serde_json::from_str(&plan.json()?).map_err(|error| Failure::Wrong(error.to_string()))?;
        for (key, count) in step["totals"].as_object().into_iter().flatten() {
            same(totals[key].clone(), count, key)?;
        }
        Ok(plan)
    }
}
