//! What may trade of quotes and orders in options.

/// What may trade: so many contracts, and what they cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exposure {
    /// Contracts.
    pub contracts: u64,
    /// Each at its price, in ticks.
    pub premium: u64,
}

impl Exposure {
    /// One side of a quote.
    #[inline]
    pub const fn of(contracts: u32, ticks: u16) -> Exposure {
        Exposure {
            contracts: contracts as u64,
            premium: contracts as u64 * ticks as u64,
        }
    }

    /// Adds to it.
    #[inline]
    pub const fn add(&mut self, more: Exposure) {
        self.contracts += more.contracts;
        self.premium += more.premium;
    }

    /// Takes away what was added.
    #[inline]
    pub const fn remove(&mut self, less: Exposure) {
        self.contracts -= less.contracts;
        self.premium -= less.premium;
    }

    /// Whether this is at least as much of both.
    #[inline]
    pub(crate) const fn has_room_for(&self, more: Exposure) -> bool {
        more.contracts <= self.contracts && more.premium <= self.premium
    }
}

/// The exposure of both sides of a quote.
#[inline]
pub(crate) const fn exposures(qty: [u32; 2], (bid, ask): (u16, u16)) -> [Exposure; 2] {
    [Exposure::of(qty[0], bid), Exposure::of(qty[1], ask)]
}
