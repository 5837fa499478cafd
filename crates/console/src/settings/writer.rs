//! A value becomes the text of a configuration file.
//!
//! `toml` prints; what it prints is gathered by one writer here. Its own serializers are five (documents,
//! values in a line, arrays of tables, keys, and one that looks what a value will be), and every type that
//! stands in a configuration is then compiled five times in every crate that prints one.

use serde::ser::{self, Error as _, Serialize, Serializer};
use toml::ser::Error;

/// The text of a file: tables below what stands in no table, one value a line, long arrays one element a
/// line.
///
/// # Errors
/// What TOML has no form for: nothing at all, or a list, where a table has to be; a key that is no text.
///
/// ```
/// #[derive(serde::Serialize)]
/// struct Limits {
///     max_order_quantity: u32,
///     account: Option<String>,
/// }
///
/// let limits = Limits { max_order_quantity: 500, account: None };
/// assert_eq!(tickwire_console::settings::write(&limits).unwrap(), "max_order_quantity = 500\n");
/// ```
pub fn write<T: Serialize>(value: &T) -> Result<String, String> {
    let text = value
        .serialize(Gather)
        .and_then(|node| toml::to_string_pretty(&node));
    text.map_err(|e| e.to_string())
}

/// What a file is made of, in the order in which it was given.
enum Node {
    Nothing,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Single(f32),
    Double(f64),
    Text(String),
    Date(String),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

/// By this name, of a struct and of its field, a date of `toml` is written; a test looks whether it still is.
const DATE: &str = "$__toml_private_Datetime";
const DATE_FIELD: &str = "$__toml_private_datetime";

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Nothing => serializer.serialize_none(),
            Node::Bool(value) => serializer.serialize_bool(*value),
            Node::Signed(value) => serializer.serialize_i64(*value),
            Node::Unsigned(value) => serializer.serialize_u64(*value),
            Node::Single(value) => serializer.serialize_f32(*value),
            Node::Double(value) => serializer.serialize_f64(*value),
            Node::Text(value) => serializer.serialize_str(value),
            Node::Date(text) => {
                let mut date = serializer.serialize_struct(DATE, 1)?;
                ser::SerializeStruct::serialize_field(&mut date, DATE_FIELD, text)?;
                ser::SerializeStruct::end(date)
            }
            Node::List(values) => serializer.collect_seq(values),
            Node::Table(pairs) => serializer.collect_map(pairs.iter().map(|(key, value)| (key, value))),
        }
    }
}

/// Makes a node of any value.
struct Gather;

/// A list, or what a variant of an enum holds.
struct Elements {
    variant: Option<&'static str>,
    of: Vec<Node>,
}

/// A table, or what a variant of an enum holds.
struct Pairs {
    variant: Option<&'static str>,
    date: bool,
    key: Option<String>,
    of: Vec<(String, Node)>,
}

/// A table of one value by the variant's name, if there is a variant.
fn of_variant(variant: Option<&'static str>, node: Node) -> Node {
    match variant {
        Some(name) => Node::Table(vec![(name.to_owned(), node)]),
        None => node,
    }
}

impl Pairs {
    fn new(variant: Option<&'static str>, length: usize) -> Pairs {
        Pairs {
            variant,
            date: false,
            key: None,
            of: Vec::with_capacity(length),
        }
    }

    fn into_node(mut self) -> Node {
        match self.of.pop() {
            Some((_, Node::Text(text))) if self.date => Node::Date(text),
            last => {
                self.of.extend(last);
                of_variant(self.variant, Node::Table(self.of))
            }
        }
    }
}

/// Methods that take a value as it is.
macro_rules! scalars {
    ($($method:ident($type:ty) => $node:expr;)*) => {
        $(fn $method(self, value: $type) -> Result<Node, Error> {
            Ok($node(value))
        })*
    };
}

impl Serializer for Gather {
    type Ok = Node;
    type Error = Error;
    type SerializeSeq = Elements;
    type SerializeTuple = Elements;
    type SerializeTupleStruct = Elements;
    type SerializeTupleVariant = Elements;
    type SerializeMap = Pairs;
    type SerializeStruct = Pairs;
    type SerializeStructVariant = Pairs;

    scalars! {
        serialize_bool(bool) => Node::Bool;
        serialize_i8(i8) => |value| Node::Signed(i64::from(value));
        serialize_i16(i16) => |value| Node::Signed(i64::from(value));
        serialize_i32(i32) => |value| Node::Signed(i64::from(value));
        serialize_i64(i64) => Node::Signed;
        serialize_u8(u8) => |value| Node::Unsigned(u64::from(value));
        serialize_u16(u16) => |value| Node::Unsigned(u64::from(value));
        serialize_u32(u32) => |value| Node::Unsigned(u64::from(value));
        serialize_u64(u64) => Node::Unsigned;
        serialize_f32(f32) => Node::Single;
        serialize_f64(f64) => Node::Double;
        serialize_char(char) => |value| Node::Text(String::from(value));
        serialize_str(&str) => |value| Node::Text(String::from(value));
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Node, Error> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<Node, Error> {
        Ok(Node::Nothing)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Node, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Node, Error> {
        Err(Error::custom("unsupported unit type"))
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<Node, Error> {
        Err(Error::custom(format_args!("unsupported {name} type")))
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Node, Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Node, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Node, Error> {
        Ok(of_variant(Some(variant), value.serialize(self)?))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Elements, Error> {
        Ok(Elements {
            variant: None,
            of: Vec::with_capacity(length.unwrap_or(0)),
        })
    }

    fn serialize_tuple(self, length: usize) -> Result<Elements, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(self, _name: &'static str, length: usize) -> Result<Elements, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Elements, Error> {
        Ok(Elements {
            variant: Some(variant),
            of: Vec::with_capacity(length),
        })
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Pairs, Error> {
        Ok(Pairs::new(None, length.unwrap_or(0)))
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Pairs, Error> {
        Ok(Pairs {
            date: name == DATE,
            ..Pairs::new(None, length)
        })
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Pairs, Error> {
        Ok(Pairs::new(Some(variant), length))
    }
}

/// Every way to give elements is the same.
macro_rules! elements {
    ($($way:ident $method:ident;)*) => {
        $(impl ser::$way for Elements {
            type Ok = Node;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.of.push(value.serialize(Gather)?);
                Ok(())
            }

            fn end(self) -> Result<Node, Error> {
                Ok(of_variant(self.variant, Node::List(self.of)))
            }
        })*
    };
}

elements! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

/// Every way to give fields is the same.
macro_rules! fields {
    ($($way:ident)*) => {
        $(impl ser::$way for Pairs {
            type Ok = Node;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
                self.of.push((key.to_owned(), value.serialize(Gather)?));
                Ok(())
            }

            fn end(self) -> Result<Node, Error> {
                Ok(self.into_node())
            }
        })*
    };
}

fields! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Pairs {
    type Ok = Node;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = Some(match key.serialize(Gather)? {
            Node::Text(text) => text,
            Node::Bool(value) => value.to_string(),
            Node::Signed(value) => value.to_string(),
            Node::Unsigned(value) => value.to_string(),
            _ => return Err(Error::custom("map key was not a string")),
        });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let node = value.serialize(Gather)?;
        let key = self.key.take().unwrap_or_default();
        self.of.push((key, node));
        Ok(())
    }

    fn end(self) -> Result<Node, Error> {
        Ok(self.into_node())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;

    use super::super::tests::Shape;
    use super::write;

    #[derive(Serialize, Default)]
    #[serde(rename_all = "kebab-case")]
    struct Whole {
        name: String,
        side: Option<Side>,
        small: i8,
        large: u64,
        single: f32,
        ratio: f64,
        on: bool,
        first: char,
        inner: Option<Inner>,
        one: Vec<u16>,
        many: Vec<Inner>,
        rows: Vec<Vec<i64>>,
        pairs: Vec<(String, f64)>,
        by_name: BTreeMap<String, i64>,
        by_number: BTreeMap<u16, Inner>,
        shapes: Vec<Shape>,
        shape: Option<Shape>,
        wrapped: Wrapped,
        free: toml::Table,
        date: Option<toml::value::Datetime>,
        after: Option<String>,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    enum Side {
        Buy,
    }

    #[derive(Serialize, Clone, Default)]
    struct Inner {
        x: i16,
        y: Option<String>,
        deep: BTreeMap<String, Vec<Leaf>>,
    }

    #[derive(Serialize, Clone)]
    struct Leaf {
        z: Vec<String>,
    }

    #[derive(Serialize, Default)]
    struct Wrapped(u32);

    /// Whatever `toml` prints of a value, this one prints.
    fn same<T: Serialize>(value: &T) {
        assert_eq!(write(value).unwrap(), toml::to_string_pretty(value).unwrap());
    }

    fn inner(x: i16) -> Inner {
        let leaves = (0..x.rem_euclid(3)).map(|n| Leaf {
            z: (0..n).map(|k| format!("{k}\"\\\n")).collect(),
        });
        Inner {
            x,
            y: (x % 2 == 0).then(|| "a = 'b'".into()),
            deep: BTreeMap::from([("odd key".into(), leaves.collect())]),
        }
    }

    #[test]
    fn what_toml_prints_is_printed() {
        same(&Whole::default());
        for shape in [
            Shape::Point,
            Shape::Circle(f64::NAN),
            Shape::Box { a: 1, b: 2 },
            Shape::Line(3, 4),
        ] {
            same(&Whole {
                name: "é \"quoted\" 'and' more\n\tof it\u{7f}".into(),
                side: Some(Side::Buy),
                small: -5,
                large: i64::MAX as u64,
                single: 0.1,
                ratio: 1e300,
                on: true,
                first: '\'',
                inner: Some(inner(4)),
                one: vec![1],
                many: vec![inner(1), inner(-2), inner(5)],
                rows: vec![vec![], vec![1], vec![2, 3]],
                pairs: vec![("a".into(), 0.5), (String::new(), f64::NEG_INFINITY)],
                by_name: BTreeMap::from([("a.b".into(), 1), (String::new(), 2)]),
                by_number: BTreeMap::from([(7, inner(0)), (8, inner(8))]),
                shapes: vec![Shape::Point, Shape::Circle(1.0), shape.clone()],
                shape: Some(shape),
                wrapped: Wrapped(7),
                free: "a = 1\nb = [1.5, 'x']\nc = { d = 2026-11-27, e = true }"
                    .parse()
                    .unwrap(),
                date: Some("2026-11-27T09:30:00Z".parse().unwrap()),
                after: Some(String::new()),
            });
        }
    }

    #[test]
    fn what_toml_does_not_print_is_refused() {
        for (own, theirs) in [
            (write(&5).err(), toml::to_string_pretty(&5).is_err()),
            (
                write(&vec![inner(1)]).err(),
                toml::to_string_pretty(&vec![inner(1)]).is_err(),
            ),
            (write(&()).err(), toml::to_string_pretty(&()).is_err()),
            (
                write(&BTreeMap::from([((1, 2), 3)])).err(),
                toml::to_string_pretty(&BTreeMap::from([((1, 2), 3)])).is_err(),
            ),
            (
                write(&BTreeMap::from([("a", [None, Some(1)])])).err(),
                toml::to_string_pretty(&BTreeMap::from([("a", [None, Some(1)])])).is_err(),
            ),
        ] {
            assert!(
                theirs && own.as_ref().is_some_and(|words| !words.is_empty()),
                "{own:?}"
            );
        }
        let large = BTreeMap::from([("a", u64::MAX)]);
        assert_eq!(write(&large).is_ok(), toml::to_string_pretty(&large).is_ok());
    }
}
