//! The program of each framing as a listing, compared with the one that was read and kept: a change of the
//! generator shows what it does to the instructions. `UPDATE=1 cargo test -p tickwire-kernel` rewrites them.

use std::path::Path;
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group, SpecError};

fn spec(framing: Framing) -> FilterSpec {
    let group = |last| Group::new([233, 54, 12, last], 26477);
    FilterSpec {
        channels: vec![ChannelSpec {
            framing,
            groups: vec![group(1), group(2)],
            set: 0,
        }],
        ..FilterSpec::default()
    }
}

#[test]
fn programs_are_those_that_were_read() {
    let framings = Framing::ALL.into_iter().chain([Framing::Any]);
    let filters = framings.map(|framing| (format!("{framing:?}").to_lowercase(), spec(framing).program()));
    let guard = ("guard".to_owned(), tickwire_kernel::guard::program());
    let armed = [Framing::Itch, Framing::Nyse].map(|framing| {
        let spec = FilterSpec {
            trigger: true,
            ..spec(framing)
        };
        (format!("trigger_{framing:?}").to_lowercase(), spec.program())
    });
    let asking = FilterSpec {
        wire_time: true,
        ..spec(Framing::Any)
    };
    let asking = ("wire_time".to_owned(), asking.program());
    for (name, program) in filters.chain([guard, asking]).chain(armed) {
        let have = program.expect("a program").to_string();
        let name = format!("{name}.txt");
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/listings")
            .join(name);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &have).expect("written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = have.lines().zip(kept.lines()).find(|(have, kept)| have != kept);
        assert!(
            have == kept,
            "{}: {differs:?}; read the change and say UPDATE=1",
            path.display()
        );
    }
}

#[test]
fn a_specification_that_cannot_be_is_refused_in_words() {
    let mut none = spec(Framing::Itch);
    none.channels.clear();
    assert_eq!(none.program(), Err(SpecError::Channels(0)));

    let mut twice = spec(Framing::Itch);
    twice.channels.push(twice.channels[0].clone());
    let refused = twice.program().expect_err("one group, two channels");
    assert_eq!(
        refused.to_string(),
        "the group 233.54.12.1:26477 stands twice: a packet has one channel"
    );

    let mut by_source = spec(Framing::Itch);
    by_source.channels.push(by_source.channels[0].clone());
    for (last, channel) in (1..).zip(&mut by_source.channels) {
        channel
            .groups
            .iter_mut()
            .for_each(|group| group.source = Some([10, 0, 0, last]));
    }
    assert!(by_source.program().is_ok(), "one group, two senders");
    by_source.channels[1].groups[0].source = None;
    assert!(matches!(by_source.program(), Err(SpecError::GroupTwice(_))));

    let mut shared = spec(Framing::Itch);
    let mut other = spec(Framing::Nyse).channels.remove(0);
    other.groups = vec![Group::new([224, 0, 59, 1], 1)];
    shared.channels.push(other);
    assert_eq!(shared.program(), Err(SpecError::SetShared(0)));
    shared.channels[1].set = 1;
    assert_eq!(shared.program(), Err(SpecError::NoSet(1)));
    shared.sets = 2;
    assert!(shared.program().is_ok());

    let mut odd = spec(Framing::Itch);
    odd.cpus = 3;
    assert!(matches!(odd.program(), Err(SpecError::OutOfRange(_))));
}
