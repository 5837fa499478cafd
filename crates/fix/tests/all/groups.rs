//! Repeating groups read in place: entries, groups within them, counts that lie; beside the plainest reading
//! of the same fields.

use proptest::prelude::*;
use tickwire_fix::{
    Fault, Fields, Group, Index, Message, RepeatingGroup, SessionRejectReason as Reason, naive,
};
use tickwire_market::{Price, Qty};

#[derive(Clone, Debug)]
struct Entries;
impl RepeatingGroup for Entries {
    const COUNT: u32 = 268;
    fn has(tag: u32) -> bool {
        matches!(tag, 279 | 269 | 55 | 270 | 271 | 37) || tag == Parties::COUNT || Parties::has(tag)
    }
}

#[derive(Clone, Debug)]
struct Parties;
impl RepeatingGroup for Parties {
    const COUNT: u32 = 453;
    fn has(tag: u32) -> bool {
        matches!(tag, 448 | 447 | 452)
    }
}

/// `tag=value` separated by bars, as a message.
fn message(body: &str) -> Vec<u8> {
    let field = |text: &str| {
        let (tag, value) = text.split_once('=').expect("tag=value");
        (tag.parse().expect("a tag"), value.as_bytes().to_vec())
    };
    naive::encode(&body.split('|').map(field).collect::<Vec<_>>())
}

fn tags(entry: &Fields<'_>) -> Vec<u32> {
    entry.fields().iter().map(|f| f.tag).collect()
}

fn entries<'a>(m: &Message<'a>) -> Group<'a, Entries> {
    m.group::<Entries>().expect("the count is there")
}

#[test]
fn entries_and_the_groups_within_them_are_read_where_they_lie() {
    let bytes = message(
        "35=X|34=7|268=3|279=0|269=0|270=187.25|271=100|453=2|448=A|452=1|448=B|452=3|37=x|279=2|269=1|279=1|270=0.5|58=end|44=1",
    );
    let mut index = Index::new(64);
    let m = index.decode(&bytes).unwrap();
    let all: Vec<Fields<'_>> = entries(&m).collect();
    assert_eq!(all.len(), 3);
    assert_eq!(tags(&all[0]), [279, 269, 270, 271, 453, 448, 452, 448, 452, 37]);
    assert_eq!((tags(&all[1]), tags(&all[2])), (vec![279, 269], vec![279, 270]));
    let at = |tag| all[0].find(tag).unwrap();
    assert_eq!(all[0].price(at(270)), Ok(Price::from_4dp(1_872_500)));
    assert_eq!(all[0].qty(at(271)), Ok(Qty(100)));
    assert_eq!(all[1].find(270), None);
    let parties = all[0].group::<Parties>().unwrap();
    assert_eq!(parties.claimed(), 2);
    let names: Vec<&[u8]> = parties.clone().map(|p| p.value(p.find(448).unwrap())).collect();
    assert_eq!(names, [b"A", b"B"]);
    assert_eq!((parties.check(), entries(&m).check()), (Ok(()), Ok(())));
    assert!(all[1].group::<Parties>().is_none() && m.group::<Parties>().is_some());
}

#[test]
fn counts_that_lie_end_with_the_message_and_are_told() {
    let mut index = Index::new(64);
    let lies = Err(Fault::new(Reason::IncorrectNumInGroup, 268));
    for (body, given, checked) in [
        ("35=X|268=18446744073709551615|279=0|279=1", 2, lies),
        ("35=X|268=3|279=0|279=1|58=x", 2, lies),
        ("35=X|268=1|279=0|279=1", 1, lies),
        ("35=X|268=1|58=x", 0, lies),
        ("35=X|268=1", 0, lies),
        ("35=X|268=0", 0, Ok(())),
        ("35=X|268=0|58=x", 0, Ok(())),
        ("35=X|268=0|279=0", 0, lies),
        ("35=X|268=-1|279=0", 0, Err(Fault::format(268))),
        ("35=X|268=1|270=1|279=0", 1, Ok(())),
    ] {
        let bytes = message(body);
        let m = index.decode(&bytes).unwrap();
        assert_eq!(entries(&m).count(), given, "{body}");
        assert_eq!(entries(&m).check(), checked, "{body}");
    }
}

#[test]
fn a_field_is_found_by_its_tag_also_where_tags_share_a_slot_and_messages_follow_each_other() {
    let mut index = Index::new(16);
    // 1069 and 2093 share the slot of 45.
    for (body, expected) in [
        (
            "35=X|1069=a|45=b|2093=c|45=d",
            [Some("b"), Some("a"), Some("c"), None],
        ),
        ("35=X|2093=c", [None, None, Some("c"), None]),
        ("35=X|44=1", [None, None, None, Some("1")]),
    ] {
        let bytes = message(body);
        for _ in 0..3 {
            let m = index.decode(&bytes).unwrap();
            let found = [45, 1069, 2093, 44].map(|tag| m.find(tag).map(|f| m.value(f)));
            assert_eq!(found, expected.map(|v| v.map(str::as_bytes)), "{body}");
        }
    }
}

proptest! {
    #[test]
    fn any_fields_are_found_and_grouped_as_the_plainest_reading_has_them(
        fields in prop::collection::vec((prop::sample::select(&[279u32, 269, 270, 453, 448, 268, 58, 1303, 11][..]), "[0-9]{1,3}"), 0..30)
    ) {
        let mut written = vec![(35, b"X".to_vec())];
        written.extend(fields.into_iter().map(|(tag, value)| (tag, value.into_bytes())));
        let bytes = naive::encode(&written);
        let mut index = Index::new(64);
        let m = index.decode(&bytes).unwrap();
        for tag in [279, 269, 270, 453, 448, 268, 58, 1303, 11, 12] {
            let plain = written.iter().find(|f| f.0 == tag).map(|f| &f.1[..]);
            prop_assert_eq!(m.find(tag).map(|f| m.value(f)), plain);
        }
        let Some(at) = written.iter().position(|f| f.0 == 268) else {
            prop_assert!(m.group::<Entries>().is_none());
            return Ok(());
        };
        let count: usize = std::str::from_utf8(&written[at].1).unwrap().parse().unwrap();
        let mut plain: Vec<Vec<u32>> = Vec::new();
        for (tag, _) in &written[at + 1..] {
            if !Entries::has(*tag) {
                break;
            }
            match plain.first().is_none_or(|entry| entry[0] == *tag) {
                true => plain.push(vec![*tag]),
                false => plain.last_mut().unwrap().push(*tag),
            }
        }
        plain.truncate(count);
        let read: Vec<Vec<u32>> = entries(&m).map(|entry| tags(&entry)).collect();
        prop_assert_eq!(read, plain);
    }
}
