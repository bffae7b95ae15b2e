// SPDX-License-Identifier: Apache-2.0
//! Units on a device whose memory faults under the host's hands (tests/conformance/device/apart_table.c): bits are those of
//! the host, memory says where it lies, checkpoints go round, and slices of it are refused.

#[path = "support/apart.rs"]
mod apart;
#[path = "support/ranks.rs"]
mod ranks;

use apart::{APART, apart, context, seen};
use ranks::{COLUMNS, ROWS, ends_of_threads, iterate, meshes, message_of, on_ranks, weight};
use shardwright::hsdp::{Content, Device, Hsdp, HsdpOptions, Mesh, Param, Unit, UnitOptions, View};
use shardwright::{Context, DType, ErrorKind, LoadOptions, Location, SaveOptions, State, load_at, save_at};

fn layer(hsdp: &mut Hsdp, values: &[f32], options: &UnitOptions) -> Unit {
    hsdp.add_unit("layer", options, &[Param::new("weight", &[ROWS as i64, COLUMNS as i64], values)]).unwrap()
}

/// One rank alone, with a unit of one weight.
fn alone(context: &Context, values: &[f32], options: &UnitOptions) -> (Hsdp, Unit) {
    let mesh = Mesh::new(&[1], 0).unwrap();
    let mut hsdp = Hsdp::on_device(context, &apart(context), &mesh, &HsdpOptions::default()).unwrap();
    let unit = layer(&mut hsdp, values, options);
    (hsdp, unit)
}

/// Offloaded shards and gradients of all ranks after each of three steps, and the norms.
fn trained(on_device: Option<&Context>) -> Vec<Vec<(Vec<f32>, f64)>> {
    let shared = Context::shared().unwrap();
    on_ranks(meshes(2, 1, ends_of_threads), |rank, mesh| {
        let context = on_device.unwrap_or(&shared);
        let device = on_device.map_or_else(|| Device::host(false).unwrap(), apart);
        let mut hsdp = Hsdp::on_device(context, &device, &mesh, &HsdpOptions::default()).unwrap();
        drop(device); // the context keeps it
        let options = UnitOptions::new().offload(true).param_dtype(Some(DType::BFLOAT16));
        let options = options.reduce_dtype(Some(DType::FLOAT32));
        let unit = layer(&mut hsdp, &weight(), &options);
        let mut found = Vec::new();
        for round in 0..3 {
            hsdp.pre_forward(unit).unwrap();
            hsdp.post_forward(unit).unwrap();
            hsdp.pre_backward(unit).unwrap();
            let grads: Vec<_> = (0..ROWS * COLUMNS).map(|n| (n as f32 - rank as f32) / (round as f32 + 3.0)).collect();
            hsdp.add_grads(unit, &[(0, &grads[..])]).unwrap();
            hsdp.post_backward(unit).unwrap();
            hsdp.finalize_backward().unwrap();
            let norm = hsdp.global_norm(2.0).unwrap();
            hsdp.scale_grads(1.0 / 3.0).unwrap();
            hsdp.update::<f32>(unit, 0, |param, grad| param.iter_mut().zip(grad).for_each(|(p, g)| *p -= 0.1 * g)).unwrap();
            found.push((hsdp.local::<f32>(unit, 0).unwrap().to_vec(), norm));
            hsdp.zero_grads().unwrap();
        }
        found
    })
}

#[test]
fn offloaded_shards_have_the_bits_of_the_host() {
    let context = context();
    assert_eq!(trained(Some(&context)), trained(None));
}

#[test]
fn memory_says_where_it_lies_and_slices_are_refused() {
    let context = context();
    let device = apart(&context);
    assert_eq!((device.name(), device.number(), device.is_host()), ("apart in C".to_owned(), APART, false));
    assert!(format!("{device:?}").contains("apart in C"));
    let host = Device::host(true).unwrap();
    assert_eq!((host.name(), host.number(), host.is_host()), ("host".to_owned(), (1, 0), true));
    let (mut hsdp, unit) = alone(&context, &weight(), &UnitOptions::default());
    assert_eq!(seen(&context, &hsdp, unit, View::Local, 0), weight());
    assert_eq!(hsdp.memory(unit, View::Grad, 0).unwrap().address, 0);
    message_of(hsdp.memory(unit, View::Full, 0), ErrorKind::FailedPrecondition);
    let text = message_of(hsdp.local::<f32>(unit, 0), ErrorKind::Unimplemented);
    assert!(text.contains("(12, 5)"), "{text}");
    hsdp.pre_forward(unit).unwrap();
    assert_eq!(seen(&context, &hsdp, unit, View::Full, 0), weight());
    message_of(hsdp.full::<f32>(unit, 0), ErrorKind::Unimplemented);
    message_of(hsdp.update::<f32>(unit, 0, |_, _| unreachable!()), ErrorKind::Unimplemented);
}

#[test]
fn checkpoints_go_from_the_device_to_the_host_and_back() {
    let context = context();
    let folder = std::env::temp_dir().join(format!("shardwright-devices-{}", std::process::id()));
    let (mut hsdp, unit) = alone(&context, &weight(), &UnitOptions::default());
    let mut state = State::new();
    hsdp.add_to_state("model.", Content::Params, &mut state).unwrap();
    save_at(&context, &state, &Location::path(&folder), None, &SaveOptions::default()).unwrap();
    drop(state);
    let zeros = [0f32; ROWS * COLUMNS];
    for offload in [false, true] {
        let (mut other, unit) = alone(&context, &zeros, &UnitOptions::new().offload(offload));
        let mut state = State::new();
        other.add_to_state("model.", Content::Params, &mut state).unwrap();
        load_at(&context, &mut state, &Location::path(&folder), None, &LoadOptions::default()).unwrap();
        drop(state);
        other.step_event().unwrap();
        other.pre_forward(unit).unwrap();
        assert_eq!(seen(&context, &other, unit, View::Full, 0), weight());
    }
    assert_eq!(seen(&context, &hsdp, unit, View::Local, 0), weight());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn devices_are_asked_for_by_name() {
    let context = context();
    message_of(Device::open(&context, "no_such_plugin", ""), ErrorKind::NotFound);
    message_of(Device::open(&context, "a\0b", ""), ErrorKind::InvalidArgument);
    // SAFETY: it is one of ours.
    unsafe { context.load_plugin("sample_team") }.unwrap();
    let text = message_of(Device::open(&context, "sample_team", ""), ErrorKind::Unimplemented);
    assert!(text.contains("has no device"), "{text}");
}

#[test]
fn the_host_may_be_given_as_a_device() {
    let mesh = Mesh::new(&[1], 0).unwrap();
    let context = Context::shared().unwrap();
    let mut hsdp = Hsdp::on_device(&context, &Device::host(false).unwrap(), &mesh, &HsdpOptions::default()).unwrap();
    let unit = layer(&mut hsdp, &weight(), &UnitOptions::default());
    iterate(&mut hsdp, unit, 1.0).unwrap();
    assert_eq!(hsdp.local::<f32>(unit, 0).unwrap(), weight());
    assert_eq!(hsdp.memory(unit, View::Grad, 0).unwrap().device, (1, 0));
}
