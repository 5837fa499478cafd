//! Dictionaries: those that are built in, of every version, wrong ones, and messages checked against them.

use tickwire_fix::dict::{Dictionary, FieldKind, Validation, Validator};
use tickwire_fix::{Fault, Index, SessionRejectReason as Reason};

const VERSIONS: [(&str, usize, usize); 9] = [
    ("FIX.4.0", 27, 138),
    ("FIX.4.1", 28, 206),
    ("FIX.4.2", 46, 405),
    ("FIX.4.3", 68, 635),
    ("FIX.4.4", 93, 912),
    ("FIX.5.0", 93, 1090),
    ("FIX.5.0SP1", 105, 1373),
    ("FIX.5.0SP2", 156, 6028),
    ("FIXT.1.1", 8, 71),
];

fn dictionary(name: &str) -> Dictionary {
    Dictionary::standard(name).unwrap_or_else(|| panic!("{name} is not built in"))
}

#[test]
fn every_version_loads() {
    for (name, messages, fields) in VERSIONS {
        let d = dictionary(name);
        assert_eq!(d.begin_string(), name);
        assert_eq!(
            (d.messages().len(), d.fields().len()),
            (messages, fields),
            "{name}"
        );
        println!(
            "{name}: {messages} messages, {fields} fields, {} groups",
            d.group_count()
        );
    }
    let d = dictionary("FIX.4.4");
    assert_eq!(
        d.field(44).map(|f| (&*f.name, f.kind)),
        Some(("Price", FieldKind::Decimal))
    );
    // What is built in lists the values; their names are in dictionaries of users only.
    assert_eq!(d.field_named("Side").and_then(|f| f.describe(b"1")), Some("1"));
    assert_eq!(
        d.message(b"D").map(|m| (&*m.name, m.is_admin)),
        Some(("NewOrderSingle", false))
    );
    assert!(d.is_header(49) && d.is_trailer(10) && !d.is_header(55));
}

#[test]
fn what_is_wrong_with_a_dictionary_is_said_with_its_line() {
    let whole = |messages: &str, fields: &str| {
        format!(
            "<fix major='4' minor='4'>\n<header/>\n<trailer/>\n<messages>{messages}</messages>\n<components>\n<component name='C'><component name='C'/></component>\n</components>\n<fields>{fields}</fields>\n</fix>"
        )
    };
    let cases = [
        ("<fix".to_string(), 1, ""),
        ("<fox/>".into(), 1, "begins with <fix>"),
        ("<fix major='4'/>".into(), 1, "attribute minor"),
        ("<fix major='4' minor='4'>\n</fix>".into(), 1, "no <fields>"),
        (
            whole("\n<message name='A' msgtype='A'><field name='X'/></message>", ""),
            5,
            "no field X",
        ),
        (
            whole(
                "<message name='A' msgtype='A'><component name='C'/></message>",
                "",
            ),
            6,
            "without end",
        ),
        (
            whole(
                "<message name='A' msgtype='A'><component name='D'/></message>",
                "",
            ),
            4,
            "no component D",
        ),
        (
            whole(
                "<message name='A' msgtype='A'/><message name='B' msgtype='A'/>",
                "",
            ),
            1,
            "two messages",
        ),
        (
            whole("", "<field number='0' name='X' type='INT'/>"),
            8,
            "not a tag",
        ),
        (
            whole(
                "",
                "<field number='1' name='X' type='INT'/><field number='1' name='Y' type='INT'/>",
            ),
            8,
            "two fields have the tag 1",
        ),
        (
            whole(
                "<message name='A' msgtype='A'><group name='X'/></message>",
                "<field number='1' name='X' type='NUMINGROUP'/>",
            ),
            4,
            "group without fields",
        ),
    ];
    for (xml, line, what) in cases {
        let e = Dictionary::parse(&xml).unwrap_err();
        assert_eq!(e.line, line, "{xml}: {e}");
        assert!(e.what.contains(what), "{xml}: {e}");
    }
}

#[test]
fn components_that_use_each_other_twice_do_not_keep_the_loader_busy_for_ever() {
    // Thirty levels of two would be a thousand million members.
    let components: String = (0..30)
        .map(|n| {
            let next = format!("<component name='C{}'/>", n + 1);
            format!("<component name='C{n}'>{next}{next}</component>")
        })
        .collect();
    let xml = format!(
        "<fix major='4' minor='4'><header/><trailer/><messages><message name='A' msgtype='A'><component name='C0'/></message></messages><components>{components}<component name='C30'/></components><fields/></fix>"
    );
    let e = Dictionary::parse(&xml).unwrap_err();
    assert!(e.what.contains("too often"), "{e}");
}

/// A message of these fields, `|` for the separator, with the length and sum that it needs.
fn message(begin_string: &str, fields: &str) -> Vec<u8> {
    let body = fields.replace('|', "\x01");
    let mut bytes = format!("8={begin_string}\x019={}\x01{body}", body.len()).into_bytes();
    let sum = bytes.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b));
    bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    bytes
}

fn check(session: &Dictionary, app: &Dictionary, fields: &str, rules: Validation) -> Result<(), Fault> {
    let bytes = message(session.begin_string(), fields);
    let mut index = Index::new(128);
    let m = index.decode(&bytes).unwrap();
    Validator::new(session, app).check(session, app, &m, rules)
}

const HEAD: &str = "34=2|49=A|52=20261121-10:00:00.000|56=B|";

#[test]
fn every_rule_finds_its_fault_and_nothing_else() {
    let d = dictionary("FIX.4.4");
    let order = "11=ID|21=1|40=1|54=1|38=002000.00|55=INTC|60=20261121-10:00:00|";
    let cases: [(&str, String, Option<Fault>); 18] = [
        ("good", format!("35=D|{HEAD}{order}"), None),
        (
            "header last",
            format!("35=D|{order}{HEAD}"),
            Some(Fault::new(Reason::TagOutOfOrder, 34)),
        ),
        (
            "trailer first",
            format!("35=D|{HEAD}93=1|89=x|{order}"),
            Some(Fault::new(Reason::TagOutOfOrder, 11)),
        ),
        (
            "no such type",
            format!("35=ZZ|{HEAD}"),
            Some(Fault::no_tag(Reason::InvalidMsgType)),
        ),
        (
            "no ClOrdID",
            format!("35=D|{HEAD}{}", &order[6..]),
            Some(Fault::missing(11)),
        ),
        (
            "no TargetCompID",
            "35=0|34=2|49=A|52=20261121-10:00:00|".into(),
            Some(Fault::missing(56)),
        ),
        (
            "twice",
            format!("35=D|{HEAD}{order}40=1|"),
            Some(Fault::new(Reason::TagTwice, 40)),
        ),
        (
            "no value",
            format!("35=D|{HEAD}{order}58=|"),
            Some(Fault::new(Reason::TagWithoutValue, 58)),
        ),
        (
            "format",
            format!("35=D|{HEAD}{order}44=+1|"),
            Some(Fault::format(44)),
        ),
        (
            "value",
            format!("35=D|{HEAD}{order}167=BOO|"),
            Some(Fault::value(167)),
        ),
        ("several values", format!("35=D|{HEAD}{order}18=1 2|"), None),
        (
            "one of several",
            format!("35=D|{HEAD}{order}18=1 !|"),
            Some(Fault::value(18)),
        ),
        (
            "of another message",
            format!("35=0|{HEAD}55=X|"),
            Some(Fault::new(Reason::TagNotDefined, 55)),
        ),
        (
            "of none",
            format!("35=0|{HEAD}999=X|"),
            Some(Fault::new(Reason::InvalidTagNumber, 999)),
        ),
        (
            "too few entries",
            format!("35=D|{HEAD}{order}386=3|336=1|336=2|"),
            Some(Fault::new(Reason::IncorrectNumInGroup, 386)),
        ),
        (
            "too many entries",
            format!("35=D|{HEAD}{order}386=1|336=1|336=2|"),
            Some(Fault::new(Reason::IncorrectNumInGroup, 386)),
        ),
        (
            "entry without its first field",
            format!("35=D|{HEAD}{order}453=1|447=D|448=x|452=1|"),
            Some(Fault::new(Reason::GroupOutOfOrder, 447)),
        ),
        (
            "groups within groups",
            format!(
                "35=D|{HEAD}{order}453=2|448=x|447=D|452=1|802=2|523=a|803=1|523=b|803=2|448=y|447=D|452=3|"
            ),
            None,
        ),
    ];
    for (name, fields, expected) in cases {
        assert_eq!(
            check(&d, &d, &fields, Validation::default()).err(),
            expected,
            "{name}"
        );
    }
}

#[test]
fn rules_can_be_switched_off_one_by_one() {
    let d = dictionary("FIX.4.4");
    let all = Validation::default();
    let order = "11=ID|21=1|40=1|54=1|38=1|55=INTC|60=20261121-10:00:00|";
    let cases: [(&str, String, Validation); 6] = [
        (
            "place",
            format!("35=D|{order}{HEAD}"),
            Validation {
                fields_out_of_order: false,
                ..all
            },
        ),
        (
            "value",
            format!("35=D|{HEAD}{order}58=|"),
            Validation {
                fields_have_values: false,
                ..all
            },
        ),
        (
            "order in groups",
            format!("35=D|{HEAD}{order}453=1|448=x|452=1|447=D|"),
            Validation {
                group_order: false,
                ..all
            },
        ),
        (
            "user's own",
            format!("35=D|{HEAD}{order}20001=5|"),
            Validation {
                user_defined_fields: false,
                ..all
            },
        ),
        (
            "listed values",
            format!("35=D|{HEAD}{}", order.replace("54=1", "54=Z")),
            Validation {
                listed_values: false,
                ..all
            },
        ),
        (
            "unknown",
            format!("35=0|{HEAD}55=X|"),
            Validation {
                unknown_fields: false,
                ..all
            },
        ),
    ];
    for (name, fields, rules) in cases {
        assert!(check(&d, &d, &fields, all).is_err(), "{name}");
        if name != "place" {
            assert_eq!(check(&d, &d, &fields, rules), Ok(()), "{name}");
        } else {
            // The header is looked for before the body, so what stands behind is missing there, but nothing
            // is misplaced.
            let fault = check(&d, &d, &fields, rules).unwrap_err();
            assert_ne!(fault.reason, Reason::TagOutOfOrder);
        }
    }
}

#[test]
fn fixt_splits_a_message_between_two_dictionaries() {
    let (session, app) = (dictionary("FIXT.1.1"), dictionary("FIX.5.0SP2"));
    let order = "11=ID|21=1|40=1|54=1|38=1|55=INTC|60=20261121-10:00:00|";
    let good = format!("35=D|{HEAD}1128=9|{order}");
    assert_eq!(check(&session, &app, &good, Validation::default()), Ok(()));
    let logon = format!("35=A|{HEAD}98=0|108=30|1137=9|");
    assert_eq!(check(&session, &app, &logon, Validation::default()), Ok(()));
    let without = format!("35=A|{HEAD}98=0|108=30|");
    let fault = check(&session, &app, &without, Validation::default()).unwrap_err();
    assert_eq!(fault, Fault::missing(1137));
}
