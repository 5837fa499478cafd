//! The network card's own time of a packet: asked for where the driver can be asked, and put beside ours.

use std::fmt;
use std::num::NonZeroU64;

use tickwire_kernel::filter::FilterSpec;
use tickwire_runtime::card::CardClock;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::stamp::RxStamp;
use tickwire_runtime::xdp::{Attached, Offers, XdpError, XdpMode, XdpSocket, offers};

use crate::receiver::{ReceiverConfig, ReceiverError, attach_at};
use crate::{FilterError, LoadedFilter};

/// The card's time of packets: whether it is asked for, and how its clock stands to ours.
#[derive(Debug)]
pub struct Card {
    /// Why the card is not asked, if it is not.
    refused: Option<String>,
    clock: Option<CardClock>,
    stamped: u64,
    ahead: u64,
}

impl Card {
    fn asked(interface: &Interface) -> Card {
        let mut card = Card {
            refused: None,
            clock: CardClock::of_interface(interface.name()),
            stamped: 0,
            ahead: 0,
        };
        card.follow();
        card
    }

    fn not_asked(why: String) -> Card {
        Card {
            refused: Some(why),
            clock: None,
            stamped: 0,
            ahead: 0,
        }
    }

    /// Whether the program asks the card. Where it does, a driver may still say of every packet that it does
    /// not know.
    pub fn is_asked(&self) -> bool {
        self.refused.is_none()
    }

    /// How many packets the card has stamped.
    pub fn stamped(&self) -> u64 {
        self.stamped
    }

    /// How many stamps lay behind the hook's by more than the clocks' error, and were therefore not compared.
    pub fn ahead(&self) -> u64 {
        self.ahead
    }

    /// To within how many nanoseconds the card's stamps are converted to ours; `None` while they are not.
    pub fn error_ns(&self) -> Option<u64> {
        self.clock.as_ref()?.comparison().error_ns()
    }

    /// Puts what the card said, 0 for nothing, into a stamp that has the hook's time.
    #[inline]
    pub(crate) fn stamp(&mut self, wire_ns: u64, stamp: &mut RxStamp) {
        let Some(wire) = NonZeroU64::new(wire_ns) else {
            return;
        };
        self.stamped += 1;
        stamp.wire_ns = Some(wire);
        let Some(clock) = &self.clock else { return };
        let compared = clock.comparison();
        let (Some(at), Some(error)) = (compared.monotonic(wire), compared.error_ns()) else {
            return;
        };
        // No packet is on the wire after it was at the hook: such a time is wrong, and not shown.
        let is_behind = stamp
            .hook_ns
            .is_some_and(|hook| at.get() > hook.get().saturating_add(error));
        match is_behind {
            true => self.ahead += 1,
            false => stamp.wire_monotonic_ns = Some(at),
        }
    }

    /// For the slow part of a loop: reads both clocks when it is time.
    pub(crate) fn follow(&mut self) {
        // A card that is gone is not read again.
        if let Some(clock) = &mut self.clock
            && clock.follow_when_due().is_err()
        {
            self.clock = None;
        }
    }
}

/// For a line in a log.
impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.refused, &self.clock) {
            (Some(why), _) => write!(f, "no times of the card: {why}"),
            (None, Some(clock)) => write!(f, "times of the card by its clock {}", clock.name()),
            (None, None) => f.write_str(
                "times of the card, which has no clock that can be read: they are not compared with ours",
            ),
        }
    }
}

/// What a program is attached as.
type Attachment = (Attached, Vec<XdpSocket>);

/// Loads and attaches a filter: one that asks the card, where the driver can be asked; else one that does
/// not.
pub(crate) fn attach(
    spec: FilterSpec,
    interface: &Interface,
    config: &ReceiverConfig,
) -> Result<(LoadedFilter, Attachment, Card), ReceiverError> {
    let why = match may_ask(interface, config) {
        Ok(()) => match attach_asking(&spec, interface, config) {
            Ok((filter, at)) => return Ok((filter, at, Card::asked(interface))),
            Err(ReceiverError::Xdp(error @ (XdpError::Busy { .. } | XdpError::NotPermitted { .. }))) => {
                return Err(error.into());
            }
            Err(error) => {
                let error = error.to_string();
                error.lines().next().unwrap_or_default().to_owned()
            }
        },
        Err(why) => why,
    };
    let filter = LoadedFilter::load(spec)?;
    let at = attach_at(&filter, interface, config)?;
    Ok((filter, at, Card::not_asked(why)))
}

/// Whether the driver can be asked, or why not.
fn may_ask(interface: &Interface, config: &ReceiverConfig) -> Result<(), String> {
    if !config.wire_time {
        return Err("they are not wanted".to_owned());
    }
    if config.mode == Some(XdpMode::Generic) {
        return Err("only programs in the driver can ask it".to_owned());
    }
    match offers(interface.index()) {
        Ok(Offers { rx_time: true, .. }) => Ok(()),
        Ok(_) => Err("the driver knows none".to_owned()),
        Err(error) => Err(format!("this kernel does not say what drivers know ({error})")),
    }
}

fn attach_asking(
    spec: &FilterSpec,
    interface: &Interface,
    config: &ReceiverConfig,
) -> Result<(LoadedFilter, Attachment), ReceiverError> {
    let spec = FilterSpec {
        wire_time: true,
        ..spec.clone()
    };
    let filter = LoadedFilter::load_for(spec, interface).map_err(|error| match error {
        FilterError::Xdp(error) => ReceiverError::Xdp(error),
        other => ReceiverError::Filter(other),
    })?;
    let config = ReceiverConfig {
        mode: Some(XdpMode::Native),
        ..*config
    };
    let at = attach_at(&filter, interface, &config)?;
    Ok((filter, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_ask_says_why_and_a_stamp_of_an_unknown_clock_is_kept_apart() {
        let lo = Interface::loopback().expect("there is one");
        let config = ReceiverConfig::default();
        let why = may_ask(&lo, &config).expect_err("loopback has no card");
        assert_eq!(
            Card::not_asked(why.clone()).to_string(),
            format!("no times of the card: {why}")
        );
        let generic = ReceiverConfig {
            mode: Some(XdpMode::Generic),
            ..config
        };
        assert!(
            may_ask(&lo, &generic)
                .expect_err("behind the driver")
                .contains("in the driver")
        );
        let mut card = Card::asked(&lo);
        assert!(
            card.is_asked() && card.to_string().contains("not compared"),
            "{card}"
        );
        let mut stamp = RxStamp::here(1);
        card.stamp(0, &mut stamp);
        assert_eq!((stamp, card.stamped()), (RxStamp::here(1), 0));
        card.stamp(5, &mut stamp);
        assert_eq!(
            (stamp.wire_ns, stamp.wire_monotonic_ns),
            (NonZeroU64::new(5), None)
        );
        assert_eq!((card.stamped(), card.error_ns()), (1, None));
    }
}
