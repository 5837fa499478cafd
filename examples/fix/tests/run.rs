//! The example runs, and its dictionary is a part of FIX 4.4 but for what the venue added.

use std::process::Command;
use tickwire_fix::dict::Dictionary;
use tickwire_fix::{Index, naive};
use tickwire_testdata::{fix, workspace};

#[test]
fn an_order_and_a_mass_quote_arrive_as_they_were_sent() {
    let output = Command::new(env!("CARGO_BIN_EXE_tickwire-example-fix"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "order C-1: Buy 100 WIRE at Some(87.39)",
            "  party DESK7 in role Some(12)",
            "  caused by message 4711 of Nasdaq",
            "mass quote Q-1",
            "  WIRE Some(87.39) to Some(87.41)",
            "  TICK Some(12.00) to Some(12.05)",
        ]
    );
}

#[tickwire_testdata::recorded_data("fix/dictionaries")]
#[test]
fn the_dictionary_is_a_part_of_the_standards() {
    let read = |path: std::path::PathBuf| {
        let xml = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Dictionary::parse(&xml).unwrap()
    };
    let ours = read(workspace().join("examples/fix/venue.xml"));
    let standard = read(fix("dictionaries/FIX44.xml"));
    for field in ours.fields().iter().filter(|f| f.tag < 5000) {
        let of = standard.field(field.tag).unwrap();
        assert_eq!((&field.name, &field.type_name), (&of.name, &of.type_name));
    }
    assert_eq!(ours.fields().iter().filter(|f| f.tag >= 5000).count(), 5);
}

include!(concat!(env!("OUT_DIR"), "/venue.rs"));

/// Text (58) is of the message and of the entries of the venue's group.
#[test]
fn a_field_that_also_is_in_a_group_is_told_from_those_of_its_entries() {
    let read = |body: &[(u32, &str)]| {
        let head = [
            (35, "b"),
            (34, "2"),
            (49, "A"),
            (52, "20261122-10:00:00"),
            (56, "B"),
            (297, "0"),
        ];
        let fields: Vec<(u32, Vec<u8>)> = head
            .iter()
            .chain(body)
            .map(|(tag, value)| (*tag, value.as_bytes().to_vec()))
            .collect();
        let bytes = naive::encode(&fields);
        let mut index = Index::new(64);
        let message = index.decode(&bytes).unwrap();
        let ack = venue::MassQuoteAcknowledgement::read(&message).unwrap();
        let owned = |text: Option<&[u8]>| text.map(|text| String::from_utf8(text.to_vec()).unwrap());
        let levels = ack.venue_levels().unwrap();
        let texts: Vec<_> = levels.map(|level| owned(level.text().unwrap())).collect();
        (owned(ack.text().unwrap()), texts)
    };
    let text = |text: &str| Some(text.to_owned());
    let levels = [(20010, "2"), (20011, "1.5"), (58, "one"), (20011, "2.5")];
    assert_eq!(read(&levels), (None, vec![text("one"), None]));
    let before: Vec<_> = [(58, "all")].into_iter().chain(levels).collect();
    assert_eq!(read(&before), (text("all"), vec![text("one"), None]));
    let behind: Vec<_> = levels.into_iter().chain([(300, "1"), (58, "all")]).collect();
    assert_eq!(read(&behind), (text("all"), vec![text("one"), None]));
}
