//! What an interface can do of the kernel path.

use std::io;

use serde_json::{Value, json};
use tickwire_console::failure::Failure;
use tickwire_lab::Table;
use tickwire_runtime::card::CardClock;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::xdp::{self, Offers, SocketOffers, Way, XdpError};

/// What was found of an interface.
pub(super) struct Tried {
    interface: Interface,
    ways: Result<Vec<Way>, XdpError>,
    times: io::Result<Offers>,
    of_sockets: io::Result<SocketOffers>,
    clock: Option<String>,
}

impl Tried {
    pub(super) fn new(name: &str) -> Result<Tried, Failure> {
        let interface = Interface::find(name).map_err(|e| Failure::config(format!("--interface: {e}")))?;
        let ways = xdp::probe(&interface);
        let times = xdp::offers(interface.index());
        let of_sockets = xdp::socket_offers(interface.name());
        let clock = CardClock::of_interface(interface.name()).map(|clock| clock.name().to_owned());
        Ok(Tried {
            interface,
            ways,
            times,
            of_sockets,
            clock,
        })
    }

    fn title(&self) -> String {
        let queues = self.interface.receive_queues();
        let all = match queues {
            1 => String::new(),
            _ => ": multicast may arrive on any of them; all are read unless receiver.xdp_queues says fewer"
                .to_owned(),
        };
        let plural = if queues == 1 { "" } else { "s" };
        format!(
            "the kernel path on {}, {queues} receive queue{plural}{all}",
            self.interface.name()
        )
    }

    pub(super) fn to_text(&self) -> String {
        let ways = match &self.ways {
            Ok(ways) => ways,
            Err(error) => return format!("{}: {error}\n{}", self.title(), self.times_text()),
        };
        let mut table = Table::new(&self.title(), &["program", "frames", "works"]);
        for way in ways {
            let copy = if way.zero_copy {
                "without a copy"
            } else {
                "with a copy"
            };
            let works = match &way.outcome {
                Ok(()) => "yes".to_owned(),
                Err(error) => format!("no: {error}"),
            };
            table = table.row([way.mode.to_string(), copy.to_owned(), works]);
        }
        table.to_text(tickwire_console::terminal::width()) + &self.times_text()
    }

    /// What driver and card say of times, in three sentences.
    fn times_text(&self) -> String {
        let times = match &self.times {
            Ok(Offers { rx_time: true, .. }) => {
                "a program in its driver can ask when the card received a packet"
            }
            Ok(_) => "its driver does not know when a card received a packet",
            Err(_) => "this kernel does not say what its driver knows of a card's times (Linux 6.3 does)",
        };
        let sent = match &self.times {
            Ok(Offers { tx_time: true, .. }) => "; when it sent one it could tell, and is not asked",
            Ok(_) => "; when it sent one the driver does not know either",
            Err(_) => "",
        };
        let clock = match &self.clock {
            Some(name) => format!("The card's clock is {name}."),
            None => "It has no clock that this process can read.".to_owned(),
        };
        let of_sockets = match &self.of_sockets {
            Ok(offers) => self.of_sockets_text(offers),
            Err(error) => format!("What is stamped of what sockets send is not known: {error}."),
        };
        format!("{}: {times}{sent}. {clock} {of_sockets}\n", self.interface.name())
    }

    /// Who stamps what sockets send.
    fn of_sockets_text(&self, offers: &SocketOffers) -> String {
        let name = self.interface.name();
        let driver = match offers.by_driver {
            true => "stamps what sockets send",
            false => "does not stamp what sockets send",
        };
        let card = match (offers.by_card, offers.card_is_on) {
            (false, _) => "the card does not".to_owned(),
            (true, Some(false)) => {
                format!("the card can, and is off: `hwstamp_ctl -i {name} -t 1` turns it on")
            }
            (true, Some(true)) => "the card does so, too".to_owned(),
            (true, None) => "the card can; whether it is on is not known".to_owned(),
        };
        format!("The driver {driver} (`trader.send_stamps`); {card}.")
    }

    pub(super) fn to_json(&self) -> Value {
        let (ways, error) = match &self.ways {
            Ok(ways) => (ways.as_slice(), None),
            Err(error) => (&[][..], Some(error.to_string())),
        };
        let ways = ways.iter().map(|way| {
            json!({
                "mode": way.mode.to_string(),
                "zero_copy": way.zero_copy,
                "works": way.outcome.is_ok(),
                "error": way.outcome.as_ref().err().map(ToString::to_string),
            })
        });
        json!({
            "name": self.interface.name(),
            "receive_queues": self.interface.receive_queues(),
            "ways": ways.collect::<Vec<_>>(),
            "card_times": {
                "received": self.times.as_ref().ok().map(|times| times.rx_time),
                "sent": self.times.as_ref().ok().map(|times| times.tx_time),
                "clock": self.clock,
            },
            "send_stamps": self.of_sockets.as_ref().ok().map(|offers| json!({
                "by_driver": offers.by_driver,
                "by_card": offers.by_card,
                "card_is_on": offers.card_is_on,
            })),
            "error": error,
        })
    }
}
