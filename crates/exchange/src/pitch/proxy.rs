//! The Gap Request Proxy's side of one connection: what may be asked for, and how often. PITCH 2.41.29, "Gap
//! Request Proxy".

use tickwire_market::Nanos;
use tickwire_wire::layout::Char;
use tickwire_wire::pitch::{GapRequest, GapResponse, GapStatus, gap_limits};
use tickwire_wire::zerocopy::IntoBytes;

use super::session::ServerSession;
use super::unit::Unit;

/// How often something was done in the current span.
#[derive(Clone, Copy)]
struct Window {
    span_ns: u64,
    max: u32,
    refusal: GapStatus,
    since: Nanos,
    used: u32,
}

/// What one connection has asked for.
pub(super) struct Quotas([Window; 3]);

impl Quotas {
    pub(super) fn new() -> Quotas {
        let window = |span_ns, max, refusal| Window {
            span_ns,
            max,
            refusal,
            since: Nanos::ZERO,
            used: 0,
        };
        Quotas([
            window(Nanos::DAY, gap_limits::DAY, GapStatus::DailyQuota),
            window(60 * Nanos::SECOND, gap_limits::MINUTE, GapStatus::MinuteQuota),
            window(Nanos::SECOND, gap_limits::SECOND, GapStatus::SecondQuota),
        ])
    }

    /// Counts a request, or says which quota is used up.
    fn take(&mut self, now: Nanos) -> Result<(), GapStatus> {
        for window in &mut self.0 {
            if now.since(window.since) >= window.span_ns {
                (window.since, window.used) = (now, 0);
            }
        }
        match self.0.iter().find(|window| window.used >= window.max) {
            Some(window) => Err(window.refusal),
            None => {
                self.0.iter_mut().for_each(|window| window.used += 1);
                Ok(())
            }
        }
    }
}

/// Answers a request; the messages, if they come, come on the gap response group.
pub(super) fn answer(
    now: Nanos,
    request: &GapRequest,
    quotas: &mut Quotas,
    unit: &mut Unit,
    session: &mut ServerSession,
) {
    let status = match grant(now, request, quotas, unit) {
        Ok(()) => GapStatus::Accepted,
        Err(refusal) => refusal,
    };
    let response = GapResponse {
        unit: request.unit,
        sequence: request.sequence,
        count: request.count,
        status: Char(status as u8),
        ..GapResponse::BLANK_MESSAGE
    };
    session.say(response.as_bytes());
}

fn grant(now: Nanos, request: &GapRequest, quotas: &mut Quotas, unit: &mut Unit) -> Result<(), GapStatus> {
    if request.unit != unit.number() {
        return Err(GapStatus::InvalidUnit);
    }
    if request.count.get() > gap_limits::MESSAGES {
        return Err(GapStatus::CountTooLarge);
    }
    quotas.take(now)?;
    unit.repeat(now, request.sequence.get(), request.count.get())
        .map_err(|_| GapStatus::OutOfRange)
}
