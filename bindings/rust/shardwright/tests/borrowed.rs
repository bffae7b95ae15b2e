// SPDX-License-Identifier: Apache-2.0
//! Memory that a state borrows: shards of larger tensors, parts of layouts, and every type of elements.

use shardwright::{
    Checkpoint, Context, DType, Element, ErrorKind, Layout, LoadOptions, Location, Placement, SaveOptions, Shard,
    State, Storage, Tensor, TensorSpec, load_at, save_at,
};

fn places() -> (Context, Storage) {
    (Context::shared().unwrap(), Storage::memory().unwrap())
}

/// What comes back of a tensor that was saved from elements, into a target of the same type.
fn there_and_back<T: Element>(elements: &[T], mut target: Vec<T>) -> (Vec<T>, Tensor) {
    let (context, storage) = places();
    let location = Location::storage(&storage, "p");
    let mut state = State::new();
    state.add("t", &[elements.len() as i64], elements).unwrap();
    save_at(&context, &state, &location, None, &SaveOptions::new()).unwrap();
    let mut into = State::new();
    into.add_mut("t", &[elements.len() as i64], &mut target).unwrap();
    load_at(&context, &mut into, &location, None, &LoadOptions::new()).unwrap();
    drop(into);
    let read = Checkpoint::open_at(&context, &location).unwrap().read("t").unwrap();
    (target, read)
}

#[test]
fn bools_are_elements() {
    let bits = [true, false, true];
    let (back, read) = there_and_back(&bits, vec![false; 3]);
    assert_eq!((&back[..], read.dtype().name()), (&bits[..], "bool"));
    assert_eq!(read.elements::<bool>().unwrap(), bits);
    assert_eq!(Tensor::from_elements(&[3], &bits).unwrap().elements::<bool>().unwrap(), bits);
}

#[cfg(feature = "half")]
#[test]
fn half_floats_are_elements() {
    use half::{bf16, f16};
    let brains = [bf16::from_f32(1.5), bf16::from_f32(-3e38)];
    let (back, read) = there_and_back(&brains, vec![bf16::ZERO; 2]);
    assert_eq!((&back[..], read.dtype().name()), (&brains[..], "bfloat16"));
    assert_eq!(read.elements::<bf16>().unwrap(), brains);
    assert_eq!(read.elements::<f16>().unwrap_err().kind(), ErrorKind::InvalidArgument);
    let halves = [f16::from_f32(0.25), f16::INFINITY];
    let (back, read) = there_and_back(&halves, vec![f16::ZERO; 2]);
    assert_eq!((&back[..], read.dtype().name()), (&halves[..], "float16"));
}

#[test]
fn a_stored_bool_that_is_none_is_an_error_and_never_seen() {
    let (context, storage) = places();
    let location = Location::storage(&storage, "p");
    let stored = [0u8, 7, 1];
    let mut state = State::new();
    state.add_bytes("t", DType::from_name("bool").unwrap(), &[3], &stored).unwrap();
    save_at(&context, &state, &location, None, &SaveOptions::new()).unwrap();
    let mut target = [false; 3];
    let mut into = State::new();
    into.add_mut("t", &[3], &mut target).unwrap();
    let error = load_at(&context, &mut into, &location, None, &LoadOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DataLoss);
    assert!(error.message().contains("tensor t: element 1") && error.message().contains("byte 7"), "{error}");
    drop(into);
    // SAFETY: bytes of three bools.
    let bytes = unsafe { std::slice::from_raw_parts(target.as_ptr().cast::<u8>(), 3) };
    assert_eq!(bytes, [0, 1, 1]);
    let read = Checkpoint::open_at(&context, &location).unwrap().read("t").unwrap();
    assert_eq!(read.elements::<bool>().unwrap_err().kind(), ErrorKind::DataLoss);
}

#[test]
fn shards_are_borrowed() {
    let (context, storage) = places();
    let location = Location::storage(&storage, "p");
    // The whole 4 x 2 tensor in two boxes: rows 2 and 3 lie in front of rows 0 and 1.
    let rows = [5.0f32, 6.0, 7.0, 8.0, 1.0, 2.0, 3.0, 4.0];
    let boxes: [(&[i64], &[i64], i64); 2] = [(&[2, 0], &[2, 2], 0), (&[0, 0], &[2, 2], 4)];
    let shard = Shard { global_shape: &[4, 2], boxes: &boxes };
    let mut state = State::new();
    state.add_shard("w", &[8], shard, &rows).unwrap();
    save_at(&context, &state, &location, None, &SaveOptions::new()).unwrap();
    let read = Checkpoint::open_at(&context, &location).unwrap().read("w").unwrap();
    assert_eq!(read.elements::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);

    let mut middle = [0.0f32; 4];
    let boxes: [(&[i64], &[i64], i64); 1] = [(&[1, 0], &[2, 2], 0)];
    let mut into = State::new();
    into.add_shard_mut("w", &[2, 2], Shard { global_shape: &[4, 2], boxes: &boxes }, &mut middle).unwrap();
    load_at(&context, &mut into, &location, None, &LoadOptions::new()).unwrap();
    drop(into);
    assert_eq!(middle, [3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn parts_of_a_layout_are_borrowed() {
    let (context, storage) = places();
    let location = Location::storage(&storage, "p");
    let flat = Layout::new(&[1], &[], &[Placement::Flat]).unwrap();
    let whole: Vec<i32> = (0..6).collect();
    let mut state = State::new();
    state.add_laid_out("w", &[3, 2], (&flat, 0), &whole).unwrap();
    save_at(&context, &state, &location, None, &SaveOptions::new()).unwrap();
    let half = Layout::new(&[2], &[], &[Placement::Shard(0)]).unwrap();
    let mut rows = [0i32; 2]; // of three rows, rank 1 has the last
    let mut into = State::new();
    into.add_laid_out_mut("w", &[3, 2], (&half, 1), &mut rows).unwrap();
    load_at(&context, &mut into, &location, None, &LoadOptions::new()).unwrap();
    drop(into);
    assert_eq!(rows, [4, 5]);
}

#[test]
fn borrowed_memory_that_does_not_fit_is_refused() {
    let (long, mut short, spread) = ([0u8; 9], [0u8; 7], [0u8; 20]);
    let float32 = DType::from_name("float32").unwrap();
    let (whole, strides) = (TensorSpec::whole("w", float32, &[2]), [4]);
    let strided = TensorSpec { strides: &strides, ..whole };
    let mut state = State::new();
    for error in [
        state.add_spec(&whole, &long).unwrap_err(),
        state.add_spec_mut(&whole, &mut short).unwrap_err(),
        state.add_spec(&strided, &long).unwrap_err(), // its last element ends at byte 20
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.message().contains('w'), "{error}");
    }
    assert!(state.tensor_names().is_empty());
    state.add_spec(&strided, &spread).unwrap();
}
