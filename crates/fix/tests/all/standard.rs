//! The dictionaries that are built in: they can be read, and they say what the published ones say.
//!
//! `UPDATE=1 cargo test -p tickwire-fix --test standard` writes the short form anew from the published
//! dictionaries.

use std::fmt::Write as _;
use tickwire_fix::dict::{Dictionary, Layout, MemberKind, standard_names, standard_xml};
use tickwire_testdata::{fix, workspace};

/// The file of a version: `FIX50SP2` for `FIX.5.0SP2`.
fn file_name(version: &str) -> String {
    version.replace('.', "")
}

#[test]
fn every_version_is_there_and_can_be_read() {
    let expected = [
        ("FIX.4.0", "D", "NewOrderSingle", "order single"),
        ("FIX.4.1", "8", "ExecutionReport", ""),
        ("FIX.4.2", "j", "BusinessMessageReject", ""),
        ("FIX.4.3", "AD", "TradeCaptureReportRequest", ""),
        ("FIX.4.4", "i", "MassQuote", ""),
        ("FIX.5.0", "D", "NewOrderSingle", ""),
        ("FIX.5.0SP1", "W", "MarketDataSnapshotFullRefresh", ""),
        ("FIX.5.0SP2", "CA", "OrderMassActionRequest", ""),
        ("FIXT.1.1", "A", "Logon", ""),
    ];
    assert_eq!(
        standard_names().collect::<Vec<_>>(),
        expected.map(|(name, ..)| name)
    );
    for (name, msg_type, message, _) in expected {
        let xml = standard_xml(name).expect("it is built in");
        let dictionary = Dictionary::parse(&xml).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(dictionary.begin_string(), name);
        let found = dictionary
            .message(msg_type.as_bytes())
            .unwrap_or_else(|| panic!("{name} has no {msg_type}"));
        assert_eq!(&*found.name, message, "{name}");
        assert!(dictionary.fields().len() > 30 && dictionary.fields().iter().all(|f| !f.name.is_empty()));
    }
    assert!(Dictionary::standard("FIX.3.9").is_none());
    let order = Dictionary::standard("FIX.4.4").expect("it is built in");
    let side = order.field(54).expect("Side is a field");
    assert!(side.admits(b"1") && !side.admits(b"Z"));
}

#[tickwire_testdata::recorded_data("fix/dictionaries")]
#[test]
fn they_say_what_the_published_dictionaries_say() {
    for name in standard_names() {
        let file = file_name(name);
        let published =
            std::fs::read_to_string(fix(&format!("dictionaries/{file}.xml"))).expect("the dictionary");
        let published = short(&Dictionary::parse(&published).unwrap_or_else(|e| panic!("{name}: {e}")));
        let path = workspace().join(format!("crates/fix/dictionaries/{file}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &published).expect("the short form can be written");
            continue;
        }
        let ours = Dictionary::standard(name).expect("it is built in");
        for (ours, published) in short(&ours).lines().zip(published.lines()) {
            assert_eq!(ours, published, "{name}");
        }
        assert_eq!(short(&ours).len(), published.len(), "{name}");
    }
}

/// A dictionary in the short form.
fn short(dictionary: &Dictionary) -> String {
    let mut out = format!("{}\n", dictionary.begin_string());
    let mut components = std::collections::BTreeMap::new();
    let mut line = |begin: &str, layout: Layout<'_>| {
        out.push_str(begin);
        put_members(&mut out, layout, &mut components);
        out.push('\n');
    };
    line("H", dictionary.header());
    line("T", dictionary.trailer());
    for message in dictionary.messages() {
        let layer = if message.is_admin { "admin" } else { "app" };
        let msg_type = std::str::from_utf8(&message.msg_type).expect("a type is text");
        line(
            &format!("M {msg_type} {layer} {}", message.name),
            dictionary.layout(message),
        );
    }
    for (name, members) in components {
        let _ = writeln!(out, "C {name}{members}");
    }
    for field in dictionary.fields() {
        let _ = write!(out, "F {} {} {}", field.tag, field.name, field.type_name);
        let texts = || {
            field
                .values
                .iter()
                .map(|(v, _)| std::str::from_utf8(v).expect("a listed value is text"))
        };
        // Prose among the values ("ISO Country Code") says that the list is open.
        if texts().all(|value| !value.contains(' ')) {
            texts().for_each(|value| out.extend([" ", value]));
        }
        out.push('\n');
    }
    out
}

fn put_members(
    out: &mut String,
    layout: Layout<'_>,
    components: &mut std::collections::BTreeMap<String, String>,
) {
    for member in layout.members() {
        let must = if member.is_required { "!" } else { "" };
        match member.kind {
            MemberKind::Field(field) => {
                let _ = write!(out, " {}{must}", field.tag);
            }
            MemberKind::Group(count, entry) => {
                let mut inner = String::new();
                put_members(&mut inner, entry, components);
                let _ = write!(out, " {}{must}({})", count.tag, inner.trim_start());
            }
            MemberKind::Component(name, inner) => {
                let _ = write!(out, " @{name}{must}");
                if !components.contains_key(name) {
                    let mut members = String::new();
                    put_members(&mut members, inner, components);
                    components.insert(name.into(), members);
                }
            }
        }
    }
}
