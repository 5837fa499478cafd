//! Field types with a value that means nothing is said, as venues with Simple Binary Encoding have them.

use crate::layout::{Char, Field, FieldValue, Scaled, le};
use tickwire_market::Price;

/// A price of 9 implied decimals (`PRICE9`, `Decimal9`).
pub type Price9 = Scaled<le::I64, 9>;
/// A quantity of 4 implied decimals (`DecimalQty`).
pub type Qty4 = Scaled<le::I32, 4>;

impl Price9 {
    /// The price; every value fits.
    #[inline(always)]
    pub const fn price(self) -> Price {
        Price::from_raw(self.0.get())
    }

    /// The field of a price.
    #[inline]
    pub const fn of(price: Price) -> Price9 {
        Scaled(le::I64::new(price.raw()))
    }
}

/// A type with a value that means nothing is said: the schema's `nullValue`, the largest of a number, 0 of a
/// character.
pub trait Nullable: Field + PartialEq {
    /// That value.
    const NULL: Self;
}

macro_rules! nullable {
    ($($ty:ty = $null:expr;)*) => {$(
        impl Nullable for $ty {
            const NULL: $ty = $null;
        }
    )*};
}

nullable! {
    u8 = u8::MAX;
    i8 = i8::MAX;
    le::U16 = le::U16::MAX_VALUE;
    le::U32 = le::U32::MAX_VALUE;
    le::U64 = le::U64::MAX_VALUE;
    le::I32 = le::I32::new(i32::MAX);
    le::I64 = le::I64::new(i64::MAX);
    Price9 = Scaled(le::I64::new(i64::MAX));
    Qty4 = Scaled(le::I32::new(i32::MAX));
    Char = Char(0);
}

/// A field that may be null.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Optional<T>(pub T);

impl<T: Nullable> Optional<T> {
    /// Null.
    pub const NULL: Optional<T> = Optional(T::NULL);

    /// What it says, if anything.
    #[inline(always)]
    pub fn get(self) -> Option<T> {
        if self.0 == T::NULL { None } else { Some(self.0) }
    }
}

impl Optional<Price9> {
    /// The price, if there is one.
    #[inline(always)]
    pub fn price(self) -> Option<Price> {
        self.get().map(Price9::price)
    }
}

impl<T: Nullable> From<Option<T>> for Optional<T> {
    fn from(value: Option<T>) -> Optional<T> {
        Optional(value.unwrap_or(T::NULL))
    }
}

/// Encoders leave null what they have nothing to say about.
impl<T: Nullable> Field for Optional<T> {
    const BLANK: Optional<T> = Optional::NULL;
    fn value(&self) -> FieldValue<'_> {
        if self.0 == T::NULL {
            FieldValue::Null
        } else {
            self.0.value()
        }
    }
}

/// ASCII text, left-justified, padded with NULs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Text<const N: usize>(pub [u8; N]);

impl<const N: usize> Text<N> {
    /// `text` padded with NULs, `None` if it is longer than the field.
    pub fn new(text: &[u8]) -> Option<Text<N>> {
        let mut bytes = [0; N];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Text(bytes))
    }

    /// The text without its padding.
    pub const fn trimmed(&self) -> &[u8] {
        crate::layout::trim(&self.0)
    }
}

impl<const N: usize> Field for Text<N> {
    const BLANK: Text<N> = Text([0; N]);
    fn value(&self) -> FieldValue<'_> {
        FieldValue::Text(&self.0)
    }
}

impl<const N: usize> core::fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "\"{}\"", self.trimmed().escape_ascii())
    }
}
