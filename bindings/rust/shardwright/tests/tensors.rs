// SPDX-License-Identifier: Apache-2.0
//! How tensors enter a state: lengths that do not fit, layouts, many at once.

use shardwright::{
    Checkpoint, Context, DType, Error, ErrorKind, Layout, LoadOptions, Location, Placement, RawMemory, SaveOptions,
    Shard, State, Storage, TensorBatch, TensorSpec, load_at, save_at,
};

fn float32() -> DType {
    DType::from_name("float32").unwrap()
}

fn refused(result: Result<(), Error>, words: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains(words), "{error}");
    assert_eq!(error.details()["tensor"], "w");
}

#[test]
fn strides_of_another_length_than_the_shape_are_refused() {
    let mut state = State::new();
    for strides in [&[1i64][..], &[4, 1, 1]] {
        let spec = TensorSpec { strides, ..TensorSpec::whole("w", float32(), &[2, 4]) };
        refused(state.add_owned(&spec, &[0; 32]), "strides for a shape of 2 extents");
    }
    assert!(state.tensor_names().is_empty());
    let right = TensorSpec { strides: &[1, 2], ..TensorSpec::whole("w", float32(), &[2, 4]) };
    state.add_owned(&right, &[0; 32]).unwrap();
}

#[test]
fn boxes_of_another_length_than_the_global_shape_are_refused() {
    let mut state = State::new();
    let wrong: [(&[i64], &[i64], i64); 3] = [(&[0], &[2, 4], 0), (&[0, 0], &[2], 0), (&[0, 0, 0], &[2, 4, 1], 0)];
    for at in wrong {
        let good: (&[i64], &[i64], i64) = (&[0, 0], &[2, 4], 0);
        let boxes = [good, at];
        let shard = Some(Shard { global_shape: &[8, 4], boxes: &boxes });
        let spec = TensorSpec { shard, ..TensorSpec::whole("w", float32(), &[2, 4]) };
        refused(state.add_owned(&spec, &[0; 32]), "box 1 has");
    }
    assert!(state.tensor_names().is_empty());
}

#[test]
fn elements_without_memory_are_refused() {
    let mut state = State::new();
    refused(state.add_owned(&TensorSpec::whole("w", float32(), &[4096]), &[]), "no memory");
    state.add_owned(&TensorSpec::whole("w", float32(), &[0, 4096]), &[]).unwrap();
}

#[test]
fn each_rank_adds_its_part_of_a_layout() {
    let layout = Layout::new(&[2], &[], &[Placement::Shard(0)]).unwrap();
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let location = Location::storage(&storage, "p");
    let all: Vec<u8> = (0..48).collect();
    let collectives = shardwright::thread_collectives(2).unwrap();
    std::thread::scope(|scope| {
        for (rank, mut collective) in collectives.into_iter().enumerate() {
            let (layout, context, location, all) = (&layout, &context, &location, &all);
            scope.spawn(move || {
                let mut state = State::new();
                let mine = &all[rank * 24..][..24];
                state.add_owned_laid_out("w", float32(), &[4, 3], (layout, rank as i32), mine).unwrap();
                save_at(context, &state, location, Some(&mut collective), &SaveOptions::default()).unwrap();
            });
        }
    });
    assert_eq!(Checkpoint::open_at(&context, &location).unwrap().read("w").unwrap().bytes(), all);
}

#[test]
fn an_object_is_found_by_its_name() {
    let mut state = State::new();
    for i in 0..200 {
        state.add_json(&format!("o{i}"), &i.to_string()).unwrap();
    }
    assert_eq!(state.object("o137").unwrap(), (String::from("application/json"), b"137".to_vec()));
    assert!(state.object("o200").is_none());
}

#[test]
fn a_batch_takes_tensors_of_all_sorts() {
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let location = Location::storage(&storage, "p");
    let whole = [1.0f32, 2.0, 3.0];
    let mut columns = [1i64, 3, 2, 4];
    let mut batch = TensorBatch::new();
    batch.add("whole", &[3], &whole).unwrap();
    let runs: [(&[i64], &[i64], i64); 2] = [(&[0, 0], &[1, 2], 0), (&[1, 0], &[1, 2], 2)];
    let shard = Some(Shard { global_shape: &[2, 2], boxes: &runs });
    let dtype = DType::from_name("uint8").unwrap();
    batch.add_owned(&TensorSpec { shard, ..TensorSpec::whole("sharded", dtype, &[4]) }, &[5, 6, 7, 8]).unwrap();
    let memory = RawMemory { data: columns.as_mut_ptr().cast(), size: 32, read_only: true };
    let spec = TensorSpec::whole("strided", DType::from_name("int64").unwrap(), &[2, 2]);
    // SAFETY: the array outlives the state.
    unsafe { batch.add_raw(&TensorSpec { strides: &[1, 2], ..spec }, memory) }.unwrap();
    batch.add_owned(&TensorSpec::whole("scalar", dtype, &[]), &[9]).unwrap();
    assert_eq!(batch.len(), 4);

    let mut state = State::new();
    state.add_batch(batch).unwrap();
    assert_eq!(state.tensor_names(), ["whole", "sharded", "strided", "scalar"]);
    assert_eq!(state.tensor_bytes("sharded").unwrap(), [5, 6, 7, 8]);
    save_at(&context, &state, &location, None, &SaveOptions::default()).unwrap();
    let checkpoint = Checkpoint::open_at(&context, &location).unwrap();
    assert_eq!(checkpoint.read("whole").unwrap().elements::<f32>().unwrap(), whole);
    assert_eq!(checkpoint.read("sharded").unwrap().shape(), [2, 2]);
    assert_eq!(checkpoint.read("sharded").unwrap().bytes(), [5, 6, 7, 8]);
    assert_eq!(checkpoint.read("strided").unwrap().elements::<i64>().unwrap(), [1, 2, 3, 4]);
    assert_eq!(checkpoint.read("scalar").unwrap().bytes(), [9]);
}

#[test]
fn a_batch_is_added_all_or_none() {
    let data = [0u8; 4];
    let mut state = State::new();
    state.add("there", &[4], &data).unwrap();
    let mut batch = TensorBatch::new();
    for name in ["a", "b", "there"] {
        batch.add(name, &[4], &data).unwrap();
    }
    assert_eq!(state.add_batch(batch).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(state.tensor_names(), ["there"]);
    state.add_batch(TensorBatch::new()).unwrap();
}

#[test]
fn a_batch_is_loaded_into() {
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let location = Location::storage(&storage, "p");
    let data: Vec<Vec<i32>> = (0..300).map(|i| vec![i, i + 1]).collect();
    let mut state = State::new();
    state.add_all(data.iter().enumerate().map(|(i, v)| (format!("t{i}"), [2], &v[..]))).unwrap();
    save_at(&context, &state, &location, None, &SaveOptions::default()).unwrap();
    let mut found = vec![[0i32; 2]; 300];
    let mut batch = TensorBatch::new();
    for (i, target) in found.iter_mut().enumerate() {
        batch.add_mut(&format!("t{i}"), &[2], target).unwrap();
    }
    let mut into = State::new();
    into.add_batch(batch).unwrap();
    load_at(&context, &mut into, &location, None, &LoadOptions::default()).unwrap();
    drop(into);
    assert_eq!(found.concat(), data.concat());
}

#[test]
fn copies_that_a_state_owns_lie_on_whole_cache_lines() {
    let mut state = State::new();
    let names: Vec<String> = (0..32).map(|count| format!("w{count}")).collect();
    for (count, name) in names.iter().enumerate() {
        let data: Vec<u8> = (0..4 * count).map(|byte| byte as u8).collect();
        state.add_owned(&TensorSpec::whole(name, float32(), &[count as i64]), &data).unwrap();
        assert_eq!(state.tensor_bytes(name).unwrap(), data);
    }
    for name in names.iter().skip(1) {
        assert_eq!(state.tensor_bytes(name).unwrap().as_ptr() as usize % 64, 0, "{name}");
    }
}
