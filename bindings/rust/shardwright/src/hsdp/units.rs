// SPDX-License-Identifier: Apache-2.0
//! Hsdp: the units that train together on one rank.

use crate::context::Context;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::hsdp::allocator::{HostAllocator, table_of};
use crate::hsdp::device::{Device, View, ViewMemory, check_on_host};
use crate::hsdp::mesh::Mesh;
use crate::hsdp::options::{
    Content, GradState, HsdpOptions, Memory, MemoryKind, Param, Phase, UnitOptions, UnitState, with_batch,
};
use crate::job::Handle;
use crate::layout::Layout;
use crate::memory::{borrowed, borrowed_mut};
use crate::state::State;
use crate::text::sized_text;
use shardwright_sys::{ffi, raw};
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

/// A unit of an [`Hsdp`], by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    context: u64,
    number: usize,
}

/// Part of a parameter that a rank holds, padding excluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalBox {
    /// First element per dimension of the whole parameter.
    pub offsets: Vec<i64>,
    /// Extent per dimension.
    pub sizes: Vec<i64>,
    /// Of the whole parameter.
    pub global_shape: Vec<i64>,
}

/// Units over one mesh. Calls come in the same order on all ranks. A wait that fails ends the context on all ranks: what is
/// pending fails with the first cause, other calls with FAILED_PRECONDITION that tells it, until [`Hsdp::reset`] with new communicators
/// in the mesh.
///
/// A life of a unit: [`add_unit`](Hsdp::add_unit) (all ranks), then iterations of [`pre_forward`](Hsdp::pre_forward),
/// [`post_forward`](Hsdp::post_forward), [`pre_backward`](Hsdp::pre_backward), [`add_grads`](Hsdp::add_grads),
/// [`post_backward`](Hsdp::post_backward). A call that is not legal in the state of the unit is FAILED_PRECONDITION naming both.
pub struct Hsdp {
    pub(super) handle: *mut ffi::shw_hsdp,
    number: u64,
    units: Vec<*mut ffi::shw_hsdp_unit>,
    context: Context,
    readers: Vec<Weak<Handle>>, // saves of the shards
    is_on_host: bool,           // has its memory there
}

// SAFETY: calls come from any thread, one at a time, which &mut and &self without Sync ensure.
unsafe impl Send for Hsdp {}

impl Hsdp {
    /// Units over the mesh, in the context that all calls share. FAILED_PRECONDITION where an axis of several ranks has no communicator.
    pub fn new(mesh: &Mesh, options: &HsdpOptions) -> Result<Hsdp> {
        Hsdp::in_context(&Context::shared()?, mesh, options)
    }

    /// The same in a context of its own, which is kept alive as the mesh is.
    pub fn in_context(context: &Context, mesh: &Mesh, options: &HsdpOptions) -> Result<Hsdp> {
        Hsdp::make(context, &options.raw(mesh.handle(), std::ptr::null()), true)
    }

    /// The same with the memory of all units on a device. Parameters and gradients are handed in from memory of the host, or of that
    /// device ([`DeviceTensor`](crate::hsdp::DeviceTensor)).
    pub fn on_device(context: &Context, device: &Device, mesh: &Mesh, options: &HsdpOptions) -> Result<Hsdp> {
        Hsdp::make(context, &options.raw(mesh.handle(), device.handle()), device.is_host())
    }

    /// The options name a mesh and a device that live.
    fn make(context: &Context, options: &ffi::shw_hsdp_options, is_on_host: bool) -> Result<Hsdp> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // SAFETY: context, mesh, device and options live for the call.
        let handle = unsafe { raw::hsdp_create(context.handle(), options) }?;
        Ok(Hsdp {
            handle,
            number: COUNT.fetch_add(1, Ordering::Relaxed),
            units: Vec::new(),
            context: context.clone(),
            readers: Vec::new(),
            is_on_host,
        })
    }

    /// Makes a unit of these parameters, numbered from 0, and cuts them: all ranks call it. The name is for messages, and equal on all
    /// ranks; INVALID_ARGUMENT on all of them where they disagree, naming the unit and a rank that differs. UNIMPLEMENTED naming a
    /// parameter that lies on another device than the units.
    pub fn add_unit(&mut self, name: &str, options: &UnitOptions, params: &[Param]) -> Result<Unit> {
        self.make_unit(name, options, params, |_| Ok(()))
    }

    /// As [`Hsdp::add_unit`], with memory of the host for whole parameters: asked for when the unit is gathered, given back when it is
    /// resharded. UNIMPLEMENTED on a device with memory of its own.
    pub fn add_unit_in(
        &mut self,
        allocator: impl HostAllocator,
        name: &str,
        options: &UnitOptions,
        params: &[Param],
    ) -> Result<Unit> {
        if !self.is_on_host {
            let text = format!("unit '{name}' has its whole parameters on a device, and the allocator lends memory of the host");
            return Err(Error::new(ErrorKind::Unimplemented, text));
        }
        self.make_unit(name, options, params, |unit| {
            let table = table_of(allocator);
            // SAFETY: on success the library owns `user`; on failure it is taken back here.
            unsafe { raw::hsdp_unit_set_allocator(unit, &table) }.map_err(|error| {
                if let Some(release) = table.release {
                    unsafe { release(table.user) };
                }
                error.into()
            })
        })
    }

    fn make_unit(
        &mut self,
        name: &str,
        options: &UnitOptions,
        params: &[Param],
        prepare: impl FnOnce(*mut ffi::shw_hsdp_unit) -> Result<()>,
    ) -> Result<Unit> {
        // SAFETY: name and options live for the call.
        let unit = unsafe { raw::hsdp_unit_create(self.handle, name.as_bytes(), &options.raw()) }?;
        self.units.push(unit);
        prepare(unit)?;
        // SAFETY: elements are borrowed until the unit is sealed, which is before they go; a unit that fails to be is never sealed.
        with_batch(params, |batch| unsafe { raw::hsdp_unit_add_params(unit, batch) })??;
        unsafe { raw::hsdp_unit_seal(unit) }?;
        Ok(Unit { context: self.number, number: self.units.len() - 1 })
    }

    /// Of this context, in the process.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn raw(&self, unit: Unit) -> Result<*mut ffi::shw_hsdp_unit> {
        match self.units.get(unit.number) {
            Some(&handle) if unit.context == self.number => Ok(handle),
            _ => Err(Error::new(ErrorKind::InvalidArgument, format!("{unit:?} belongs to another context"))),
        }
    }

    // ---- an iteration ----

    /// Before forward of the unit: waits for its whole parameters, and gathers what probably comes next.
    pub fn pre_forward(&mut self, unit: Unit) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_unit_pre_forward(self.raw(unit)?, std::ptr::null()) }?)
    }

    /// After forward of the unit: reshards as its policy says.
    pub fn post_forward(&mut self, unit: Unit) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_unit_post_forward(self.raw(unit)?, std::ptr::null()) }?)
    }

    /// Before forward inside of backward, for activations that are computed again.
    pub fn pre_recompute(&mut self, unit: Unit) -> Result<()> {
        // SAFETY: the handle lives, options for the call.
        Ok(unsafe { raw::hsdp_unit_pre_forward(self.raw(unit)?, &recompute()) }?)
    }

    /// After it.
    pub fn post_recompute(&mut self, unit: Unit) -> Result<()> {
        // SAFETY: as above.
        Ok(unsafe { raw::hsdp_unit_post_forward(self.raw(unit)?, &recompute()) }?)
    }

    /// Before backward of the unit: waits for its whole parameters, and gathers what ran before it.
    pub fn pre_backward(&mut self, unit: Unit) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_unit_pre_backward(self.raw(unit)?) }?)
    }

    /// After backward of the unit, its gradients were handed in: reduces and reshards as the settings say.
    pub fn post_backward(&mut self, unit: Unit) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_unit_post_backward(self.raw(unit)?) }?)
    }

    /// The backward is over: reduces what was not reduced yet, and in the last backward of an iteration waits for all sums.
    pub fn finalize_backward(&mut self) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_finalize_backward(self.handle) }?)
    }

    // ---- single steps ----

    /// Waits for a gather under way; nothing where there is none.
    pub fn wait(&mut self, unit: Unit) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_unit_wait(self.raw(unit)?) }?)
    }

    /// Reshards; a gather under way is dropped.
    pub fn reshard(&mut self, unit: Unit, phase: Phase) -> Result<()> {
        let phase = if phase == Phase::Forward { ffi::SHW_HSDP_FORWARD } else { ffi::SHW_HSDP_BACKWARD };
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_unit_reshard(self.raw(unit)?, phase) }?)
    }

    // ---- memory ----

    /// A whole parameter, row-major, while its unit is unsharded.
    pub fn full<T: Element>(&self, unit: Unit, index: usize) -> Result<&[T]> {
        // SAFETY: the memory stays until the next change, which needs &mut self.
        unsafe { Ok(elements(&self.view(unit, ffi::SHW_HSDP_VIEW_FULL, index)?)?.unwrap_or(&[])) }
    }

    /// This rank's part of a parameter.
    pub fn local<T: Element>(&self, unit: Unit, index: usize) -> Result<&[T]> {
        // SAFETY: as in full.
        unsafe { Ok(elements(&self.view(unit, ffi::SHW_HSDP_VIEW_LOCAL, index)?)?.unwrap_or(&[])) }
    }

    /// The gradient of this rank's part; none where there is no gradient.
    pub fn grad<T: Element>(&self, unit: Unit, index: usize) -> Result<Option<&[T]>> {
        // SAFETY: as in full.
        unsafe { elements(&self.view(unit, ffi::SHW_HSDP_VIEW_GRAD, index)?) }
    }

    /// Changes this rank's part of a parameter by its gradient, as an optimizer does; the gradient is empty where there is none.
    /// What was gathered before is of no use afterwards, and a gather of the unit under way is FAILED_PRECONDITION: call
    /// [`Hsdp::step_event`] before then. Waits for saves in the background that read the shards.
    pub fn update<T: Element>(&mut self, unit: Unit, index: usize, change: impl FnOnce(&mut [T], &[T])) -> Result<()> {
        self.check_not_gathered(unit)?;
        self.wait_for_readers();
        // SAFETY: shard and gradient are different memory, nobody reads the shard, and &mut self keeps others away.
        unsafe {
            let local = self.view(unit, ffi::SHW_HSDP_VIEW_LOCAL, index)?;
            let grad = elements(&self.view(unit, ffi::SHW_HSDP_VIEW_GRAD, index)?)?.unwrap_or(&[]);
            let count = elements::<T>(&local)?.map_or(0, <[T]>::len);
            let param = borrowed_mut(local.data.cast::<T>(), count as u64);
            change(param, grad);
        }
        self.step_event()
    }

    fn check_not_gathered(&self, unit: Unit) -> Result<()> {
        if self.state(unit)? != UnitState::Gathering {
            return Ok(());
        }
        let text = "the unit is being gathered, and its shard is read: call step_event before it changes";
        Err(Error::new(ErrorKind::FailedPrecondition, text))
    }

    /// A save that reads the shards from now on.
    pub(super) fn read_by(&mut self, save: Weak<Handle>) {
        self.readers.retain(|each| each.strong_count() > 0);
        self.readers.push(save);
    }

    fn wait_for_readers(&mut self) {
        self.readers.drain(..).filter_map(|save| save.upgrade()).for_each(|save| save.wait_until_unread());
    }

    /// Where a parameter or its gradient lies, on whichever device. FAILED_PRECONDITION for a whole parameter of a unit that is not
    /// unsharded.
    pub fn memory(&self, unit: Unit, view: View, index: usize) -> Result<ViewMemory> {
        Ok(ViewMemory::of(&self.view(unit, view.number(), index)?))
    }

    fn view(&self, unit: Unit, view: i32, index: usize) -> Result<ffi::shw_tensor> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_unit_views(self.raw(unit)?, view, index as u64, 1) }?)
    }

    /// The shards have changed: what was gathered before is of no use.
    pub fn step_event(&mut self) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_step_event(self.handle, 0) }?)
    }

    /// Drops all gradients of the shards.
    pub fn zero_grads(&mut self) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_zero_grads(self.handle) }?)
    }

    /// Multiplies all gradients of the shards by a finite factor.
    pub fn scale_grads(&mut self, factor: f64) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_scale_grads(self.handle, factor) }?)
    }

    /// Norm of order `p` (positive; infinity: the largest) of the gradients of all shards, replicas counted once; equal on all
    /// ranks, which call it together.
    pub fn global_norm(&mut self, p: f64) -> Result<f64> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_global_norm(self.handle, p) }?)
    }

    /// Scales all gradients such that their norm of order `p` is at most `max_norm`; the norm before.
    pub fn clip_grads(&mut self, max_norm: f64, p: f64) -> Result<f64> {
        let norm = self.global_norm(p)?;
        let factor = max_norm / (norm + 1e-6);
        if factor < 1.0 {
            self.scale_grads(factor)?;
        }
        Ok(norm)
    }

    /// Recovery, on all ranks: gives up what is under way and drops gradients and all that was gathered. After a failure the mesh
    /// needs new communicators first.
    pub fn reset(&mut self) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_reset(self.handle) }?)
    }

    // ---- what is there ----

    /// Number of parameters of a unit.
    pub fn param_count(&self, unit: Unit) -> Result<usize> {
        // SAFETY: the handle lives.
        Ok(unsafe { ffi::shw_hsdp_unit_param_count(self.raw(unit)?) } as usize)
    }

    /// Name of a parameter; empty where there is none.
    pub fn param_name(&self, unit: Unit, index: usize) -> Result<String> {
        let handle = self.raw(unit)?;
        // SAFETY: the handle lives.
        Ok(sized_text(|size| unsafe { ffi::shw_hsdp_unit_param_name(handle, index as u64, size) }))
    }

    /// What this rank holds of a parameter.
    pub fn local_box(&self, unit: Unit, index: usize) -> Result<LocalBox> {
        // SAFETY: the handle lives, and with it what the box points to.
        unsafe {
            let found = raw::hsdp_unit_box(self.raw(unit)?, index as u64)?;
            let list = |values: *const i64| borrowed(values, found.ndim as u64).to_vec();
            Ok(LocalBox {
                offsets: list(found.offsets),
                sizes: list(found.sizes),
                global_shape: list(found.global_shape),
            })
        }
    }

    /// Layout of a parameter over the mesh, for tensors of the host that are cut as it is. UNIMPLEMENTED for a ragged unit, whose cut
    /// is no rule of a mesh.
    pub fn layout(&self, unit: Unit, index: usize) -> Result<Layout> {
        // SAFETY: the handle lives; the layout is owned from here on.
        Ok(unsafe { Layout::of(raw::hsdp_unit_layout(self.raw(unit)?, index as u64)?) })
    }

    /// Where the parameters of a unit are.
    pub fn state(&self, unit: Unit) -> Result<UnitState> {
        // SAFETY: the handle lives.
        Ok(match unsafe { ffi::shw_hsdp_unit_state(self.raw(unit)?) } {
            ffi::SHW_HSDP_GATHERING => UnitState::Gathering,
            ffi::SHW_HSDP_UNSHARDED => UnitState::Unsharded,
            ffi::SHW_HSDP_SECONDARY => UnitState::Secondary,
            _ => UnitState::Sharded,
        })
    }

    /// How far the gradients of a unit are.
    pub fn grad_state(&self, unit: Unit) -> Result<GradState> {
        // SAFETY: the handle lives.
        Ok(match unsafe { ffi::shw_hsdp_unit_grad_state(self.raw(unit)?) } {
            ffi::SHW_HSDP_GRAD_LOCAL => GradState::Local,
            ffi::SHW_HSDP_GRAD_PACKED => GradState::Packed,
            ffi::SHW_HSDP_GRAD_SCATTERING => GradState::Scattering,
            ffi::SHW_HSDP_GRAD_PARTIAL => GradState::Partial,
            ffi::SHW_HSDP_GRAD_REPLICATING => GradState::Replicating,
            ffi::SHW_HSDP_GRAD_READY => GradState::Ready,
            _ => GradState::None,
        })
    }

    /// Memory that is and was held for a kind, in all units.
    pub fn stats(&self, kind: MemoryKind) -> Result<Memory> {
        // SAFETY: the handle lives.
        Ok(Memory::of(&unsafe { raw::hsdp_stats(self.handle, kind as i32) }?))
    }

    /// Memory that is and was held for a unit, padding included.
    pub fn unit_stats(&self, unit: Unit) -> Result<Memory> {
        // SAFETY: the handle lives.
        Ok(Memory::of(&unsafe { raw::hsdp_unit_stats(self.raw(unit)?) }?))
    }

    /// Adds what this rank holds of all units to a state, under `prefix` followed by the names of the parameters, with their
    /// layouts: a save plans them without asking other ranks, and any number of ranks loads them. The state has the memory
    /// to itself as long as it lives. After a load into it call [`Hsdp::step_event`]. FAILED_PRECONDITION where gradients still travel,
    /// or shards are being gathered. Waits for saves in the background that read the shards.
    pub fn add_to_state<'a>(&'a mut self, prefix: &str, content: Content, state: &mut State<'a>) -> Result<()> {
        for number in 0..self.units.len() {
            self.check_not_gathered(Unit { context: self.number, number })?; // a load would change what others read
        }
        self.wait_for_readers();
        // SAFETY: the state borrows self for its life, and keeps the context alive beside that.
        unsafe { self.lend(prefix, content, state.handle()) }
    }

    /// # Safety
    /// Nobody changes the memory while the state is used, and it has it to itself where it is loaded.
    pub(super) unsafe fn lend(&self, prefix: &str, content: Content, state: *mut ffi::shw_state) -> Result<()> {
        let what = if content == Content::Grads { ffi::SHW_HSDP_GRADS } else { ffi::SHW_HSDP_PARAMS };
        Ok(unsafe { raw::hsdp_add_to_state(self.handle, prefix.as_bytes(), what, state) }?)
    }
}

fn recompute() -> ffi::shw_hsdp_phase_options {
    ffi::shw_hsdp_phase_options {
        struct_size: size_of::<ffi::shw_hsdp_phase_options>() as u32,
        flags: ffi::SHW_HSDP_RECOMPUTE as u32,
        reserved0: 0,
    }
}

/// The elements of a view; none where it has no memory. INVALID_ARGUMENT for another dtype, UNIMPLEMENTED for memory of a device.
///
/// # Safety
/// The view describes memory of the library that outlives 'a and that nobody changes meanwhile.
unsafe fn elements<'a, T: Element>(view: &ffi::shw_tensor) -> Result<Option<&'a [T]>> {
    if view.data.is_null() {
        return Ok(None);
    }
    check_on_host(view)?;
    if view.dtype != T::DTYPE.0 {
        let text = format!("the elements are {}, not {}", DType(view.dtype), T::DTYPE);
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    let count = view.byte_size / size_of::<T>() as u64;
    Ok(Some(unsafe { borrowed(view.data.cast::<T>(), count) }))
}

impl std::fmt::Debug for Hsdp {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Hsdp").field("units", &self.units.len()).finish_non_exhaustive()
    }
}

impl Drop for Hsdp {
    fn drop(&mut self) {
        for unit in &self.units {
            // SAFETY: owned, released once.
            unsafe { ffi::shw_hsdp_unit_release(*unit) }
        }
        // SAFETY: owned, released once.
        unsafe { ffi::shw_hsdp_release(self.handle) }
    }
}
