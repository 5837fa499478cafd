//! What may trade if everything did, what is held, and how much more may be quoted.

use super::rehearsing::Rehearsed;
use super::{NO_ASK, NO_BID, Quoter, exposures_of};
use crate::exposure::{Exposure, exposures};
use alloc::boxed::Box;
use tickwire_market::{Counter, MassQuoteEntry, Qty};

/// What is held and quoted.
#[derive(Clone, Debug)]
pub(super) struct Exposed {
    /// Contracts that may trade against what is live, per quote and side.
    pub(super) open: Box<[[u32; 2]]>,
    /// The same with what is under way, for all quotes.
    pub(super) all: [Exposure; 2],
    /// What may still be added, by side, and contracts in all; worked out for each decision.
    pub(super) room: [Exposure; 2],
    pub(super) room_all: u64,
    /// Bought less sold, contracts, and paid less received, ticks times contracts.
    pub(super) net: i64,
    pub(super) paid: i64,
    /// Orders beside the quotes that are under way, by side.
    pub(super) beside: [Exposure; 2],
    pub(super) positions: Box<[i64]>,
}

impl Quoter {
    /// Takes room for the message being filled: at once where there is room for all of it. What may trade of
    /// it if it leaves.
    #[inline]
    pub(super) fn fit(&mut self) -> [Exposure; 2] {
        let mut sum = [Exposure::default(); 2];
        for entry in &self.batch.entries[..self.batch.count] {
            for (sum, more) in sum.iter_mut().zip(exposures_of(entry)) {
                sum.add(more);
            }
        }
        let [buys, sells] = sum;
        let is_free = self.exposed.room[0].has_room_for(buys)
            && self.exposed.room[1].has_room_for(sells)
            && buys.contracts + sells.contracts <= self.exposed.room_all;
        if !is_free && self.batch.rehearsed != Rehearsed::UpToMessage {
            return self.squeeze_all();
        }
        if is_free {
            self.occupy(0, buys);
            self.occupy(1, sells);
        }
        sum
    }

    /// The same entry by entry: one that must move loses the sides there is no room for, an improvement is
    /// left out.
    #[cold]
    pub(super) fn squeeze_all(&mut self) -> [Exposure; 2] {
        let count = core::mem::take(&mut self.batch.count);
        let mut sum = [Exposure::default(); 2];
        for at in 0..count {
            let mut entry = self.batch.entries[at];
            if !self.squeeze(&mut entry, at < self.batch.musts) {
                continue;
            }
            for (sum, more) in sum.iter_mut().zip(exposures_of(&entry)) {
                sum.add(more);
            }
            self.batch.entries[self.batch.count] = entry;
            self.batch.count += 1;
        }
        sum
    }

    /// Takes room for one side.
    #[inline]
    pub(super) fn occupy(&mut self, side: usize, more: Exposure) {
        self.exposed.room[side].remove(more);
        self.exposed.room_all -= more.contracts;
    }

    /// Takes room for an entry, without the sides there is none for if it must move; `false` if the quote is
    /// to be left as it is.
    pub(super) fn squeeze(&mut self, entry: &mut MassQuoteEntry, must: bool) -> bool {
        let wanted = exposures_of(entry);
        for (side, more) in wanted.into_iter().enumerate() {
            if self.exposed.room[side].has_room_for(more) && more.contracts <= self.exposed.room_all {
                self.occupy(side, more);
                continue;
            }
            self.counters.bump(Counter::QuotesCapped);
            if !must {
                if side == 1 {
                    // As if nothing had been taken for the bid.
                    self.exposed.room[0].add(wanted[0]);
                    self.exposed.room_all += wanted[0].contracts;
                }
                return false;
            }
            match side {
                0 => (entry.bid_ticks, entry.bid_qty) = (NO_BID, Qty(0)),
                _ => (entry.ask_ticks, entry.ask_qty) = (NO_ASK, Qty(0)),
            }
        }
        true
    }

    /// Works out how much more may be quoted, if everything traded.
    #[inline]
    pub(super) fn measure_room(&mut self) {
        for side in 0..2 {
            let mut room = self.room_of(side);
            room.contracts = room.contracts.saturating_sub(self.exposed.beside[side].contracts);
            room.premium = room.premium.saturating_sub(self.exposed.beside[side].premium);
            self.exposed.room[side] = room;
        }
        let [bids, asks] = self.exposed.all;
        self.exposed.room_all = self
            .config
            .quoted_max
            .saturating_sub(bids.contracts)
            .saturating_sub(asks.contracts);
    }

    /// How much more may trade on a side if all quotes did; orders beside them are not in it.
    #[inline]
    pub(super) fn room_of(&self, side: usize) -> Exposure {
        let room = |limit: u64, held: i64, open: u64| {
            // What is held the other way makes room.
            limit
                .saturating_add_signed(held.saturating_neg())
                .saturating_sub(open)
        };
        let (contracts_max, net, paid) = match side {
            0 => (self.config.long_max, self.exposed.net, self.exposed.paid),
            _ => (self.config.short_max, -self.exposed.net, -self.exposed.paid),
        };
        let open = self.exposed.all[side];
        Exposure {
            contracts: room(contracts_max, net, open.contracts),
            premium: room(self.config.premium_max[side], paid, open.premium),
        }
    }

    pub(super) fn release(&mut self, gone: [Exposure; 2]) {
        for (all, less) in self.exposed.all.iter_mut().zip(gone) {
            all.remove(less);
        }
    }

    /// Contracts of a live quote that cannot trade any more; before its prices change.
    pub(super) fn release_live(&mut self, at: usize, gone: [u32; 2]) {
        let live = (self.table.live_bids[at], self.table.live_asks[at]);
        self.release(exposures(gone, live));
    }

    pub(super) fn forget_all(&mut self) {
        self.table.clear();
        self.flights.clear();
        self.exposed.open.fill([0; 2]);
        self.exposed.all = [Exposure::default(); 2];
    }
}
