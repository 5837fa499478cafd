//! Contents of messages: text where the layout has text, numbers whose bytes all differ, without naming a
//! field.

use tickwire_wire::layout::FieldValue;

/// What a message is filled with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Each byte differs from its neighbours; the number makes messages differ from each other.
    Values(u8),
    /// Fields that can be null are, the others as in the first.
    Nulls,
}

/// How every message type is written.
pub(crate) const VARIANTS: [Variant; 2] = [Variant::Values(0), Variant::Values(1)];

/// Fields as a decoder shows them, and whether they are text.
pub(crate) type Shown = Vec<(bool, String)>;

/// One field.
pub(crate) fn one(value: FieldValue<'_>) -> (bool, String) {
    let is_text = matches!(
        value,
        FieldValue::Text(_) | FieldValue::Char(_) | FieldValue::Bytes(_)
    );
    (is_text, value.to_string())
}

/// What a `visit` shows.
pub(crate) fn shown(visit: impl FnOnce(&mut dyn FnMut(&'static str, FieldValue<'_>))) -> Shown {
    let mut shown = Vec::new();
    visit(&mut |_, value| shown.push(one(value)));
    shown
}

/// Fills every byte of a message that is not to be kept. Which field a byte belongs to, and whether that is
/// text, is found out: the byte is changed, and the field that changes with it tells.
pub(crate) fn fill(
    message: &mut [u8],
    variant: Variant,
    keep: impl Fn(usize) -> bool,
    read: impl Fn(&[u8]) -> Shown,
) {
    let free: Vec<usize> = (0..message.len()).filter(|at| !keep(*at)).collect();
    for at in &free {
        message[*at] = b'A';
    }
    let plain = read(message);
    let field = |message: &mut [u8], at: usize| {
        message[at] = b'B';
        let changed = read(message);
        message[at] = b'A';
        plain.iter().zip(&changed).position(|(a, b)| a != b)
    };
    let fields: Vec<Option<usize>> = free.iter().map(|at| field(message, *at)).collect();
    for (at, field) in free.iter().zip(&fields) {
        let is_text = field.is_some_and(|field| plain[field].0);
        message[*at] = byte(*at, variant, is_text);
    }
    if variant != Variant::Nulls {
        return;
    }
    for field in 0..plain.len() {
        let its = |(at, of): (&usize, &Option<usize>)| (*of == Some(field)).then_some(*at);
        let places: Vec<usize> = free.iter().zip(&fields).filter_map(its).collect();
        let before = message.to_vec();
        // The largest unsigned number, the largest signed one, zero: null is one of them or nothing.
        let is_null = [[0xFF, 0xFF], [0xFF, 0x7F], [0, 0]].iter().any(|[others, last]| {
            for at in &places {
                message[*at] = *others;
            }
            if let Some(at) = places.last() {
                message[*at] = *last;
            }
            read(message)[field].1 == "null"
        });
        if !is_null {
            message.copy_from_slice(&before);
        }
    }
}

/// Numbers have high bits in some bytes, so that a sign that is none is seen.
fn byte(at: usize, variant: Variant, is_text: bool) -> u8 {
    let variant = match variant {
        Variant::Values(number) => number,
        Variant::Nulls => 0,
    };
    if is_text {
        b'A' + (at % 26 * 5 + usize::from(variant)) as u8 % 26
    } else {
        1 + (at % 250 * 71 + usize::from(variant) * 119).rem_euclid(250) as u8
    }
}
