//! The command line of `tickwire mirror`.

use std::path::PathBuf;

use tickwire_console::failure::Failure;
use tickwire_runtime::signal::StopFlag;

/// Which side.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum MirrorCommand {
    /// Says what the feed handler of this host has in shared memory, to all who listen
    #[command(after_help = "\
Examples:
  tickwire mirror publish --channel 'aeron:udp?endpoint=224.20.30.41:40456|interface=10.7.0.1/24'
  tickwire mirror publish --channel 'aeron:udp?control=10.7.0.1:4046|control-mode=dynamic'
      where there is no multicast: to each that asks")]
    Publish(PublishArgs),
    /// Keeps shared memory of this host equal to that of the feed handler of another
    #[command(after_help = "\
Examples:
  tickwire mirror receive --folder /run/tickwire --channel 'aeron:udp?endpoint=224.20.30.41:40456|interface=10.7.0.2/24'
      and then: tickwire top --folder /run/tickwire
  tickwire mirror receive --channel 'aeron:udp?endpoint=10.7.0.2:4047|control=10.7.0.1:4046|control-mode=dynamic'
      where there is no multicast")]
    Receive(ReceiveArgs),
}

/// What both sides are told of Aeron.
#[derive(clap::Args, Clone, Debug)]
pub struct LinkArgs {
    /// Aeron's channel, as its own programs take it; term-length, rcv-wnd, so-rcvbuf and fc are put where
    /// they are missing
    #[arg(long, value_name = "URI")]
    pub channel: String,
    /// The live stream; the snapshot's is the next number
    #[arg(long, default_value_t = 7700, value_name = "N")]
    pub stream: i32,
    /// Where the driver's files are; else `aeron` in the folder
    #[arg(long, value_name = "DIR")]
    pub aeron_dir: Option<PathBuf>,
    /// Use the driver that runs at --aeron-dir already, C or Java, instead of one in this process
    #[arg(long, requires = "aeron_dir")]
    pub external_driver: bool,
    /// The processor core that this thread is pinned to
    #[arg(long, default_value_t = -1, allow_negative_numbers = true, value_name = "N", hide_default_value = true)]
    pub core: i32,
    /// Never sleep: the shortest latency, for a core of its own
    #[arg(long)]
    pub spin: bool,
    /// A line of counters every so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub stat: Option<u64>,
}

/// The arguments of `tickwire mirror publish`.
#[derive(clap::Args, Clone, Debug)]
pub struct PublishArgs {
    /// Folder of the feed handler; else $TICKWIRE_FOLDER, else $XDG_RUNTIME_DIR/tickwire or /run/tickwire,
    /// whichever has a region
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// What is said of Aeron.
    #[command(flatten)]
    pub link: LinkArgs,
    /// Books go out at most so often, each as it then is; events always, all of them
    #[arg(long, default_value_t = 5, value_name = "MS", value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub books_every: u64,
}

/// The arguments of `tickwire mirror receive`.
#[derive(clap::Args, Clone, Debug)]
pub struct ReceiveArgs {
    /// Folder of the shared memory that is written; else $TICKWIRE_FOLDER, else /run/tickwire for root and
    /// $XDG_RUNTIME_DIR/tickwire for others
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// What is said of Aeron.
    #[command(flatten)]
    pub link: LinkArgs,
    /// The largest region that is made, MiB; one that a publisher says to be larger is refused
    #[arg(long, default_value_t = 4096, value_name = "MIB")]
    pub memory: u64,
}

/// Runs a side to its end.
///
/// # Errors
/// Why it ended, or could not begin; always, where the program was built without Aeron.
pub fn run(command: &MirrorCommand, stop: &StopFlag) -> Result<(), Failure> {
    #[cfg(feature = "aeron")]
    return match command {
        MirrorCommand::Publish(args) => crate::run::publish(args, stop),
        MirrorCommand::Receive(args) => crate::run::receive(args, stop),
    };
    #[cfg(not(feature = "aeron"))]
    {
        let _ = (command, stop);
        Err(Failure::config(
            "this program was built without Aeron: build one with `cargo install --locked --path apps/tickwire --features aeron` \
             (needs CMake 3.30, a C++ compiler and libclang; docs/mirror.md)",
        ))
    }
}
