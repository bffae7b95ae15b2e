// SPDX-License-Identifier: Apache-2.0
//! One rank of the loop: a small network, a unit per layer, gradients by hand, descent with momentum. Every product and
//! sum is one of f32, in an order that all languages share.

use shardwright::hsdp::{Content, Hsdp, HsdpOptions, Mesh, Param, Phase, Setting, Unit, UnitOptions};
use shardwright::{Result, Shard, State, planning};

const WIDTHS: [usize; 4] = [13, 37, 29, 3];
const LAYERS: usize = 3;
const SAMPLES: usize = 4;
const MICRO_BATCHES: i64 = 2;

/// A row per sample.
type Rows = Vec<Vec<f32>>;

// ---- the numbers: exact in f32 ----

fn first_weight(layer: usize) -> Vec<f32> {
    (0..WIDTHS[layer + 1] * WIDTHS[layer]).map(|n| (((n * 37 + layer * 11) % 41) as f32 - 20.0) / 128.0).collect()
}

fn first_bias(layer: usize) -> Vec<f32> {
    (0..WIDTHS[layer + 1]).map(|n| (((n * 29 + layer * 7) % 31) as f32 - 15.0) / 256.0).collect()
}

fn inputs(step: i64, micro_batch: i64, rank: i64) -> Rows {
    let x = |b: i64, k: i64| (((step * 31 + micro_batch * 17 + rank * 13 + b * 7 + k * 5) % 23) - 11) as f32 / 16.0;
    (0..SAMPLES as i64).map(|b| (0..WIDTHS[0] as i64).map(|k| x(b, k)).collect()).collect()
}

fn loss_gradient(y: &Rows, step: i64, micro_batch: i64, rank: i64) -> Rows {
    let target = |b: i64, k: i64| (((step * 19 + micro_batch * 5 + rank * 3 + b * 11 + k * 13) % 17) - 8) as f32 / 16.0;
    let row = |(b, row): (usize, &Vec<f32>)| {
        row.iter().enumerate().map(|(k, y)| (y - target(b as i64, k as i64)) * 0.25).collect()
    };
    y.iter().enumerate().map(row).collect()
}

// ---- the arithmetic ----

fn affine(x: &Rows, weight: &[f32], bias: &[f32]) -> Rows {
    let inputs = weight.len() / bias.len();
    let out =
        |x: &Vec<f32>, j: usize| x.iter().enumerate().fold(bias[j], |sum, (k, x)| sum + x * weight[j * inputs + k]);
    x.iter().map(|x| (0..bias.len()).map(|j| out(x, j)).collect()).collect()
}

fn rectified(y: &Rows) -> Rows {
    y.iter().map(|row| row.iter().map(|&y| if y > 0.0 { y } else { 0.0 }).collect()).collect()
}

fn rectified_gradient(dy: &Rows, y: &Rows) -> Rows {
    let row =
        |(dy, y): (&Vec<f32>, &Vec<f32>)| dy.iter().zip(y).map(|(&dy, &y)| if y > 0.0 { dy } else { 0.0 }).collect();
    dy.iter().zip(y).map(row).collect()
}

fn weight_gradient(dy: &Rows, x: &Rows) -> Vec<f32> {
    let (outputs, inputs) = (dy[0].len(), x[0].len());
    (0..outputs * inputs).map(|n| (0..SAMPLES).fold(0.0, |sum, b| sum + dy[b][n / inputs] * x[b][n % inputs])).collect()
}

fn bias_gradient(dy: &Rows) -> Vec<f32> {
    (0..dy[0].len()).map(|j| dy.iter().fold(0.0, |sum, row| sum + row[j])).collect()
}

fn input_gradient(dy: &Rows, weight: &[f32], inputs: usize) -> Rows {
    let dx =
        |row: &Vec<f32>, k: usize| row.iter().enumerate().fold(0.0, |sum, (j, dy)| sum + dy * weight[j * inputs + k]);
    dy.iter().map(|row| (0..inputs).map(|k| dx(row, k)).collect()).collect()
}

// ---- one rank ----

pub struct Training {
    hsdp: Hsdp,
    units: Vec<Unit>,
    momenta: Vec<Vec<f32>>, // of weight and bias of each layer, cut as these are
    rank: i32,
    pub next_step: i64, // as many were trained
}

impl Training {
    pub fn new(mesh: &Mesh, rank: i32, options: &HsdpOptions) -> Result<Training> {
        let mut hsdp = Hsdp::new(mesh, options)?;
        let (mut units, mut momenta) = (Vec::new(), Vec::new());
        for layer in 0..LAYERS {
            let name = format!("layers.{layer}");
            let (weight, bias) = (first_weight(layer), first_bias(layer));
            let shape = [WIDTHS[layer + 1] as i64, WIDTHS[layer] as i64];
            let params = [
                Param::new(&format!("{name}.weight"), &shape, &weight),
                Param::new(&format!("{name}.bias"), &shape[..1], &bias),
            ];
            let unit = hsdp.add_unit(&name, &UnitOptions::default(), &params)?; // from here on each rank holds its rows
            for index in 0..2 {
                momenta.push(vec![0.0; hsdp.local::<f32>(unit, index)?.len()]);
            }
            units.push(unit);
        }
        Ok(Training { hsdp, units, momenta, rank, next_step: 0 })
    }

    fn forward(&mut self, x: Rows) -> Result<(Vec<Rows>, Vec<Rows>)> {
        let (mut seen, mut before) = (vec![x], Vec::new());
        for (layer, &unit) in self.units.iter().enumerate() {
            self.hsdp.pre_forward(unit)?; // the whole parameters are there
            before.push(affine(&seen[layer], self.hsdp.full(unit, 0)?, self.hsdp.full(unit, 1)?));
            self.hsdp.post_forward(unit)?; // and gone
            seen.push(if layer + 1 < LAYERS { rectified(&before[layer]) } else { before[layer].clone() });
        }
        Ok((seen, before))
    }

    fn backward(&mut self, mut dy: Rows, seen: &[Rows], before: &[Rows]) -> Result<()> {
        for (layer, &unit) in self.units.iter().enumerate().rev() {
            if layer + 1 < LAYERS {
                dy = rectified_gradient(&dy, &before[layer]);
            }
            self.hsdp.pre_backward(unit)?;
            let (of_weight, of_bias) = (weight_gradient(&dy, &seen[layer]), bias_gradient(&dy));
            dy = input_gradient(&dy, self.hsdp.full(unit, 0)?, WIDTHS[layer]);
            self.hsdp.add_grads(unit, &[(0, &of_weight[..]), (1, &of_bias[..])])?;
            self.hsdp.post_backward(unit)?; // travels while the layer before computes
        }
        Ok(())
    }

    pub fn step(&mut self) -> Result<()> {
        let rank = i64::from(self.rank);
        for micro_batch in 0..MICRO_BATCHES {
            let is_last = micro_batch + 1 == MICRO_BATCHES;
            self.hsdp.set_is_last_backward(is_last)?;
            self.hsdp.set(Setting::RequiresAllReduce(is_last))?; // replicas, where there are some, meet once
            let (seen, before) = self.forward(inputs(self.next_step, micro_batch, rank))?;
            let dy = loss_gradient(&seen[LAYERS], self.next_step, micro_batch, rank);
            self.backward(dy, &seen, &before)?;
            self.hsdp.finalize_backward()?;
        }
        for (n, momenta) in self.momenta.iter_mut().enumerate() {
            self.hsdp.update::<f32>(self.units[n / 2], n % 2, |parameters, gradients| {
                for ((momentum, parameter), gradient) in momenta.iter_mut().zip(parameters).zip(gradients) {
                    *momentum = 0.9 * *momentum + gradient;
                    *parameter -= 0.125 * *momentum;
                }
            })?;
        }
        self.next_step += 1;
        self.hsdp.zero_grads()
    }

    /// Of all parameters in their order, as little-endian f32.
    pub fn digest(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        for &unit in &self.units {
            self.hsdp.unshard(unit)?;
            for index in 0..2 {
                bytes.extend(self.hsdp.full::<f32>(unit, index)?.iter().flat_map(|value| value.to_le_bytes()));
            }
            self.hsdp.reshard(unit, Phase::Backward)?;
        }
        Ok(planning::content_digest(&bytes)?.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Runs `call` on a state of parameters, momenta and the step, in memory of this; the step is what the state holds then.
    pub fn with_state(&mut self, call: impl FnOnce(&mut State) -> Result<()>) -> Result<()> {
        let mut places = Vec::new();
        for n in 0..self.momenta.len() {
            let unit = self.units[n / 2];
            places.push((self.hsdp.param_name(unit, n % 2)?, self.hsdp.local_box(unit, n % 2)?));
        }
        let mut state = State::new();
        for ((name, place), momenta) in places.iter().zip(&mut self.momenta) {
            let boxes = [(&place.offsets[..], &place.sizes[..], 0)];
            let shard = Shard { global_shape: &place.global_shape, boxes: &boxes };
            state.add_shard_mut(&format!("momentum.{name}"), &place.sizes, shard, momenta)?;
        }
        state.add_json("step", &self.next_step.to_string())?;
        self.hsdp.add_to_state("model.", Content::Params, &mut state)?;
        call(&mut state)?;
        let step = state.object("step").and_then(|(_, text)| String::from_utf8(text).ok());
        self.next_step = step.and_then(|step| step.trim().parse().ok()).unwrap_or(self.next_step);
        drop(state);
        self.hsdp.step_event() // a load has changed the shards
    }
}
