//! A configuration file's text becomes a value, and a value the text of a file ([`write`](write())).
//!
//! `toml` parses; what it has parsed is handed to serde by one reader here. Its own hands it on by three
//! (tables, values, values with their place), and every type that stands in a configuration is then compiled
//! three times in every crate that reads one. Otherwise both say the same, with two differences: a section
//! that is a struct has to be written as a table (`toml` takes an array of its values in order too), and no
//! integer has more than 64 bits.

use std::fmt::{self, Write as _};
use std::ops::Range;
use std::vec;

use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, Unexpected, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

mod writer;

pub use writer::write;

/// Reads the text of a file.
///
/// # Errors
/// Line, column, the line itself, and what is wrong with it.
///
/// ```
/// #[derive(serde::Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Limits {
///     max_order_quantity: u32,
/// }
///
/// let limits: Limits = tickwire_console::settings::read("max_order_quantity = 500").unwrap();
/// assert_eq!(limits.max_order_quantity, 500);
/// let wrong = tickwire_console::settings::read::<Limits>("max_order_quantity = \"many\"").err().unwrap();
/// assert!(wrong.contains("line 1, column 22") && wrong.contains("invalid type: string \"many\", expected u32"));
/// ```
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let table = DeTable::parse(text).map_err(|e| e.to_string().trim_end().to_owned())?;
    let span = table.span();
    let root = Item {
        what: What::Value(DeValue::Table(table.into_inner())),
        span: span.clone(),
    };
    T::deserialize(root).map_err(|fault| fault.within(&span).shown(text))
}

/// What is wrong, and where in the text if that is known.
#[derive(Debug)]
struct Fault {
    message: String,
    span: Option<Range<usize>>,
}

impl Fault {
    /// Wrong somewhere in `span`, unless the place is known better.
    fn within(mut self, span: &Range<usize>) -> Fault {
        self.span.get_or_insert_with(|| span.clone());
        self
    }

    /// As `toml` shows what it cannot parse.
    fn shown(&self, text: &str) -> String {
        let Some(span) = &self.span else {
            return self.message.clone();
        };
        let start = text.floor_char_boundary(span.start);
        let before = &text[..start];
        let number = before.matches('\n').count() + 1;
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let line = text[begin..].lines().next().unwrap_or("");
        let column = text[begin..start].chars().count();
        let marked = (span.end.saturating_sub(span.start)).min(line.len().saturating_sub(column));
        let gutter = " ".repeat(number.to_string().len() + 1);
        let mut shown = String::new();
        let _ = write!(
            shown,
            "TOML parse error at line {number}, column {}\n{gutter}|\n{number} | {line}\n{gutter}| {}{}\n{}",
            column + 1,
            " ".repeat(column),
            "^".repeat(marked.max(1)),
            self.message.trim_end(),
        );
        shown
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Fault {
        Fault {
            message: message.to_string(),
            span: None,
        }
    }
}

/// A key, a value, or one of the numbers that say where a value stands.
struct Item<'de> {
    what: What<'de>,
    span: Range<usize>,
}

enum What<'de> {
    /// A name that `toml`'s own types ask for.
    Name(&'static str),
    Text(String),
    Offset(usize),
    Value(DeValue<'de>),
}

/// A number as a visitor takes it.
enum Number {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

/// By this key `toml` hands a date on; a test looks whether it still does.
const DATE: &str = "$__toml_private_datetime";
/// By this name `toml::Spanned` asks for start, end and value, in this order; a test looks whether it still
/// does.
const SPANNED: &str = "$__serde_spanned_private_Spanned";

impl<'de> Item<'de> {
    fn name(name: &'static str) -> Item<'de> {
        Item {
            what: What::Name(name),
            span: 0..0,
        }
    }

    fn of(value: Spanned<DeValue<'de>>) -> Item<'de> {
        Item {
            span: value.span(),
            what: What::Value(value.into_inner()),
        }
    }

    /// Its text, if it is one.
    fn as_text(&self) -> Option<&str> {
        match &self.what {
            What::Name(name) => Some(name),
            What::Text(text) => Some(text),
            What::Value(DeValue::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Its number, if it is one that 64 bits hold.
    fn number(&self) -> Result<Option<Number>, Fault> {
        match &self.what {
            What::Offset(offset) => Ok(Some(Number::Unsigned(*offset as u64))),
            What::Value(DeValue::Integer(digits)) => {
                let signed = i64::from_str_radix(digits.as_str(), digits.radix()).map(Number::Signed);
                let number = signed
                    .or_else(|_| u64::from_str_radix(digits.as_str(), digits.radix()).map(Number::Unsigned));
                number
                    .map(Some)
                    .map_err(|_| de::Error::custom("integer number overflowed"))
            }
            What::Value(DeValue::Float(digits)) => match digits.as_str().parse::<f64>() {
                Ok(number)
                    if number.is_finite() || !digits.as_str().contains(|c: char| c.is_ascii_digit()) =>
                {
                    Ok(Some(Number::Float(number)))
                }
                _ => Err(de::Error::custom("floating-point number overflowed")),
            },
            _ => Ok(None),
        }
    }

    /// It is not what is wanted.
    fn refused(&self, wanted: &dyn de::Expected) -> Fault {
        let number = self.number().ok().flatten();
        let unexpected = match (&self.what, &number) {
            (_, Some(Number::Signed(number))) => Unexpected::Signed(*number),
            (_, Some(Number::Unsigned(number))) => Unexpected::Unsigned(*number),
            (_, Some(Number::Float(number))) => Unexpected::Float(*number),
            (What::Value(DeValue::Boolean(value)), _) => Unexpected::Bool(*value),
            (What::Value(DeValue::Array(_)), _) => Unexpected::Seq,
            (What::Value(DeValue::Table(_) | DeValue::Datetime(_)), _) => Unexpected::Map,
            _ => self.as_text().map_or(Unexpected::Other("value"), Unexpected::Str),
        };
        de::Error::invalid_type(unexpected, wanted)
    }

    /// Its keys and their values, of a table or of a date.
    fn pairs(self) -> Result<Pairs<'de>, Item<'de>> {
        match self.what {
            What::Value(DeValue::Table(table)) => Ok(Pairs::of(
                table
                    .into_iter()
                    .map(|(key, value)| {
                        let name = Item {
                            span: key.span(),
                            what: What::Text(key.into_inner().into_owned()),
                        };
                        (name, Item::of(value))
                    })
                    .collect(),
            )),
            What::Value(DeValue::Datetime(date)) => {
                let text = Item {
                    what: What::Text(date.to_string()),
                    span: self.span,
                };
                Ok(Pairs::of(vec![(Item::name(DATE), text)]))
            }
            _ => Err(self),
        }
    }

    /// It and where it stands, by the names that `Spanned` asks for.
    fn with_its_place(self, fields: &[&'static str]) -> Pairs<'de> {
        let span = self.span.clone();
        let [start, end, value] = [0, 1, 2].map(|at| Item::name(fields.get(at).copied().unwrap_or_default()));
        let offset = |offset| Item {
            what: What::Offset(offset),
            span: span.clone(),
        };
        Pairs::of(vec![
            (start, offset(span.start)),
            (end, offset(span.end)),
            (value, self),
        ])
    }

    /// Its values in order, of an array.
    fn values(self) -> Result<Values<'de>, Item<'de>> {
        match self.what {
            What::Value(DeValue::Array(array)) => Ok(Values(
                array.into_iter().map(Item::of).collect::<Vec<_>>().into_iter(),
            )),
            _ => Err(self),
        }
    }

    /// A name, or a table with one: which variant, and what it holds.
    fn variant(self) -> Result<Variant<'de>, Fault> {
        if self.as_text().is_some() {
            return Ok(Variant {
                name: self,
                holds: None,
            });
        }
        match self.pairs().map(|pairs| pairs.rest) {
            Ok(mut pairs) => match (pairs.next(), pairs.len()) {
                (Some((name, value)), 0) => Ok(Variant {
                    name,
                    holds: Some(value),
                }),
                (Some(_), _) => Err(de::Error::custom("wanted exactly 1 element, more than 1 element")),
                (None, _) => Err(de::Error::custom("wanted exactly 1 element, found 0 elements")),
            },
            Err(_) => Err(de::Error::custom("wanted string or table")),
        }
    }
}

/// Methods for which a number is a number.
macro_rules! numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.deserialize_f64(visitor)
        })*
    };
}

/// Methods for which only text will do.
macro_rules! texts {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            match (&self.what, self.as_text()) {
                (What::Name(name), _) => visitor.visit_borrowed_str(name),
                (_, Some(text)) => visitor.visit_str(text),
                (_, None) => Err(self.refused(&visitor)),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Item<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.what {
            What::Value(DeValue::Boolean(_)) => self.deserialize_bool(visitor),
            What::Value(DeValue::Array(_)) => self.deserialize_seq(visitor),
            What::Value(DeValue::Table(_) | DeValue::Datetime(_)) => self.deserialize_map(visitor),
            What::Value(DeValue::String(_)) | What::Text(_) | What::Name(_) => self.deserialize_str(visitor),
            What::Value(DeValue::Integer(_) | DeValue::Float(_)) | What::Offset(_) => {
                self.deserialize_f64(visitor)
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.what {
            What::Value(DeValue::Boolean(value)) => visitor.visit_bool(value),
            _ => Err(self.refused(&visitor)),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.number()? {
            Some(Number::Signed(number)) => visitor.visit_i64(number),
            Some(Number::Unsigned(number)) => visitor.visit_u64(number),
            Some(Number::Float(number)) => visitor.visit_f64(number),
            None => Err(self.refused(&visitor)),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32
    }

    texts! {
        deserialize_char deserialize_str deserialize_string deserialize_identifier
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.values() {
            Ok(values) => visitor.visit_seq(values),
            Err(item) => Err(item.refused(&visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.pairs() {
            Ok(pairs) => visitor.visit_map(pairs),
            Err(item) => Err(item.refused(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let pairs = if name == SPANNED {
            Ok(self.with_its_place(fields))
        } else {
            self.pairs()
        };
        match pairs {
            Ok(pairs) => visitor.visit_map(pairs),
            Err(item) => Err(item.refused(&visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(self.variant()?)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { bytes byte_buf unit unit_struct }
}

/// Keys and values that are still to be read.
struct Pairs<'de> {
    rest: vec::IntoIter<(Item<'de>, Item<'de>)>,
    value: Option<Item<'de>>,
}

impl<'de> Pairs<'de> {
    fn of(pairs: Vec<(Item<'de>, Item<'de>)>) -> Pairs<'de> {
        Pairs {
            rest: pairs.into_iter(),
            value: None,
        }
    }
}

/// Reads an item by a seed; a fault whose place is not known is somewhere in it.
fn seeded<'de, S: DeserializeSeed<'de>>(seed: S, item: Item<'de>) -> Result<S::Value, Fault> {
    let span = item.span.clone();
    seed.deserialize(item).map_err(|fault| fault.within(&span))
}

impl<'de> de::MapAccess<'de> for Pairs<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, value)) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        seeded(seed, key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        match self.value.take() {
            Some(value) => seeded(seed, value),
            None => Err(de::Error::custom("a value was asked for before its key")),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// Values that are still to be read.
struct Values<'de>(vec::IntoIter<Item<'de>>);

impl<'de> de::SeqAccess<'de> for Values<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        self.0.next().map(|item| seeded(seed, item)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// Which variant, and what it holds.
struct Variant<'de> {
    name: Item<'de>,
    holds: Option<Item<'de>>,
}

/// What a variant holds, if anything.
struct Held<'de>(Option<Item<'de>>);

impl<'de> Held<'de> {
    fn some(self, wanted: &dyn de::Expected) -> Result<Item<'de>, Fault> {
        self.0
            .ok_or_else(|| de::Error::invalid_type(Unexpected::UnitVariant, wanted))
    }
}

impl<'de> de::EnumAccess<'de> for Variant<'de> {
    type Error = Fault;
    type Variant = Held<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Held<'de>), Fault> {
        Ok((seeded(seed, self.name)?, Held(self.holds)))
    }
}

impl<'de> de::VariantAccess<'de> for Held<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.0 {
            None => Ok(()),
            Some(item) => Err(item.refused(&"unit variant").within(&item.span)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seeded(seed, self.some(&"newtype variant")?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Fault> {
        self.some(&"tuple variant")?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.some(&"struct variant")?.deserialize_map(visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::de::IgnoredAny;
    use serde::{Deserialize, Serialize};
    use toml::Spanned;

    use super::read;

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    struct Whole {
        name: String,
        #[serde(default)]
        side: Option<Side>,
        #[serde(default)]
        small: Option<u8>,
        #[serde(default)]
        large: Option<u64>,
        #[serde(default)]
        ratio: f64,
        #[serde(default)]
        on: bool,
        #[serde(default)]
        first: char,
        #[serde(default)]
        pair: Option<(u8, String)>,
        #[serde(default)]
        inner: Option<Inner>,
        #[serde(default)]
        many: Vec<Inner>,
        #[serde(default)]
        by_name: BTreeMap<String, i64>,
        #[serde(default)]
        either: Option<Either>,
        #[serde(default)]
        shape: Option<Shape>,
        #[serde(default)]
        wrapped: Option<Wrapped>,
        #[serde(default)]
        spanned: Option<Spanned<i64>>,
        #[serde(default)]
        free: toml::Table,
        #[serde(default)]
        date: Option<toml::value::Datetime>,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "lowercase")]
    enum Side {
        Buy,
        Sell,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        x: i16,
        #[serde(default)]
        y: Option<String>,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(untagged)]
    enum Either {
        Number(i64),
        Text(String),
    }

    #[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Shape {
        Point,
        Circle(f64),
        Box { a: u8, b: u8 },
        Line(u8, u8),
    }

    #[derive(Deserialize, PartialEq, Debug)]
    struct Wrapped(u32);

    /// Whatever `toml`'s own reader makes of a text, this one makes of it: the value, or the words.
    fn same(text: &str) {
        let own = toml::from_str::<Whole>(text).map_err(|e| e.to_string().trim_end().to_owned());
        assert_eq!(read::<Whole>(text), own, "{text}");
    }

    #[test]
    fn what_toml_reads_is_read() {
        for line in [
            "",
            "side = 'buy'",
            "small = 0xff",
            "small = 1_0",
            "large = 18446744073709551615",
            "ratio = 1",
            "ratio = -1.5e3",
            "ratio = inf",
            "on = true",
            "first = 'a'",
            "pair = [1, \"a\"]",
            "inner = { x = -5 }",
            "[inner]\nx = 5\ny = \"\"\"\nlong\"\"\"",
            "[[many]]\nx = 1\n[[many]]\nx = 2",
            "by-name = { a = 1, \"b c\" = 2, d.e = 3 }",
            "by-name = { a = 1, \"b c\" = 2 }",
            "either = 5",
            "either = 'five'",
            "shape = 'point'",
            "shape = { circle = 2.0 }",
            "shape = { box = { a = 1, b = 2 } }",
            "shape = { line = [1, 2] }",
            "wrapped = 7",
            "spanned =   12",
            "free = { a = 1, b = [1.5, 'x'], c = { d = 2026-11-27, e = true } }",
            "date = 2026-11-27T09:30:00Z",
            "date = 09:30:00",
        ] {
            same(&format!("name = 'é'\n{line}\n"));
        }
        let spanned = read::<BTreeMap<String, Spanned<IgnoredAny>>>("a = 1\nbc = [ 1,\n 2 ]\n").unwrap();
        assert_eq!(spanned["bc"].span(), 11..20);
    }

    #[test]
    fn what_toml_refuses_is_refused_in_the_same_words() {
        for line in [
            "side = 'hold'",
            "side = 5",
            "small = 256",
            "small = -1",
            "small = 'x'",
            "small = 1.5",
            "small = true",
            "ratio = 1e999",
            "ratio = 'x'",
            "on = 1",
            "first = 'ab'",
            "pair = [1]",
            "pair = [1, 'a', 2]",
            "inner = { y = 'a' }",
            "inner = { x = 1, z = 2 }",
            "inner = 5",
            "[inner]\nx = 70000",
            "[[many]]\nx = 1\n[[many]]\nx = 'é', ",
            "[[many]]\nx = 1\n[[many]]\nx = 'é'",
            "many = [{ x = 1 }, { }]",
            "by-name = { a = 'x' }",
            "either = true",
            "shape = 'square'",
            "shape = { point = 1, circle = 2.0 }",
            "shape = { }",
            "shape = 'circle'",
            "shape = { box = { a = 1, b = 300 } }",
            "shape = 7",
            "wrapped = 'x'",
            "date = 'x'",
            "unknown = 1",
            "unknown = { a = 1 }",
            "name = 'twice'",
            "on = ",
            "on = tru",
            "[inner",
        ] {
            same(&format!("name = 'é'\n{line}\n"));
            same(&format!("\r\nname = 'é'\r\n{line}"));
        }
        same("");
        same("on = true");
        let large = read::<Whole>("name = 'é'\nlarge = 18446744073709551616").unwrap_err();
        assert!(
            large.contains("line 2, column 9") && large.contains("overflowed"),
            "{large}"
        );
        let row = read::<Whole>("name = 'é'\ninner = [5]").unwrap_err();
        assert!(
            row.contains("line 2") && row.contains("invalid type: sequence, expected struct Inner"),
            "{row}"
        );
    }
}
