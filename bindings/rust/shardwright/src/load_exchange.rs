// SPDX-License-Identifier: Apache-2.0
//! Exchanges of loads: ranks read stored blocks for each other, and their host moves the bytes.

use crate::error::Result;
use crate::memory::{borrowed, borrowed_mut};
use crate::planner::{LoadPlanner, Plan};
use crate::report::Report;
use shardwright_sys::{ffi, raw};

/// Plans an exchange from the want lists of all ranks, in rank order: one plan for each rank. Equal lists give equal plans.
/// INVALID_ARGUMENT naming the rank when they are not those of all ranks or of one generation.
pub fn exchange_plans(want_lists: &[Plan]) -> Result<Vec<Plan>> {
    let wants: Vec<_> = want_lists.iter().map(Plan::handle).collect();
    let mut plans = vec![std::ptr::null_mut(); wants.len()];
    // SAFETY: both arrays have so many places, and the plans live for the call.
    unsafe { raw::exchange_plans(wants.as_ptr(), wants.len() as u64, plans.as_mut_ptr()) }?;
    Ok(plans.into_iter().map(Plan::new).collect())
}

/// The exchange of one load of one rank, made by [`LoadPlanner::exchange`]: for each of its rounds [`begin_round`], the
/// movement of the bytes, [`end_round`]; then [`finish`].
///
/// [`begin_round`]: LoadExchange::begin_round
/// [`end_round`]: LoadExchange::end_round
/// [`finish`]: LoadExchange::finish
pub struct LoadExchange<'x, 'p, 's> {
    handle: *mut ffi::shw_load_exchange,
    planner: &'x mut LoadPlanner<'p, 's>,
}

impl<'x, 'p, 's> LoadExchange<'x, 'p, 's> {
    pub(crate) fn new(handle: *mut ffi::shw_load_exchange, planner: &'x mut LoadPlanner<'p, 's>) -> Self {
        LoadExchange { handle, planner }
    }

    /// How many rounds there are, the same number on all ranks; 0 where nothing is exchanged.
    pub fn round_count(&self) -> u64 {
        // SAFETY: the handle lives as long as self, here and below.
        unsafe { ffi::shw_load_exchange_round_count(self.handle) }
    }

    /// Begins the next round: what this rank reads for others in it is there. FAILED_PRECONDITION when the round before has
    /// not ended or there are no more; after any other error the load has failed. The round can be used until the exchange
    /// goes on.
    pub fn begin_round(&mut self) -> Result<ExchangeRound<'_>> {
        let round = unsafe { raw::load_exchange_begin_round(self.handle) }?;
        // SAFETY: the arrays are valid until the round ends, for which the exchange must be borrowed anew.
        let (outgoing_sizes, incoming_sizes) = unsafe {
            (borrowed(round.outgoing_sizes, round.rank_count), borrowed(round.incoming_sizes, round.rank_count))
        };
        Ok(ExchangeRound {
            outgoing: unsafe { borrowed(round.outgoing.cast(), round.outgoing_size) },
            outgoing_sizes,
            incoming: unsafe { borrowed_mut(round.incoming.cast(), round.incoming_size) },
            incoming_sizes,
        })
    }

    /// Ends the round, whose incoming bytes are there: what came is checked and goes to where it is wanted. DATA_LOSS when it
    /// is not what was stored.
    pub fn end_round(&mut self) -> Result<()> {
        Ok(unsafe { raw::load_exchange_end_round(self.handle) }?)
    }

    /// Reads what no other rank wants, once, when all rounds have ended.
    pub fn finish(&mut self) -> Result<Report> {
        let outcome = unsafe { raw::load_exchange_finish(self.handle) };
        self.planner.loaded(outcome.map(Report::new).map_err(Into::into))
    }
}

impl std::fmt::Debug for LoadExchange<'_, '_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("LoadExchange").field("round_count", &self.round_count()).finish_non_exhaustive()
    }
}

impl Drop for LoadExchange<'_, '_, '_> {
    fn drop(&mut self) {
        // SAFETY: owned, released once; rounds borrow it.
        unsafe { ffi::shw_load_exchange_release(self.handle) }
    }
}

/// One round of one rank. What rank A has `outgoing` for rank B goes to what B has `incoming` from A.
///
/// A round cannot be used when it has ended:
///
/// ```compile_fail,E0499
/// fn late(exchange: &mut shardwright::LoadExchange) -> shardwright::Result<()> {
///     let mut round = exchange.begin_round()?;
///     exchange.end_round()?;
///     round.incoming(0).fill(0);
///     Ok(())
/// }
/// ```
pub struct ExchangeRound<'r> {
    outgoing: &'r [u8],
    outgoing_sizes: &'r [u64],
    incoming: &'r mut [u8],
    incoming_sizes: &'r [u64],
}

impl<'r> ExchangeRound<'r> {
    /// Number of ranks.
    pub fn rank_count(&self) -> usize {
        self.outgoing_sizes.len()
    }

    /// What goes to a rank; empty where there is nothing. Panics when there is no such rank.
    pub fn outgoing(&self, rank: usize) -> &'r [u8] {
        &self.outgoing[part(self.outgoing_sizes, rank)]
    }

    /// To be filled with what a rank has for this one. Panics when there is no such rank.
    pub fn incoming(&mut self, rank: usize) -> &mut [u8] {
        &mut self.incoming[part(self.incoming_sizes, rank)]
    }
}

impl std::fmt::Debug for ExchangeRound<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("ExchangeRound")
            .field("outgoing_sizes", &self.outgoing_sizes)
            .field("incoming_sizes", &self.incoming_sizes)
            .finish()
    }
}

/// Where the bytes of a rank lie.
fn part(sizes: &[u64], rank: usize) -> std::ops::Range<usize> {
    let begin: u64 = sizes[..rank].iter().sum();
    begin as usize..(begin + sizes[rank]) as usize
}
