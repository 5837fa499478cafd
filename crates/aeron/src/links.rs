//! Frames over Aeron: a driver, in this process or elsewhere, a publication or a subscription for each
//! stream.
//!
//! Everything is bounded: a publication by its term buffers (three of [`TERM_LENGTH`] unless the channel says
//! otherwise), of which the publisher may fill what the flow control allows, and a subscription by its image
//! of the same size. What does not fit is refused (`Offered::Full`), never queued.

use std::ffi::CString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rusteron_client::{
    Aeron, AeronCError, AeronContext, AeronFragmentClosureAssembler, AeronOfferError, AeronPublication,
    AeronSubscription, Handlers,
};
use rusteron_media_driver::AeronDriverContext;
use rusteron_media_driver::bindings::aeron_threading_mode_t;
use rusteron_media_driver::testing::EmbeddedDriver;

use crate::frame::Stream;
use crate::publish::{Offered, Outlet};

/// Bytes of a term of a publication, of which there are three; what a receiver may be behind and still be
/// helped is half of one: a quarter of a second at a million records a second.
pub const TERM_LENGTH: &str = "32m";
/// Bytes that a receiver may be ahead of what it has read, at most: as much as the kernel lets a socket have,
/// up to 4 MiB.
pub const WINDOW_MAX: u64 = 4 << 20;
/// How long the driver may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Fragments of one poll.
const FRAGMENTS: usize = 256;

/// Why Aeron cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The driver did not begin, or does not answer.
    #[error(
        "Aeron's driver at {dir}: {said}; give --aeron-dir a folder of your own, or end the process that uses it"
    )]
    Driver {
        /// Its folder.
        dir: String,
        /// What Aeron said.
        said: String,
    },
    /// A channel was refused.
    #[error("the channel {channel}, stream {stream}: {source}; see docs/mirror.md for channels that work")]
    Channel {
        /// The channel, whole.
        channel: String,
        /// The stream.
        stream: i32,
        /// What Aeron said.
        source: AeronCError,
    },
    /// A text has a zero byte in it.
    #[error("{0:?} has a zero byte in it; leave it out")]
    Text(String),
    /// Polling failed: the driver is gone.
    #[error("Aeron's driver is gone ({0}); start it again, and this program")]
    Gone(AeronCError),
}

fn text(text: &str) -> Result<CString, LinkError> {
    CString::new(text).map_err(|_| LinkError::Text(text.into()))
}

/// A client, and the driver if it is in this process. Belongs to one thread.
pub struct Link {
    aeron: Aeron,
    driver: Option<EmbeddedDriver>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("has_driver", &self.driver.is_some())
            .finish_non_exhaustive()
    }
}

impl Link {
    /// Begins with the driver that runs at `dir`, or with one of its own there; what is in the folder then is
    /// removed.
    ///
    /// # Errors
    /// There is no driver, or it cannot begin.
    pub fn open(dir: &Path, is_external: bool) -> Result<Link, LinkError> {
        let name = dir.display().to_string();
        let dir = text(&name)?;
        let failed = |source: &dyn std::fmt::Display| LinkError::Driver {
            dir: name.clone(),
            said: source.to_string(),
        };
        let driver = match is_external {
            true => None,
            false => Some(
                EmbeddedDriver::launch_with(|context: &AeronDriverContext| {
                    context.set_dir(&dir)?;
                    context.set_dir_delete_on_start(true)?;
                    context.set_dir_delete_on_shutdown(true)?;
                    context.set_term_buffer_sparse_file(true)?;
                    context.set_threading_mode(aeron_threading_mode_t::AERON_THREADING_MODE_SHARED)?;
                    // A lost frame holds up what is behind it: a host asks within a millisecond, not ten.
                    context.set_nak_multicast_max_backoff_ns(1_000_000)?;
                    Ok(())
                })
                .map_err(|e| failed(&e))?,
            ),
        };
        let connect = || {
            let context = AeronContext::new()?;
            context.set_dir(&dir)?;
            let aeron = Aeron::new_blocking(&context, PATIENCE)?;
            aeron.start()?;
            Ok(aeron)
        };
        let aeron = connect().map_err(|e: AeronCError| failed(&e))?;
        Ok(Link { aeron, driver })
    }

    /// Publishes a stream.
    ///
    /// # Errors
    /// The driver refuses the channel.
    pub fn publication(&self, channel: &str, stream: i32) -> Result<AeronPublication, LinkError> {
        let uri = with_defaults(channel, &[("term-length", TERM_LENGTH.to_owned())]);
        let failed = |source| LinkError::Channel {
            channel: uri.clone(),
            stream,
            source,
        };
        self.aeron
            .async_add_publication(&text(&uri)?, stream)
            .and_then(|adding| adding.poll_blocking(PATIENCE))
            .map_err(failed)
    }

    /// Listens to a stream.
    ///
    /// # Errors
    /// The driver refuses the channel.
    pub fn subscription(&self, channel: &str, stream: i32) -> Result<Inlet, LinkError> {
        let window = window();
        let uri = with_defaults(
            channel,
            &[
                ("rcv-wnd", window.to_string()),
                ("so-rcvbuf", window.to_string()),
                // A place in the stream that was given up is left at once.
                ("rejoin", "true".to_owned()),
            ],
        );
        let failed = |source| LinkError::Channel {
            channel: uri.clone(),
            stream,
            source,
        };
        let subscription = self
            .aeron
            .async_add_subscription(&text(&uri)?, stream, Handlers::NONE, Handlers::NONE)
            .and_then(|adding| adding.poll_blocking(PATIENCE))
            .map_err(failed)?;
        let assembler = AeronFragmentClosureAssembler::new().map_err(LinkError::Gone)?;
        Ok(Inlet {
            subscription,
            assembler,
        })
    }
}

/// What a socket may have for what is not read yet, as the kernel says (`net.core.rmem_max`), in steps of
/// what Aeron takes.
fn window() -> u64 {
    let most = fs::read_to_string("/proc/sys/net/core/rmem_max").ok();
    let most = most
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(212_992u64);
    most.min(WINDOW_MAX) & !0xfff
}

/// A channel with what it does not say itself.
fn with_defaults(channel: &str, defaults: &[(&str, String)]) -> String {
    let mut uri = channel.to_owned();
    // Shared memory between processes of one host takes no sockets.
    let is_network = channel.starts_with("aeron:udp");
    for (key, value) in defaults {
        let is_said = channel
            .split(['?', '|'])
            .any(|part| part.split('=').next() == Some(key));
        if is_said || !is_network && *key != "term-length" {
            continue;
        }
        uri.push(if uri.contains('?') { '|' } else { '?' });
        uri.push_str(&format!("{key}={value}"));
    }
    uri
}

/// Both streams of a publisher.
pub struct Streams {
    live: AeronPublication,
    snapshot: AeronPublication,
    /// Why a publication is closed for good.
    lost: Option<String>,
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams")
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

impl Streams {
    /// The live stream on `stream`, the snapshot's on the next.
    ///
    /// # Errors
    /// The driver refuses one.
    pub fn open(link: &Link, channel: &str, stream: i32) -> Result<Streams, LinkError> {
        Ok(Streams {
            live: link.publication(channel, stream)?,
            snapshot: link.publication(channel, stream + 1)?,
            lost: None,
        })
    }

    /// Why nothing can be published any more, if so.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn of(&self, stream: Stream) -> &AeronPublication {
        match stream {
            Stream::Live => &self.live,
            Stream::Snapshot => &self.snapshot,
        }
    }
}

impl Outlet for Streams {
    fn offer(&mut self, stream: Stream, frame: &[u8]) -> Offered {
        match self.of(stream).offer(frame) {
            Ok(_) => Offered::Taken,
            Err(AeronOfferError::NotConnected) => Offered::Unheard,
            Err(error) if error.is_retryable() => Offered::Full,
            Err(error) => {
                self.lost = Some(error.to_string());
                Offered::Full
            }
        }
    }

    fn is_heard(&self, stream: Stream) -> bool {
        self.of(stream).is_connected()
    }
}

/// A stream that is listened to. Belongs to one thread.
pub struct Inlet {
    subscription: AeronSubscription,
    assembler: AeronFragmentClosureAssembler,
}

impl std::fmt::Debug for Inlet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inlet").finish_non_exhaustive()
    }
}

impl Inlet {
    /// Gives every frame that has come to `take`, in order; whether there was one.
    ///
    /// # Errors
    /// The driver is gone.
    pub fn poll<T>(&mut self, context: &mut T, take: fn(&mut T, &[u8])) -> Result<bool, LinkError> {
        let mut held = (context, take);
        self.assembler
            .poll(
                &self.subscription,
                &mut held,
                |(context, take), frame, _| take(context, frame),
                FRAGMENTS,
            )
            .map(|fragments| fragments > 0)
            .map_err(LinkError::Gone)
    }
}

#[cfg(test)]
mod tests {
    use super::with_defaults;

    #[test]
    fn a_channel_keeps_what_it_says_and_gets_the_rest() {
        let defaults = [("rcv-wnd", "1m".to_owned()), ("term-length", "8m".to_owned())];
        assert_eq!(
            with_defaults("aeron:udp?endpoint=224.1.1.1:1|rcv-wnd=2m", &defaults),
            "aeron:udp?endpoint=224.1.1.1:1|rcv-wnd=2m|term-length=8m"
        );
        assert_eq!(with_defaults("aeron:ipc", &defaults), "aeron:ipc?term-length=8m");
    }
}
