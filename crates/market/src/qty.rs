//! Quantities: 32 bits for one order, 64 bits for sums of them.

use core::fmt;

/// The quantity of one order, in the venue's units (shares, contracts, lots). Every order-level field of the
/// supported venues fits 32 bits; a decoder counts a larger value as out of range instead of cutting it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Qty(pub u32);

/// A sum of quantities: a price level, a trade of a cross, a day's volume. Wider than its parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Volume(pub u64);

impl Qty {
    /// Nothing.
    pub const ZERO: Qty = Qty(0);

    /// Whether nothing is left.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, `None` if `other` is larger.
    #[inline]
    pub const fn checked_sub(self, other: Qty) -> Option<Qty> {
        match self.0.checked_sub(other.0) {
            Some(q) => Some(Qty(q)),
            None => None,
        }
    }
}

impl Volume {
    /// Nothing.
    pub const ZERO: Volume = Volume(0);

    /// Whether nothing is there.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// As the quantity of one order, `None` if it exceeds 32 bits.
    #[inline]
    pub const fn as_qty(self) -> Option<Qty> {
        if self.0 <= u32::MAX as u64 {
            Some(Qty(self.0 as u32))
        } else {
            None
        }
    }
}

impl From<Qty> for Volume {
    #[inline]
    fn from(q: Qty) -> Volume {
        Volume(q.0 as u64)
    }
}

impl core::ops::AddAssign<Qty> for Volume {
    /// 2^32 orders of the largest quantity fit, so this cannot overflow in any book.
    #[inline]
    fn add_assign(&mut self, q: Qty) {
        self.0 += q.0 as u64;
    }
}

impl fmt::Display for Qty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Qty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
