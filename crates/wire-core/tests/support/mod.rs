//! Shared by the protocol tests.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeMap;
use tickwire_wire_core::layout::FieldValue;

/// Fields in wire order as a decoder shows them.
pub(crate) type Shown = Vec<(&'static str, String)>;

/// Collects what a `visit` shows.
pub(crate) fn shown(visit: impl FnOnce(&mut dyn FnMut(&'static str, FieldValue<'_>))) -> Shown {
    let mut fields = Vec::new();
    visit(&mut |name, value| fields.push((name, value.to_string())));
    fields
}

/// As a map, the form of a vector's expectation.
pub(crate) fn as_map(fields: Shown) -> BTreeMap<String, String> {
    let count = fields.len();
    let map: BTreeMap<String, String> = fields
        .into_iter()
        .map(|(name, value)| (name.to_string(), value))
        .collect();
    assert_eq!(map.len(), count, "two fields share a name: {map:?}");
    map
}
