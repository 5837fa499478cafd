//! What the program at the hook takes of a packet: every packet of a session through the kernel's own run of
//! it, one by one.

use tickwire_book::Depth;
use tickwire_console::failure::Failure;
use tickwire_feed::{Channel, Line};
use tickwire_kernel::asm::action;
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Group};
use tickwire_kernel::frame;
use tickwire_kernelpath::LoadedFilter;
use tickwire_lab::{Histogram, Table, format_count};
use tickwire_market::{Counter, EventSink, InstrumentId, MarketEvent, Port, Symbol};
use tickwire_receive::filtering::{FilterGate, Filtering, Gate, framing_of};
use tickwire_rig::recorded::{Recorded, SESSION, walk};
use tickwire_simulator::session::{Packing, Session};
use tickwire_simulator::venue::VIRTUAL_START;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring::{self, Reception, WithChannel};
use tickwire_wire::itch50::StockDirectory;
use tickwire_wire::moldudp64::{self, Payload};

use super::{End, evenly, looked_into, pin_to};
use crate::cli::BenchArgs;
use crate::feedbench::symbols_of;

/// Both lines, of the organisation's own scope.
const LINES: [Group; 2] = [
    Group::new([239, 192, 91, 77], 26_977),
    Group::new([239, 192, 91, 78], 26_978),
];
/// Packets between two looks at the channel, which arm the filter; once it is armed they find nothing to do.
const PACKETS_PER_LOOK: u64 = 256;
/// Runs of a frame that the program passes at once.
const BARE_RUNS: u32 = 20_000;

/// Test runs fail only where they are forbidden.
fn failed(e: std::io::Error) -> Failure {
    Failure::system(format!("running the program over a frame: {e}"))
}

/// Events about an instrument.
#[derive(Default)]
struct Told(u64);

impl EventSink for Told {
    fn on_event(&mut self, event: &MarketEvent) {
        self.0 += u64::from(event.instrument != InstrumentId::WHOLE_FEED);
    }
}

/// What packets took, nanoseconds as the kernel says them.
#[derive(Default)]
struct Costs {
    packets: u64,
    /// Dropped with one message.
    singles: Histogram,
    /// Dropped with more of them.
    full: Histogram,
    /// Their messages.
    messages: u64,
    delivered: Histogram,
    /// The same packet from the other line.
    duplicates: Histogram,
}

impl Costs {
    fn add(&mut self, other: &Costs) {
        self.packets += other.packets;
        self.messages += other.messages;
        self.singles.add(&other.singles);
        self.full.add(&other.full);
        self.delivered.add(&other.delivered);
        self.duplicates.add(&other.duplicates);
    }

    fn dropped(&self) -> u64 {
        self.singles.count() + self.full.count()
    }
}

/// A session through the program and through a channel that sees everything: what the program drops must say
/// nothing of who is wanted.
struct Trial<'a> {
    session: &'a Session,
    protocol: Protocol,
    filter: LoadedFilter,
}

fn load(protocol: Protocol) -> Result<LoadedFilter, String> {
    let spec = FilterSpec {
        channels: vec![ChannelSpec {
            framing: framing_of(protocol),
            groups: LINES.to_vec(),
            set: 0,
        }],
        ..FilterSpec::default()
    };
    LoadedFilter::load(spec).map_err(|e| e.to_string())
}

/// A payload in a frame of a line.
fn framed<'b>(payload: &[u8], line: usize, buffer: &'b mut [u8]) -> &'b [u8] {
    let to = (LINES[line].address, LINES[line].port);
    let length = frame::encode(buffer, 0, to, payload).expect("room for what a frame holds");
    &buffer[..length]
}

impl WithChannel for Trial<'_> {
    type Output = Result<Costs, Failure>;

    fn run<C: Channel + 'static>(self, mut channel: C, _: Depth) -> Self::Output {
        let Trial {
            session,
            protocol,
            mut filter,
        } = self;
        let mut costs = Costs::default();
        let mut told = Told::default();
        let mut filtering = Filtering::new(framing_of(protocol));
        filtering.begin(&mut FilterGate::new(&mut filter, 0));
        filtering.prepare(&mut channel);
        for (port, bytes) in &session.before {
            channel.on_datagram(VIRTUAL_START, *port, Line::A, bytes, &mut told);
        }
        let mut buffer = vec![0; frame::HEADERS + frame::PAYLOAD_MAX];
        for (n, payload) in (1_u64..).zip(walk(&session.live)) {
            let is_armed = filter.is_armed(0) && !filter.holds(0);
            let (mut is_dropped, mut took) = (false, None);
            // What is longer goes by the sockets.
            if payload.len() <= frame::PAYLOAD_MAX {
                let run = filter.program().test(framed(payload, 0, &mut buffer), 1);
                let run = run.map_err(failed)?;
                is_dropped = run.action == action::DROP as u32;
                took = is_armed.then_some(run.nanoseconds.into());
                let copy = filter.program().test(framed(payload, 1, &mut buffer), 1);
                let copy = copy.map_err(failed)?;
                if is_armed && copy.action == action::DROP as u32 {
                    costs.duplicates.record(copy.nanoseconds.into());
                }
            }
            costs.packets += u64::from(is_armed);
            told.0 = 0;
            let before = channel.counters().get(Counter::Messages);
            let (next, noted) = (channel.next_seq(), filtering.noted(&mut channel));
            channel.on_datagram(VIRTUAL_START, Port::Live, Line::A, payload, &mut told);
            let messages = channel.counters().get(Counter::Messages) - before;
            match (took, is_dropped, messages) {
                (None, ..) => {}
                (Some(took), false, _) => costs.delivered.record(took),
                (Some(took), true, 1) => costs.singles.record(took),
                (Some(took), true, messages) => {
                    costs.full.record(took);
                    costs.messages += messages;
                }
            }
            let is_followed = is_armed && !filter.holds(0);
            filtering.note(&mut channel, payload, next, (noted, is_followed));
            if is_dropped && told.0 > 0 {
                return Err(Failure::check(format!(
                    "{protocol}: packet {n} was dropped and has {} messages about instruments that are wanted",
                    told.0
                )));
            }
            let mut gate = FilterGate::new(&mut filter, 0);
            filtering.guard(&channel, &mut gate);
            if n % PACKETS_PER_LOOK == 0 {
                // The channel has seen everything: nothing is to be told.
                if filtering.is_to_open(&channel, &mut gate) {
                    gate.disarm();
                }
                filtering.settle(&mut channel, &mut gate);
            }
        }
        Ok(costs)
    }
}

/// Nanoseconds of runs that do not depend on what was run before.
struct Bare {
    /// A frame of other traffic, a run at a time, at the median.
    once: u64,
    /// A million runs of it, each.
    often: u64,
    /// A million runs of a packet that the other line has brought already, each.
    duplicate: u64,
}

fn bare(filter: &mut LoadedFilter) -> Result<Bare, Failure> {
    const OFTEN: u32 = 1_000_000;
    let mut other = [0; 64];
    // ARP.
    other[12..14].copy_from_slice(&[0x08, 0x06]);
    let often = filter.program().test(&other, OFTEN).map_err(failed)?;
    let mut once = Histogram::new();
    for _ in 0..BARE_RUNS {
        once.record(
            filter
                .program()
                .test(&other, 1)
                .map_err(failed)?
                .nanoseconds
                .into(),
        );
    }
    filter.arm_itch(0, *SESSION, 1);
    let packets = Recorded::generate(1, 1_000, 10).packets(1);
    let first = walk(&packets).next().unwrap_or_default();
    let mut buffer = vec![0; frame::HEADERS + frame::PAYLOAD_MAX];
    filter
        .program()
        .test(framed(first, 0, &mut buffer), 1)
        .map_err(failed)?;
    let duplicate = filter.program().test(framed(first, 1, &mut buffer), OFTEN);
    let duplicate = duplicate.map_err(failed)?;
    if duplicate.action != action::DROP as u32 {
        return Err(Failure::check(
            "the other line's copy of a packet was not dropped",
        ));
    }
    Ok(Bare {
        once: once.at_quantile(0.5),
        often: often.nanoseconds.into(),
        duplicate: duplicate.nanoseconds.into(),
    })
}

/// Nobody wanted, ITCH in packets of so many messages each.
fn counted(args: &BenchArgs, messages: u64, per_packet: u16) -> Result<Costs, Failure> {
    let mut filter = load(Protocol::Itch50).map_err(Failure::system)?;
    filter.want_all(0, false);
    filter.arm_itch(0, *SESSION, 1);
    let symbols = u16::try_from(symbols_of(args)).unwrap_or(u16::MAX);
    let recorded = Recorded::generate(args.seed, messages, symbols);
    let (mut costs, mut for_all) = (Costs::default(), 0);
    let mut buffer = vec![0; frame::HEADERS + frame::PAYLOAD_MAX];
    for payload in walk(&recorded.packets(per_packet)) {
        let run = filter.program().test(framed(payload, 0, &mut buffer), 1);
        let run = run.map_err(failed)?;
        costs.packets += 1;
        for_all += u64::from(is_for_all(payload));
        match run.action == action::DROP as u32 {
            false => costs.delivered.record(run.nanoseconds.into()),
            true if per_packet == 1 => costs.singles.record(run.nanoseconds.into()),
            true => {
                costs.full.record(run.nanoseconds.into());
                costs.messages += u64::from(per_packet);
            }
        }
        let copy = filter.program().test(framed(payload, 1, &mut buffer), 1);
        costs.duplicates.record(copy.map_err(failed)?.nanoseconds.into());
    }
    match costs.delivered.count() == for_all {
        true => Ok(costs),
        false => Err(Failure::check(format!(
            "ITCH in packets of {per_packet}: {} packets were delivered, {for_all} are for everybody and nobody wants anything",
            costs.delivered.count()
        ))),
    }
}

/// Whether one of a packet's messages says who an instrument is, or is about none: such packets are always
/// delivered.
fn is_for_all(payload: &[u8]) -> bool {
    match moldudp64::parse(payload).map(|packet| packet.payload) {
        Ok(Payload::Messages(mut messages)) => {
            messages.any(|message| message[0] == StockDirectory::KIND || message[1..3] == [0, 0])
        }
        _ => false,
    }
}

/// Every feed with a table of its own at the hook, nobody wanted and one in a hundred.
pub(super) fn program(args: &BenchArgs, up_to: u64) -> Result<Table, Failure> {
    pin_to(End::Last)?;
    let messages = args.messages.min(up_to);
    let mut filter = match load(Protocol::Itch50) {
        Ok(filter) => filter,
        Err(reason) => {
            let table = Table::new("what the filter at the hook takes of a packet", &["not measured"]);
            return Ok(table.row([reason]));
        }
    };
    let Bare {
        once,
        often,
        duplicate,
    } = bare(&mut filter)?;
    let besides = once.saturating_sub(often);
    let mut table = Table::new(
        &format!(
            "what the filter at the hook takes of a packet, nanoseconds: the kernel's own run of it (BPF_PROG_TEST_RUN), once for each packet of a session of {} messages about {} instruments, packets as full as recorded ones and as in a busy second; a run takes {besides} besides, which is left out (other traffic: {once} once, {often} of a million; a duplicate {duplicate} of a million)",
            format_count(messages),
            symbols_of(args),
        ),
        &[
            "feed",
            "% wanted",
            "packets",
            "% dropped",
            "one message: p50",
            "p99",
            "full: messages",
            "p50",
            "p99",
            "p50 a message",
            "delivered: p50",
            "p99",
            "duplicate: p50",
            "p99",
        ],
    );
    for per_packet in [1, 4, 30] {
        let name = format!("itch50, {per_packet} a packet");
        let costs = counted(args, messages, per_packet)?;
        table = table.row(row(name, 0, &costs, besides));
    }
    for protocol in looked_into(args)? {
        let sessions: Vec<Session> = [Packing::Recorded, Packing::Busy]
            .into_iter()
            .map(|packing| Session::publish(protocol, args.seed, messages, symbols_of(args), packing))
            .collect::<Result<_, _>>()?;
        for percent in [0, 1] {
            let mut costs = Costs::default();
            for session in &sessions {
                let listings = session.exchange.listings();
                let symbols: Vec<Symbol> = evenly(listings, percent).map(|listing| listing.symbol).collect();
                let mut reception = Reception::new(&session.config.receiver);
                reception.symbols = Some(symbols);
                let trial = Trial {
                    session,
                    protocol,
                    filter: load(protocol).map_err(Failure::system)?,
                };
                costs.add(&wiring::with_channel(
                    &session.config.feed[0],
                    0,
                    &reception,
                    trial,
                )??);
            }
            table = table.row(row(protocol.to_string(), percent, &costs, besides));
        }
        eprintln!("  {protocol}");
    }
    Ok(table)
}

fn row(name: String, percent: u64, costs: &Costs, besides: u64) -> Vec<String> {
    let at = |times: &Histogram, quantile: f64| match times.is_empty() {
        true => String::new(),
        false => times.at_quantile(quantile).saturating_sub(besides).to_string(),
    };
    let each = costs.messages as f64 / costs.full.count().max(1) as f64;
    let full = costs.full.at_quantile(0.5).saturating_sub(besides) as f64;
    let per = |value: f64| match costs.full.is_empty() {
        true => String::new(),
        false => format!("{value:.1}"),
    };
    vec![
        name,
        percent.to_string(),
        format_count(costs.packets),
        format!(
            "{:.1}",
            100.0 * costs.dropped() as f64 / costs.packets.max(1) as f64
        ),
        at(&costs.singles, 0.5),
        at(&costs.singles, 0.99),
        per(each),
        at(&costs.full, 0.5),
        at(&costs.full, 0.99),
        per(full / each.max(1.0)),
        at(&costs.delivered, 0.5),
        at(&costs.delivered, 0.99),
        at(&costs.duplicates, 0.5),
        at(&costs.duplicates, 0.99),
    ]
}
