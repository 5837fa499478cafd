//! Listens to every channel of a configuration file and writes what they say, one event a line:
//! `recorder FEEDS.toml EVENTS.csv`. Both lines are arbitrated and gaps recovered as for a trader; what could
//! not be had again is in the file as `Gap`.

#[macro_use]
extern crate tickwire_console;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use tickwire_console::failure::Failure;
use tickwire_feed::Channel;
use tickwire_market::{Counters, EventKind, EventSink, InstrumentId, MarketEvent, Nanos};
use tickwire_receive::receiver::{Consumer, Receiver, channels_of};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::files;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::stamp::RxStamp;
use tickwire_runtime::wait::WaitStrategy;
use tickwire_venues::channels::FeedFile;
use tickwire_venues::receiver::ReceiverSection;

struct Recorder {
    clock: Clock,
    out: BufWriter<File>,
    /// The channel whose packet is in hand; instruments that channels have defined.
    source: usize,
    defined: Vec<(usize, InstrumentId)>,
    events: u64,
    /// The first thing that could not be written.
    failure: Option<std::io::Error>,
}

impl EventSink for Recorder {
    fn on_event(&mut self, e: &MarketEvent) {
        if e.kind == EventKind::Definition {
            self.defined.push((self.source, e.instrument));
        }
        self.events += 1;
        let written = writeln!(
            self.out,
            "{},{},{},{},{:?},{},{:?},{},{},{},",
            self.source,
            e.seq.0,
            e.recv_ts.0,
            e.venue_ts.0,
            e.kind,
            e.instrument.0,
            e.side,
            e.price,
            e.qty,
            e.order_id.0
        );
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
    }
}

impl Consumer for Recorder {
    type Successor = Self;

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn turn_to(&mut self, source: usize) {
        self.source = source;
    }

    fn begins(&mut self, stamp: &RxStamp) -> Nanos {
        self.clock.nanos_at(stamp.tsc)
    }

    /// Off the way of a packet: names what was defined.
    fn looks<C: Channel>(&mut self, channel: &C, _: impl FnOnce(&mut Counters)) {
        let mut defined = std::mem::take(&mut self.defined);
        for (source, id) in defined.extract_if(.., |(source, _)| *source == self.source) {
            if let Some(known) = channel.instrument(id) {
                let named = writeln!(self.out, "{source},,,,Named,{},,,,,{}", id.0, known.symbol);
                self.failure = named.err().or(self.failure.take());
            }
        }
        self.defined = defined;
    }
}

fn record(feeds: &Path, events: &Path) -> Result<(), Failure> {
    let file = FeedFile::load(feeds)?;
    let stop = StopFlag::install().map_err(|e| Failure::system(format!("cannot catch signals: {e}")))?;
    let cannot = |e: std::io::Error| Failure::system(format!("cannot write {}: {e}", events.display()));
    let mut out = BufWriter::new(files::create(events).map_err(cannot)?);
    writeln!(
        out,
        "source,seq,recv_ns,venue_ns,kind,instrument,side,price,qty,order,symbol"
    )
    .map_err(cannot)?;
    let mut recorder = Recorder {
        clock: Clock::calibrate(),
        out,
        source: 0,
        defined: Vec::new(),
        events: 0,
        failure: None,
    };
    let mut receiver = Receiver::open(&file.feeds, &ReceiverSection::default(), WaitStrategy::Poll)?;
    eprintln!(
        "recording {} channels until they end, or until Ctrl-C",
        channels_of(&file.feeds).len()
    );
    receiver.run(&mut recorder, &stop);
    recorder.out.flush().map_err(cannot)?;
    eprintln!("{} events", recorder.events);
    recorder.failure.map_or(Ok(()), |e| Err(cannot(e)))
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(feeds), Some(events)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: recorder FEEDS.toml EVENTS.csv; examples/*.toml are files of feeds");
        return ExitCode::from(2);
    };
    match tickwire_console::run(|| record(Path::new(&feeds), Path::new(&events))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("recorder: {failure}");
            ExitCode::from(failure.code as u8)
        }
    }
}
