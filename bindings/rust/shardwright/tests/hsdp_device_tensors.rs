// SPDX-License-Identifier: Apache-2.0
//! Tensors that lie on the device of their units: parameters, gradients and what an optimizer keeps, by their addresses.

#[path = "support/apart.rs"]
mod apart;
#[path = "support/ranks.rs"]
mod ranks;

use apart::{APART, Floats, apart, behind, context, seen};
use ranks::{COLUMNS, ROWS, ends_of_threads, meshes, message_of, on_ranks, weight};
use shardwright::hsdp::{
    Content, DeviceTensor, Hsdp, HsdpOptions, MemoryKind, Mesh, Param, Setting, Unit, UnitOptions, View,
};
use shardwright::{
    Context, DType, ErrorKind, LoadOptions, Location, SaveOptions, State, Storage, TensorSpec, load_at, save_at,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const COUNT: usize = ROWS * COLUMNS;
const SHAPE: [i64; 2] = [ROWS as i64, COLUMNS as i64];

fn hsdp_on(on_device: Option<&Context>, mesh: &Mesh) -> Hsdp {
    let options = HsdpOptions::default();
    match on_device {
        Some(context) => Hsdp::on_device(context, &apart(context), mesh, &options),
        None => Hsdp::new(mesh, &options),
    }
    .unwrap()
}

fn alone(context: &Context) -> Hsdp {
    hsdp_on(Some(context), &Mesh::new(&[1], 0).unwrap())
}

/// A weight of the device, where there is one, and a bias of the host.
fn layer(hsdp: &mut Hsdp, on_device: Option<&Context>, options: &UnitOptions) -> Unit {
    let (values, bias) = (weight(), [0.25f32, 0.5, 0.75]);
    let there = on_device.map(|context| Floats::new(context, &SHAPE, &values));
    let weight = match &there {
        Some(floats) => Param::on_device("weight", floats.as_ref()),
        None => Param::new("weight", &SHAPE, &values),
    };
    hsdp.add_unit("layer", options, &[weight, Param::new("bias", &[COLUMNS as i64], &bias)]).unwrap()
}

// ---- training ----

/// The gradient of the weight, where the weight came from; copied in one round and given away in the next.
fn hand_in(hsdp: &mut Hsdp, on_device: Option<&Context>, unit: Unit, round: usize, grad: &[f32]) {
    let there = on_device.map(|context| Floats::new(context, &SHAPE, grad));
    match (there, round % 2) {
        (None, 0) => hsdp.add_grads(unit, &[(0, grad)]),
        (None, _) => hsdp.take_grads(unit, [(0, grad.to_vec())]),
        (Some(floats), 0) => hsdp.add_device_grads(unit, &[(0, floats.as_ref())]),
        (Some(floats), _) => hsdp.take_device_grads(unit, [(0, floats)]),
    }
    .unwrap()
}

/// One step of an optimizer; the shard and its gradient.
fn step(hsdp: &mut Hsdp, on_device: Option<&Context>, unit: Unit, index: usize) -> (Vec<f32>, Vec<f32>) {
    let change = |param: &mut [f32], grad: &[f32]| param.iter_mut().zip(grad).for_each(|(p, g)| *p -= 0.1 * g);
    let Some(context) = on_device else {
        hsdp.update::<f32>(unit, index, change).unwrap();
        let grad = hsdp.grad::<f32>(unit, index).unwrap().unwrap().to_vec();
        return (hsdp.local::<f32>(unit, index).unwrap().to_vec(), grad);
    };
    let grad = seen(context, hsdp, unit, View::Grad, index);
    let local = hsdp.memory(unit, View::Local, index).unwrap();
    // SAFETY: this rank's part, which nobody else uses now.
    change(unsafe { std::slice::from_raw_parts_mut(behind(context, local.address), grad.len()) }, &grad);
    hsdp.step_event().unwrap();
    (seen(context, hsdp, unit, View::Local, index), grad)
}

type Found = (f64, Vec<(Vec<f32>, Vec<f32>)>);

/// Norm, shards and gradients of all rounds and ranks.
fn trained(on_device: Option<&Context>) -> Vec<Vec<Found>> {
    on_ranks(meshes(2, 1, ends_of_threads), |rank, mesh| {
        let mut hsdp = hsdp_on(on_device, &mesh);
        let options = UnitOptions::new().param_dtype(Some(DType::BFLOAT16)).reduce_dtype(Some(DType::FLOAT32));
        let unit = layer(&mut hsdp, on_device, &options);
        let mut found = Vec::new();
        for round in 0..4 {
            hsdp.pre_forward(unit).unwrap();
            hsdp.post_forward(unit).unwrap();
            hsdp.pre_backward(unit).unwrap();
            let grad: Vec<_> = (0..COUNT).map(|n| (n as f32 - rank as f32) / (round as f32 + 3.0)).collect();
            hand_in(&mut hsdp, on_device, unit, round, &grad);
            hsdp.add_grads(unit, &[(1, &grad[..COLUMNS])]).unwrap();
            hsdp.post_backward(unit).unwrap();
            hsdp.finalize_backward().unwrap();
            let norm = hsdp.global_norm(2.0).unwrap();
            found.push((norm, (0..2).map(|index| step(&mut hsdp, on_device, unit, index)).collect()));
            hsdp.zero_grads().unwrap();
        }
        found
    })
}

#[test]
fn training_from_memory_of_the_device_has_the_bits_of_the_host() {
    let context = context();
    let host = trained(None);
    assert!(host[0][0].0 > 0.0);
    assert_eq!(trained(Some(&context)), host);
}

// ---- gradients ----

/// A gradient of the device whose end is counted.
struct Counted(Floats, Arc<AtomicUsize>);

impl AsRef<DeviceTensor> for Counted {
    fn as_ref(&self) -> &DeviceTensor {
        self.0.as_ref()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_gradient_that_was_given_away_is_read_where_it_lies_and_dropped_once() {
    let (context, ends) = (context(), Arc::new(AtomicUsize::new(0)));
    let counted = |value: f32| Counted(Floats::new(&context, &SHAPE, &[value; COUNT]), Arc::clone(&ends));
    let mut hsdp = alone(&context);
    let unit = layer(&mut hsdp, Some(&context), &UnitOptions::default());
    message_of(hsdp.take_device_grads(unit, [(0, counted(1.0))]), ErrorKind::FailedPrecondition);
    assert_eq!(ends.load(Ordering::SeqCst), 1); // refused
    hsdp.set(Setting::RequiresGradientSync(false)).unwrap();
    hsdp.pre_forward(unit).unwrap();
    hsdp.take_device_grads(unit, [(0, counted(2.0))]).unwrap();
    assert_eq!(ends.load(Ordering::SeqCst), 1);
    assert_eq!(hsdp.stats(MemoryKind::LocalGrads).unwrap().peak_bytes, 0); // there is no copy
    let more = Floats::new(&context, &SHAPE, &[4.0; COUNT]);
    hsdp.add_device_grads(unit, &[(0, more.as_ref())]).unwrap(); // the sum has room of its own
    assert_eq!(ends.load(Ordering::SeqCst), 2);
    hsdp.set(Setting::RequiresGradientSync(true)).unwrap();
    hsdp.post_backward(unit).unwrap();
    hsdp.finalize_backward().unwrap();
    assert_eq!(seen(&context, &hsdp, unit, View::Grad, 0), [6.0; COUNT]);
    hsdp.pre_forward(unit).unwrap();
    hsdp.take_device_grads(unit, [(0, counted(1.0))]).unwrap();
    drop(hsdp);
    assert_eq!(ends.load(Ordering::SeqCst), 3); // with the context
}

// ---- what is refused ----

#[test]
fn what_lies_elsewhere_is_refused_by_name() {
    let context = context();
    let mut hsdp = alone(&context);
    let unit = layer(&mut hsdp, Some(&context), &UnitOptions::default());
    hsdp.pre_forward(unit).unwrap();
    let memory = weight();
    // SAFETY: memory of the host; only its device is said wrong, which is refused.
    let said = |device| unsafe { DeviceTensor::new(memory.as_ptr() as usize, DType::FLOAT32, &SHAPE, device) }.unwrap();
    let elsewhere = said((APART.0, APART.1 - 1));
    let text = "lies on extension:4, and the context has its memory on extension:5";
    let param = hsdp.add_unit("other", &UnitOptions::default(), &[Param::on_device("scale", &elsewhere)]);
    let found = message_of(param, ErrorKind::Unimplemented);
    assert!(found.contains(text) && found.contains("'scale'"), "{found}");
    let found = message_of(hsdp.add_device_grads(unit, &[(0, &elsewhere)]), ErrorKind::Unimplemented);
    assert!(found.contains(text) && found.contains("grads[0]"), "{found}");
    let found = message_of(hsdp.take_device_grads(unit, [(0, said((2, 0)))]), ErrorKind::Unimplemented);
    assert!(found.contains("lies on cuda:0"), "{found}");
    let spec = TensorSpec::whole("moment", DType::FLOAT32, &SHAPE);
    let mut state = State::new();
    hsdp.add_to_state("model.", Content::Params, &mut state).unwrap();
    let found = message_of(state.add_on_device(&spec, &elsewhere), ErrorKind::Unimplemented);
    assert!(found.contains("extension:4"), "{found}");
    assert_eq!(state.tensor_names(), ["model.weight", "model.bias"]);
    let mut host = hsdp_on(None, &Mesh::new(&[1], 0).unwrap());
    let param = host.add_unit("other", &UnitOptions::default(), &[Param::on_device("scale", &elsewhere)]);
    let found = message_of(param, ErrorKind::Unimplemented);
    assert!(found.contains("and the context has its memory on cpu"), "{found}");
}

#[test]
fn memory_of_the_host_may_be_given_by_its_address() {
    let values = weight();
    // SAFETY: the values stay as they are as long as the tensor.
    let tensor = unsafe { DeviceTensor::new(values.as_ptr() as usize, DType::FLOAT32, &SHAPE, (1, 0)) }.unwrap();
    let mut hsdp = hsdp_on(None, &Mesh::new(&[1], 0).unwrap());
    let unit = hsdp.add_unit("layer", &UnitOptions::default(), &[Param::on_device("weight", &tensor)]).unwrap();
    assert_eq!(hsdp.local::<f32>(unit, 0).unwrap(), values);
}

#[test]
fn what_is_no_tensor_is_refused() {
    // SAFETY: what is made is of no elements.
    let made = |address, shape: &[i64]| unsafe { DeviceTensor::new(address, DType::FLOAT32, shape, APART) };
    for (address, shape, text) in
        [(0, &[2][..], "address 0"), (64, &[2, -1], "no shape"), (64, &[i64::MAX, 4], "no shape")]
    {
        let found = message_of(made(address, shape), ErrorKind::InvalidArgument);
        assert!(found.contains(text), "{found}");
    }
    let nothing = made(0, &[0, 3]).unwrap();
    assert_eq!((nothing.address(), nothing.byte_size(), nothing.shape()), (0, 0, &[0, 3][..]));
    assert_eq!((nothing.dtype(), nothing.device()), (DType::FLOAT32, APART));
    let mut state = State::new();
    for (dtype, shape, strides) in
        [(DType::INT32, &[0, 3][..], &[][..]), (DType::FLOAT32, &[0, 4], &[]), (DType::FLOAT32, &[0, 3], &[3, 1])]
    {
        let spec = TensorSpec { strides, ..TensorSpec::whole("moment", dtype, shape) };
        let found = message_of(state.add_on_device(&spec, &nothing), ErrorKind::InvalidArgument);
        assert!(found.contains("tensor moment"), "{found}");
    }
}

// ---- checkpoints ----

#[test]
fn what_an_optimizer_keeps_there_goes_along() {
    let (context, storage) = (context(), Storage::memory().unwrap());
    let place = Location::storage(&storage, "c");
    let values: Vec<_> = (0..COUNT).map(|n| 100.0 + n as f32).collect();
    let mut moment = Floats::new(&context, &SHAPE, &values);
    let mut scale = Floats::new(&context, &[2], &[7.0, 8.0]);
    let mut hsdp = alone(&context);
    let unit = layer(&mut hsdp, Some(&context), &UnitOptions::default());
    let layout = hsdp.layout(unit, 0).unwrap();
    let spec = TensorSpec::whole("scale", DType::FLOAT32, &[2]);
    message_of(State::new().add_on_device(&spec, scale.as_ref()), ErrorKind::Unimplemented); // nothing is there yet
    let mut state = State::new();
    hsdp.add_to_state("model.", Content::Params, &mut state).unwrap();
    state.add_laid_out_on_device("moment.weight", &SHAPE, (&layout, 0), moment.as_ref()).unwrap();
    state.add_on_device(&spec, scale.as_ref()).unwrap();
    save_at(&context, &state, &place, None, &SaveOptions::default()).unwrap();
    let refused = load_at(&context, &mut state, &place, None, &LoadOptions::default());
    assert!(message_of(refused, ErrorKind::InvalidArgument).contains("read-only")); // it was only borrowed
    drop(state);
    moment.set(&[0.0; COUNT]);
    scale.set(&[0.0; 2]);
    let mut state = State::new();
    hsdp.add_to_state("model.", Content::Params, &mut state).unwrap();
    state.add_laid_out_on_device_mut("moment.weight", &SHAPE, (&layout, 0), moment.as_mut()).unwrap();
    state.add_on_device_mut(&spec, scale.as_mut()).unwrap();
    load_at(&context, &mut state, &place, None, &LoadOptions::default()).unwrap();
    drop(state);
    assert_eq!((moment.get(), scale.get()), (values.clone(), vec![7.0, 8.0]));
    let mut here = [0f32; COUNT];
    let mut state = State::new();
    state.add_mut("moment.weight", &SHAPE, &mut here).unwrap();
    load_at(&context, &mut state, &place, None, &LoadOptions::default()).unwrap();
    drop(state);
    assert_eq!(here, values[..]);
}
