// SPDX-License-Identifier: Apache-2.0
//! What is set of units and contexts, and parameters that are left out.

#[path = "support/ranks.rs"]
mod ranks;

use ranks::{COLUMNS, ROWS, alone, ends_of_threads, meshes, message_of, on_ranks, with_layer};
use shardwright::hsdp::{
    Hsdp, HsdpOptions, Lane, Mesh, Param, ReduceOp, Reshard, Setting, UnitOptions, UnitSettings, UnitState, Unused,
    fake_communicator,
};
use shardwright::{DType, ErrorKind};

#[test]
fn settings_are_read_back() {
    let mut mesh = Mesh::new(&[4], 0).unwrap();
    mesh.set_communicator(0, Lane::Gather, &fake_communicator(0, 4).unwrap()).unwrap();
    mesh.set_communicator(0, Lane::Secondary, &fake_communicator(0, 2).unwrap()).unwrap();
    let options = UnitOptions::new().reshard_after_forward(Reshard::Always).unused(Unused::Skip);
    let (mut hsdp, unit) = with_layer(&mesh, &options).unwrap();
    let found = hsdp.settings_of(unit).unwrap();
    assert_eq!((found.reshard_after_forward, found.unused), (Reshard::Always, Unused::Skip));
    assert!(found.requires_gradient_sync && found.requires_all_reduce && found.reshard_after_backward);
    assert!(found.unshard_in_backward && !found.keep_unsharded);
    assert_eq!(found.reduce_op, ReduceOp::Average);
    type AsBefore = fn(&UnitSettings) -> bool;
    let switches: [(Setting, AsBefore); 5] = [
        (Setting::RequiresGradientSync(false), |s| s.requires_gradient_sync),
        (Setting::RequiresAllReduce(false), |s| s.requires_all_reduce),
        (Setting::ReshardAfterBackward(false), |s| s.reshard_after_backward),
        (Setting::UnshardInBackward(false), |s| s.unshard_in_backward),
        (Setting::KeepUnsharded(true), |s| !s.keep_unsharded),
    ];
    for (setting, as_before) in switches {
        assert!(as_before(&hsdp.settings_of(unit).unwrap()), "{setting:?}");
        hsdp.set_of(unit, setting).unwrap();
        assert!(!as_before(&hsdp.settings_of(unit).unwrap()), "{setting:?}");
    }
    for policy in [Reshard::Secondary(2), Reshard::Never, Reshard::Auto] {
        hsdp.set_of(unit, Setting::ReshardAfterForward(policy)).unwrap();
        assert_eq!(hsdp.settings_of(unit).unwrap().reshard_after_forward, policy);
    }
    hsdp.set(Setting::ReduceOp(ReduceOp::Sum)).unwrap();
    hsdp.set(Setting::Unused(Unused::Zero)).unwrap();
    hsdp.set_of(unit, Setting::DivideFactor(3.0)).unwrap();
    let found = hsdp.settings_of(unit).unwrap();
    assert_eq!((found.reduce_op, found.unused, found.divide_factor), (ReduceOp::Sum, Unused::Zero, 3.0));
    hsdp.set_prefetch_depth(0).unwrap();
    hsdp.set_max_inflight_reduce(2).unwrap();
    assert_eq!((hsdp.prefetch_depth().unwrap(), hsdp.max_inflight_reduce().unwrap()), (0, 2));
}

#[test]
fn units_that_are_gathered_ahead_are_as_many_as_is_set() {
    on_ranks(meshes(2, 1, ends_of_threads), |_, mesh| {
        let mut hsdp = Hsdp::new(&mesh, &HsdpOptions::default()).unwrap();
        let empty = || Param::empty("weight", &[ROWS as i64, COLUMNS as i64], DType::FLOAT32);
        let mut unit = |name: &str| hsdp.add_unit(name, &UnitOptions::default(), &[empty()]).unwrap();
        let units = [unit("first"), unit("second"), unit("third")];
        for depth in [2, 0, 1] {
            hsdp.set_prefetch_depth(depth).unwrap();
            hsdp.pre_forward(units[0]).unwrap();
            let ahead = units.iter().filter(|each| hsdp.state(**each).unwrap() == UnitState::Gathering).count();
            assert_eq!(ahead, depth as usize);
            hsdp.reset().unwrap();
        }
    });
    let (mut hsdp, _) = alone();
    message_of(hsdp.set_max_inflight_reduce(-1), ErrorKind::InvalidArgument);
    hsdp.set_max_inflight_reduce(2).unwrap();
}

#[test]
fn ignored_parameters_are_left_out() {
    let mut hsdp = Hsdp::new(&Mesh::new(&[1], 0).unwrap(), &HsdpOptions::default()).unwrap();
    let (first, last) = ([1f32, 2.0], [3f32]);
    let mut ignored = Param::new("ignored", &[4], &first); // of another size, which nobody looks at
    ignored.ignore = true;
    ignored.aliases = vec!["its other name".to_owned()];
    let params = [Param::new("first", &[2], &first), ignored, Param::new("last", &[1], &last)];
    let unit = hsdp.add_unit("layer", &UnitOptions::default(), &params).unwrap();
    assert_eq!(hsdp.param_count(unit).unwrap(), 2);
    assert_eq!(hsdp.param_name(unit, 1).unwrap(), "last");
    assert_eq!(hsdp.local::<f32>(unit, 1).unwrap(), last);
}
