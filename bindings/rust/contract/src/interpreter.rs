// SPDX-License-Identifier: Apache-2.0
//! Runs the steps of one scenario. Host memory is leaked on purpose: scenarios are few and small, and jobs, states and
//! expectations share it.

use crate::pattern::{bytes_of_hex, numbers, pattern_bytes, reorder, text_of};
use crate::planning::{PlanningSteps, Plans};
use crate::words::{convert_options, load_options, save_options};
use crate::{Failure, HostPanic, files, ranks, torch};
use serde_json::Value;
use shardwright::{
    Checkpoint, CommitCondition, Context, DType, DigestAlgorithm, Grid, HostStorage, Job, LoadPlanner, Location,
    Mapping, ObjectBatch, ObjectSpec, ObjectStat, OpenMode, Plan, RawMemory, Result, SavePlanner, Shard, State,
    Storage, TensorSpec,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Memory of one `tensor` step.
#[derive(Clone)]
struct HostTensor {
    data: &'static [std::cell::UnsafeCell<u8>],
    dtype: DType,
    shape: Vec<i64>,
    columns: bool,
    read_only: bool,
}

impl HostTensor {
    fn make(step: &Value) -> Result<HostTensor> {
        let dtype = DType::from_name(&text_of(&step["dtype"]))?;
        let shape = numbers(&step["shape"]);
        let columns = step["order"] == "column";
        let mut bytes = pattern_bytes(step, dtype, &shape);
        if columns {
            bytes = reorder(&bytes, &shape, true);
        }
        let cells: Vec<std::cell::UnsafeCell<u8>> = bytes.into_iter().map(std::cell::UnsafeCell::new).collect();
        Ok(HostTensor { data: cells.leak(), dtype, shape, columns, read_only: step["read_only"] == true })
    }

    fn memory(&self) -> RawMemory {
        RawMemory { data: self.data.as_ptr().cast_mut().cast(), size: self.data.len(), read_only: self.read_only }
    }

    fn row_major(&self) -> Vec<u8> {
        // SAFETY: no call of the library runs while a step looks at the bytes.
        let bytes: Vec<u8> = self.data.iter().map(|c| unsafe { *c.get() }).collect();
        if self.columns { reorder(&bytes, &self.shape, false) } else { bytes }
    }

    fn strides(&self) -> Vec<i64> {
        if self.columns { vec![1, self.shape[0]] } else { Vec::new() }
    }
}

/// A storage of the host whose every method panics.
struct FailingStorage;

impl HostStorage for FailingStorage {
    type Object = ();
    fn open(&self, _: &str, _: OpenMode) -> Result<()> {
        std::panic::panic_any(HostPanic)
    }
    fn stat(&self, _: &str) -> Result<ObjectStat> {
        std::panic::panic_any(HostPanic)
    }
    fn list(&self, _: &str) -> Result<Vec<(String, ObjectStat)>> {
        std::panic::panic_any(HostPanic)
    }
    fn read_at(&self, (): &(), _: u64, _: &mut [u8]) -> Result<usize> {
        std::panic::panic_any(HostPanic)
    }
    fn write_at(&self, (): &(), _: u64, _: &[u8]) -> Result<()> {
        std::panic::panic_any(HostPanic)
    }
    fn sync(&self, (): &()) -> Result<()> {
        std::panic::panic_any(HostPanic)
    }
    fn commit(&self, (): &(), _: CommitCondition) -> Result<()> {
        std::panic::panic_any(HostPanic)
    }
    fn abort(&self, (): &()) {}
    fn remove(&self, _: &str) -> Result<()> {
        std::panic::panic_any(HostPanic)
    }
}

/// Everything that a scenario has made, by id.
pub struct Interpreter {
    pub root: PathBuf,
    pub context: Context,
    tensors: HashMap<String, HostTensor>,
    /// The step that describes each state: every use makes it anew over the same memory.
    states: HashMap<String, Value>,
    storages: HashMap<String, &'static Storage>,
    checkpoints: HashMap<String, &'static Checkpoint>,
    save_planners: HashMap<String, SavePlanner<'static>>,
    load_planners: HashMap<String, LoadPlanner<'static, 'static>>,
    pub plans: Plans,
    planning: PlanningSteps,
    jobs: HashMap<String, Job>,
    last_save: String,
    last_storage: Option<&'static Storage>,
}

impl Interpreter {
    pub fn new(root: &Path) -> Interpreter {
        Interpreter {
            root: root.to_owned(),
            context: Context::shared().expect("a context"),
            tensors: HashMap::new(),
            states: HashMap::new(),
            storages: HashMap::new(),
            checkpoints: HashMap::new(),
            save_planners: HashMap::new(),
            load_planners: HashMap::new(),
            plans: Plans::new(),
            planning: PlanningSteps::default(),
            jobs: HashMap::new(),
            last_save: String::from("p"),
            last_storage: None,
        }
    }

    /// Runs one step.
    pub fn step(&mut self, step: &Value) -> std::result::Result<(), Failure> {
        if files::file_step(&self.root, step)? || self.planning.run(&mut self.plans, step)? {
            return Ok(());
        }
        let id = text_of(&step["id"]);
        match step["op"].as_str().unwrap_or_default() {
            "tensor" => drop(self.tensors.insert(id, HostTensor::make(step)?)),
            "state" => {
                self.make_state(step)?;
                self.states.insert(id, step.clone());
            }
            "storage" => self.make_storage(step, id)?,
            "save" | "load" => self.save_or_load(step)?,
            "save_ranks" | "load_ranks" => ranks::run(self, step)?,
            "save_async" | "load_async" => self.start_job(step, id)?,
            "prepare" => shardwright::prepare(&self.state(&step["state"])?)?,
            "wait" => drop(self.jobs[&text_of(&step["job"])].wait(None)?),
            "open" => {
                let rank = step["rank"].as_i64().unwrap_or(-1) as i32;
                let checkpoint = Checkpoint::open_at(&self.context, &self.location(step))?.for_rank(rank);
                self.checkpoints.insert(id, Box::leak(Box::new(checkpoint)));
            }
            "load_all" => ranks::load_all(self, step)?,
            "convert" => {
                let to = serde_json::json!({"path": step["to"], "storage": step["to_storage"]});
                let options = convert_options(&step["options"])?;
                drop(shardwright::convert(&self.location(step), &self.location(&to), &options)?);
            }
            "latest" => {
                let (run, expected) = (self.location(step), text_of(&step["expected"]));
                let (found, wanted) = (shardwright::latest(&run)?, run.join(&expected));
                if found.as_path() != wanted.as_path() {
                    return Err(Failure::Wrong(format!(
                        "expected {:?}, found {:?}",
                        wanted.as_path(),
                        found.as_path()
                    )));
                }
            }
            "names" | "ranks" | "read" | "digest" | "object" | "metadata" | "verify" | "find_damage" => {
                self.look(step)?
            }
            "expect_tensor" => self.expect_tensor(step)?,
            "torch_items" | "torch_digests" => torch::run(self, step)?,
            _ => self.plan_step(step, id)?,
        }
        Ok(())
    }

    pub fn location(&self, step: &Value) -> Location<'static> {
        let path = text_of(&step["path"]);
        match step["storage"].as_str() {
            Some(storage) => Location::storage(self.storages[storage], &path),
            None => Location::path(self.root.join(path)),
        }
    }

    /// The state of an id, as a handle of its own.
    pub fn state(&self, id: &Value) -> Result<State<'static>> {
        self.make_state(&self.states[&text_of(id)])
    }

    fn make_state(&self, step: &Value) -> Result<State<'static>> {
        let mut state = State::new();
        for entry in step["entries"].as_array().into_iter().flatten() {
            let (name, path) = (text_of(&entry["name"]), text_of(&entry["path"]));
            if let Some(tensor) = entry["tensor"].as_str() {
                self.add_tensor(&mut state, entry, (&name, &path), &self.tensors[tensor])?;
                continue;
            }
            let (kind, bytes) = match (entry["json"].as_str(), entry["hex"].as_str()) {
                (Some(text), _) => ("application/json", text.as_bytes().to_vec()),
                (None, Some(hex)) => ("application/octet-stream", bytes_of_hex(hex)),
                _ => ("application/octet-stream", vec![0; entry["zeros"].as_u64().unwrap_or(0) as usize]),
            };
            let (fragments, index) = (numbers(&entry["grid"]["fragments"]), numbers(&entry["grid"]["index"]));
            let grid = entry["grid"].is_object().then_some(Grid { fragments: &fragments, index: &index });
            let replica = entry["replica"].as_bool().unwrap_or(false);
            let mut batch = ObjectBatch::new();
            batch.add(&ObjectSpec { path: &path, grid, replica, ..ObjectSpec::flat(&name, kind) }, &bytes)?;
            state.add_objects(&batch)?;
        }
        if step["mapping"].is_null() { Ok(state) } else { state.mapped(&mapping(&step["mapping"])?) }
    }

    fn add_tensor(
        &self,
        state: &mut State<'static>,
        entry: &Value,
        (name, path): (&str, &str),
        tensor: &HostTensor,
    ) -> Result<()> {
        let strides = tensor.strides();
        let (global, offsets) = (numbers(&entry["shape"]), numbers(&entry["offsets"]));
        let sizes = if entry["sizes"].is_array() { numbers(&entry["sizes"]) } else { tensor.shape.clone() };
        let boxes = [(&offsets[..], &sizes[..], 0)];
        let shard = entry["shape"].is_array().then_some(Shard { global_shape: &global, boxes: &boxes });
        let whole = TensorSpec::whole(name, tensor.dtype, &tensor.shape);
        let (fragments, index) = (numbers(&entry["grid"]["fragments"]), numbers(&entry["grid"]["index"]));
        let grid = entry["grid"].is_object().then_some(Grid { fragments: &fragments, index: &index });
        let replica = entry["replica"].as_bool().unwrap_or(false);
        let cut = numbers(&entry["fragments"]);
        let spec = TensorSpec { path, strides: &strides, shard, grid, fragments: &cut, replica, ..whole };
        // SAFETY: the memory is leaked.
        unsafe { state.add_raw(&spec, tensor.memory()) }
    }

    fn make_storage(&mut self, step: &Value, id: String) -> Result<()> {
        let storage = if step["kind"] == "memory" { Storage::memory()? } else { Storage::host(FailingStorage)? };
        let storage: &'static Storage = Box::leak(Box::new(storage));
        self.last_storage = Some(storage);
        self.storages.insert(id, storage);
        Ok(())
    }

    pub fn note_save(&mut self, step: &Value) {
        self.last_save = text_of(&step["path"]);
    }

    fn save_or_load(&mut self, step: &Value) -> std::result::Result<(), Failure> {
        let (mut state, location) = (self.state(&step["state"])?, self.location(step));
        if step["op"] == "save" {
            self.note_save(step);
            shardwright::save_at(&self.context, &state, &location, None, &save_options(&step["options"])?)?;
        } else {
            shardwright::load_at(&self.context, &mut state, &location, None, &load_options(&step["options"])?)?;
        }
        Ok(())
    }

    fn start_job(&mut self, step: &Value, id: String) -> std::result::Result<(), Failure> {
        let (state, location) = (self.state(&step["state"])?, self.location(step));
        let job = if step["op"] == "save_async" {
            self.note_save(step);
            shardwright::save_async(state, &location, &save_options(&step["options"])?)?
        } else {
            shardwright::load_async(state, &location, &load_options(&step["options"])?)?
        };
        self.jobs.insert(id, job);
        Ok(())
    }

    fn look(&self, step: &Value) -> std::result::Result<(), Failure> {
        let checkpoint = self.checkpoints[&text_of(&step["checkpoint"])];
        let (wanted, found) = match step["op"].as_str().unwrap_or_default() {
            "names" => {
                let mut wanted: Vec<String> = step["expected"].as_array().into_iter().flatten().map(text_of).collect();
                let mut found = checkpoint.keys()?;
                wanted.sort();
                found.sort();
                (format!("{wanted:?}"), format!("{found:?}"))
            }
            "ranks" => (
                step["expected"].to_string(),
                serde_json::json!(checkpoint.ranks(&text_of(&step["name"]))?).to_string(),
            ),
            "read" => {
                let read = checkpoint.read_box(
                    &text_of(&step["tensor"]),
                    &numbers(&step["offsets"]),
                    &numbers(&step["sizes"]),
                )?;
                let hex: String = read.bytes().iter().map(|b| format!("{b:02x}")).collect();
                (step["hex"].as_str().map_or(hex.clone(), str::to_owned), hex)
            }
            "digest" => (text_of(&step["expected"]), digest(checkpoint, &step["tensor"], &step["algorithm"])?),
            "object" => {
                let objects = checkpoint.objects()?;
                let object = objects.get(&text_of(&step["name"])).ok_or(Failure::Wrong(String::from("no object")))?;
                let bytes = step["hex"].as_str().map_or(text_of(&step["text"]).into_bytes(), bytes_of_hex);
                (
                    format!("{} {bytes:?}", text_of(&step["content_type"])),
                    format!("{} {:?}", object.content_type, object.bytes),
                )
            }
            "metadata" => {
                let wanted = save_options(&serde_json::json!({"metadata": step["expected"]}))?.metadata;
                (format!("{wanted:?}"), format!("{:?}", checkpoint.metadata()))
            }
            "find_damage" => {
                let found = checkpoint.find_damage(step["deep"] == true)?.findings().len();
                (step["expected"].to_string(), found.to_string())
            }
            _ => return Ok(checkpoint.verify(step["deep"] == true).map(drop)?),
        };
        if wanted == found { Ok(()) } else { Err(Failure::Wrong(format!("expected {wanted}, found {found}"))) }
    }

    fn expect_tensor(&self, step: &Value) -> std::result::Result<(), Failure> {
        let tensor = &self.tensors[&text_of(&step["id"])];
        if pattern_bytes(step, tensor.dtype, &tensor.shape) == tensor.row_major() {
            Ok(())
        } else {
            Err(Failure::Wrong(format!("{} holds other bytes", step["id"])))
        }
    }

    fn plan_step(&mut self, step: &Value, id: String) -> std::result::Result<(), Failure> {
        let rank = step["rank"].as_i64().unwrap_or(0) as i32;
        let planner = text_of(&step["planner"]);
        let location = self.location(step);
        match step["op"].as_str().unwrap_or_default() {
            "save_planner" => {
                let size = step["world_size"].as_i64().unwrap_or(1) as i32;
                let state = Box::leak(Box::new(self.state(&step["state"])?));
                let made = SavePlanner::new(state, rank, size, &save_options(&step["options"])?)?;
                self.save_planners.insert(id, made);
            }
            "local_plan" => {
                let plan = self.save_planner(&planner).local_plan()?;
                self.plans.insert(id, plan);
            }
            "global_plan" => {
                let plans = self.kept(&step["plans"]);
                self.note_save(step);
                let parts = self.save_planner(&planner).global_plan(&plans, &location)?;
                for (id, part) in step["ids"].as_array().into_iter().flatten().zip(parts) {
                    self.plans.insert(text_of(id), part);
                }
            }
            "finish" => {
                let mine = self.plans[&text_of(&step["plan"])].clone();
                let plan = self.save_planner(&planner).finish(&mine)?.bytes();
                self.plans.insert(id, plan);
            }
            "save_execute" => {
                let plan = Plan::from_bytes(&self.plans[&text_of(&step["plan"])])?;
                let result = self.save_planner(&planner).execute(&plan, &location)?;
                self.plans.insert(id, result);
            }
            "commit" => {
                let results = self.kept(&step["results"]);
                self.save_planner(&planner).commit(&results)?;
            }
            "load_planner" => {
                let checkpoint = self.checkpoints[&text_of(&step["checkpoint"])];
                let state = Box::leak(Box::new(self.state(&step["state"])?));
                let made = LoadPlanner::new(checkpoint, state, rank, &load_options(&step["options"])?)?;
                self.load_planners.insert(id, made);
            }
            "load_plan" => {
                let plan = self.load_planner(&planner).local_plan()?.bytes();
                self.plans.insert(id, plan);
            }
            "load_execute" => {
                let plan = Plan::from_bytes(&self.plans[&text_of(&step["plan"])])?;
                self.load_planner(&planner).execute(&plan)?;
            }
            "cut_plan" => {
                let plan = self.plans.get_mut(&text_of(&step["plan"])).expect("a kept plan");
                plan.truncate(plan.len() - step["drop"].as_u64().unwrap_or(0) as usize);
            }
            other => panic!("the contract has an unknown step {other}"),
        }
        Ok(())
    }

    fn save_planner(&mut self, id: &str) -> &mut SavePlanner<'static> {
        self.save_planners.get_mut(id).expect("a save planner")
    }

    fn load_planner(&mut self, id: &str) -> &mut LoadPlanner<'static, 'static> {
        self.load_planners.get_mut(id).expect("a load planner")
    }

    /// Kept bytes by id; null = empty.
    pub fn kept(&self, ids: &Value) -> Vec<Vec<u8>> {
        ids.as_array()
            .into_iter()
            .flatten()
            .map(|id| id.as_str().map_or(Vec::new(), |id| self.plans[id].clone()))
            .collect()
    }

    /// Compares the digests of the scenario with the last save's checkpoint.
    pub fn check_digests(&self, wanted: &Value) -> std::result::Result<(), String> {
        let Some(wanted) = wanted.as_object() else {
            return Ok(());
        };
        let location = match self.last_storage {
            Some(storage) => Location::storage(storage, &self.last_save),
            None => Location::path(self.root.join("p")),
        };
        let checkpoint = Checkpoint::open_at(&self.context, &location).map_err(|e| e.to_string())?;
        let found: HashMap<String, String> =
            checkpoint.digests(DigestAlgorithm::Xxh3).map_err(|e| e.to_string())?.into_iter().collect();
        for (name, digest) in wanted {
            if found.get(name).map(String::as_str) != digest.as_str() {
                return Err(format!("digest of {name}: expected {digest}, found {:?}", found.get(name)));
            }
        }
        Ok(())
    }
}

fn digest(checkpoint: &Checkpoint, name: &Value, algorithm: &Value) -> Result<String> {
    let algorithm = if algorithm == "sha256" { DigestAlgorithm::Sha256 } else { DigestAlgorithm::Xxh3 };
    let name = text_of(name);
    let all = checkpoint.digests(algorithm)?;
    Ok(all.into_iter().find(|(n, _)| *n == name).map_or(String::new(), |(_, d)| d))
}

fn mapping(rules: &Value) -> Result<Mapping> {
    let parameters: Vec<(&str, i64)> = rules["parameters"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), value.as_i64().unwrap_or_default()))
        .collect();
    match rules["shipped"].as_str() {
        Some(name) => Mapping::shipped(name, &parameters),
        None => Mapping::parse(&text_of(&rules["json"]), &parameters),
    }
}
