//! Numbers for people.

/// A duration with three significant digits and its unit: `850 ns`, `12.3 µs`, `4.56 ms`, `2.00 s`.
pub fn format_ns(ns: u64) -> String {
    // The bounds are where rounding to three digits would give 1000.
    match ns {
        0..=999 => format!("{ns} ns"),
        1_000..=999_499 => format!("{} µs", three_digits(ns, 1_000)),
        999_500..=999_499_999 => format!("{} ms", three_digits(ns, 1_000_000)),
        _ => format!("{} s", three_digits(ns, 1_000_000_000)),
    }
}

/// The same, of a figure that rests on so many values: nothing where there are none, for 0 would be a very
/// good one.
pub fn format_ns_of(count: u64, ns: u64) -> String {
    match count {
        0 => String::new(),
        _ => format_ns(ns),
    }
}

fn three_digits(value: u64, unit: u64) -> String {
    let v = value as f64 / unit as f64;
    match v {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// A count with its thousands set apart: `1 234 567`, by narrow spaces that do not break.
pub fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// Text as it stands in HTML and SVG, in elements and in quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_never_read_1000() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (9_994, "9.99 µs"),
            (9_996, "10.0 µs"),
            (99_960, "100 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (12_345_678, "12.3 ms"),
            (999_500_000, "1.00 s"),
            (61_000_000_000, "61.0 s"),
        ] {
            assert_eq!(format_ns(ns), text);
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1\u{202f}000"),
            (1_234_567, "1\u{202f}234\u{202f}567"),
        ] {
            assert_eq!(format_count(count), text);
        }
    }
}
