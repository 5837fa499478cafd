//! Names (of symbols, of scenarios) like one that nobody knows.

/// At most this many are suggested.
const MOST: usize = 5;

/// Those of the known symbols that a user may have meant, the likeliest first.
pub fn similar<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_ascii_uppercase();
    let mut found: Vec<(usize, &str)> = known
        .filter_map(|symbol| {
            let other = symbol.to_ascii_uppercase();
            let near = distance(&wanted, &other);
            let begins = !wanted.is_empty() && (other.starts_with(&wanted) || wanted.starts_with(&other));
            // One wrong character in three, or one is the beginning of the other.
            (near <= wanted.len() / 3 + 1 && near < wanted.len() || begins).then_some((near, symbol))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.truncate(MOST);
    found.into_iter().map(|(_, symbol)| symbol).collect()
}

/// How many characters to insert, drop or change (Levenshtein), by the textbook.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let changed = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_textbook() {
        for (a, b, n) in [
            ("", "", 0),
            ("kitten", "sitting", 3),
            ("AAPL", "APPL", 1),
            ("", "ABC", 3),
            ("ABC", "", 3),
        ] {
            assert_eq!(distance(a, b), n);
        }
    }

    #[test]
    fn a_slip_of_the_finger_and_lower_case_find_the_symbol() {
        let known = ["AAPL", "AAP", "MSFT", "GOOG", "GOOGL", "BRK.A", "BRK.B"];
        assert_eq!(similar("aapl", known.into_iter()), ["AAPL", "AAP"]);
        assert_eq!(similar("GOG", known.into_iter())[0], "GOOG");
        assert_eq!(similar("BRK", known.into_iter()), ["BRK.A", "BRK.B"]);
        assert_eq!(similar("XYZ", known.into_iter()), Vec::<&str>::new());
        assert!(similar("", known.into_iter()).is_empty());
    }
}
