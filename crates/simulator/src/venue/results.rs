//! What a session comes to: the report, and the books at its close.

use std::collections::BTreeMap;
use std::path::Path;

use tickwire_console::failure::Failure;
use tickwire_control::notice::Notice;
use tickwire_control::results::{
    ExchangeResults, LevelWriter, OrderOutcome, OrdersTraded, QuoteOutcome, counters_by_id, write_json,
};
use tickwire_exchange::{ClientOrder, ClientQuote, Listing, Outcome};
use tickwire_lab::{Histogram, Series};
use tickwire_market::{Level, Nanos, Price, Side, Symbol};

use super::{Audience, Venue};

impl<'a> Venue<'a> {
    pub(super) fn progress(&self, to: Audience, now: Nanos) {
        if to == Audience::Parent {
            Notice::Progress {
                seconds: self.opened.map_or(0.0, |t| now.since(t) as f64 / 1e9),
                messages: self.market.total(),
                orders: self.market.exchange(0).ledger().len() as u64,
            }
            .send();
        }
    }

    /// What the receiver of the first channel must have, in order of symbol.
    pub(super) fn shown_levels(&self) -> Vec<(Symbol, [Vec<Level>; 2])> {
        let exchange = self.market.exchange(0);
        let Some(published_channel) = exchange.published_channels().first() else {
            return Vec::new();
        };
        let mut listings = exchange.listings().to_vec();
        listings.retain(|listing| published_channel.instruments.contains(&listing.id.0));
        listings.sort_unstable_by_key(|listing| listing.symbol);
        let levels = |id, side| published_channel.publisher.levels(exchange.engine(), id, side);
        let sides = |listing: &Listing| Side::BOTH.map(|side| levels(listing.id, side));
        listings
            .iter()
            .map(|listing| (listing.symbol, sides(listing)))
            .collect()
    }

    pub(super) fn results(&mut self) -> ExchangeResults {
        self.departures.settle();
        let mut packet_to_order = Histogram::new();
        let mut series = Series::with_capacity(self.market.exchange(0).ledger().len());
        let mut unmatched = 0;
        let opened = self.opened.unwrap_or_default();
        for order in self.market.exchange(0).ledger() {
            // Number 0 is no message: a strategy's order at a time of its own.
            let Some(cause) = order.origin.cause.filter(|cause| cause.seq.0 > 0) else {
                continue;
            };
            match self.departures.of(cause.seq.0) {
                Some(ticks) => {
                    let ns = order.origin.received.since(self.clock.nanos_at(ticks));
                    packet_to_order.record(ns);
                    series.push(order.origin.received.since(opened), ns);
                }
                None => unmatched += 1,
            }
        }
        let mut counts = [(0, 0); 2];
        for (_, published_channel) in &self.published_channels {
            for (sum, line) in counts.iter_mut().zip(published_channel.live_counts()) {
                *sum = (sum.0 + line.0, sum.1 + line.1);
            }
        }
        ExchangeResults {
            messages: self.market.total(),
            datagrams: counts.map(|c| c.0),
            dropped: counts.map(|c| c.1),
            retransmissions: self
                .published_channels
                .iter()
                .map(|(_, published_channel)| published_channel.answered())
                .sum(),
            orders: self
                .market
                .exchange(0)
                .ledger()
                .iter()
                .map(outcome_of)
                .collect::<BTreeMap<_, _>>(),
            packet_to_order,
            packet_to_order_series: series,
            unmatched_causes: unmatched,
            quotes: self.market.exchange(0).quotes().map(quote_outcome_of).collect(),
            counters: counters_by_id(&self.counters()),
            orders_traded: orders_traded(self.market.exchange(0).ledger()),
        }
    }

    pub(super) fn write(&self, dir: &Path, results: &ExchangeResults) -> Result<(), Failure> {
        let mut levels = LevelWriter::create(&dir.join("books-exchange.txt"))?;
        // A book that the close has emptied on its channel is compared as the closing auction left it, like
        // any other.
        let exchange = self.market.exchange(0);
        let mut shown = self.shown_levels();
        for (symbol, sides) in &mut shown {
            let was_shown = self.at_close.iter().flatten();
            let had_levels = was_shown
                .into_iter()
                .any(|(other, before)| other == symbol && before.iter().any(|side| !side.is_empty()));
            let listing = exchange
                .listings()
                .iter()
                .find(|listing| listing.symbol == *symbol);
            if had_levels
                && sides.iter().all(Vec::is_empty)
                && let Some(listing) = listing
            {
                *sides = Side::BOTH.map(|side| exchange.levels(listing.id, side).collect());
            }
        }
        for (symbol, sides) in shown {
            for side in Side::BOTH {
                levels.book(symbol.as_str(), side, sides[side as usize].iter().copied())?;
            }
        }
        levels.finish()?;
        // The other venues of a market, as their channels show them at the end.
        for (venue, exchange) in self.market.venues().skip(1) {
            let mut levels = LevelWriter::create(&dir.join(format!("books-{}.txt", venue.name())))?;
            for published_channel in exchange.published_channels() {
                let own = |listing: &&Listing| published_channel.instruments.contains(&listing.id.0);
                for listing in exchange.listings().iter().filter(own) {
                    for side in Side::BOTH {
                        let shown = published_channel
                            .publisher
                            .levels(exchange.engine(), listing.id, side);
                        levels.book(listing.symbol.as_str(), side, shown.into_iter())?;
                    }
                }
            }
            levels.finish()?;
        }
        write_json(&dir.join("exchange.json"), results)
    }
}

fn quote_outcome_of(quote: ClientQuote) -> QuoteOutcome {
    QuoteOutcome {
        firm: quote.firm.0,
        symbol: quote.symbol.to_string(),
        open: quote.open.map(|qty| qty.0.into()),
        traded: quote.traded,
        cash: cash_of(quote.cost),
    }
}

/// Received less paid, of what was bought and sold.
fn cash_of([bought, sold]: [i128; 2]) -> f64 {
    (sold - bought) as f64 / Price::ONE_RAW as f64
}

fn orders_traded(ledger: &[ClientOrder]) -> Vec<OrdersTraded> {
    let mut sums: BTreeMap<_, ([u64; 2], [i128; 2])> = BTreeMap::new();
    for order in ledger.iter().filter(|order| !order.filled.is_zero()) {
        let (traded, cost) = sums.entry((order.firm.0, order.symbol.to_string())).or_default();
        traded[order.side as usize] += u64::from(order.filled.0);
        cost[order.side as usize] += order.cost;
    }
    let row = |((firm, symbol), (traded, cost))| OrdersTraded {
        firm,
        symbol,
        traded,
        cash: cash_of(cost),
    };
    sums.into_iter().map(row).collect()
}

fn outcome_of(order: &ClientOrder) -> (String, OrderOutcome) {
    let status = match order.outcome {
        Outcome::Rejected => '8',
        Outcome::Filled => '2',
        Outcome::Cancelled => '4',
        Outcome::Open if order.filled.is_zero() => '0',
        Outcome::Open => '1',
    };
    // The number without its padding: the trader's orders are numbered.
    let id = order
        .cl_ord_id
        .to_number()
        .map_or_else(|| order.cl_ord_id.to_string(), |n| n.to_string());
    (
        id,
        OrderOutcome {
            status,
            filled: order.filled.0.into(),
        },
    )
}
