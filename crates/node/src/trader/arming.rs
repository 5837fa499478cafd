//! The trader's part of an order that leaves by itself: the program's place for it, the moment at which it
//! can be put there, and its end.

use tickwire_kernelpath::Shooting;
use tickwire_market::{EventSink, Nanos};
use tickwire_receive::receiver::{Consumer, Receiver};
use tickwire_trading::strategy::ArmRefusal;

use super::{Routes, Rule, Trader};
use crate::hot::{HotPath, OrderSession};
use crate::link::Entry;
use crate::settings::SendWay;

/// Gives the first session the program's place, if there is one strategy over one session that leaves past
/// the kernel, and one interface whose market data are taken at the hook.
pub(super) fn begin<R: Rule, H: Consumer>(
    rule: &R,
    routes: &Routes,
    receiver: &Receiver<H>,
    sessions: &mut [OrderSession<Entry>],
) -> Result<(), ArmRefusal> {
    if routes.send.first() != Some(&SendWay::Delegated) {
        return Err(ArmRefusal::ByKernel);
    }
    let [session] = sessions else {
        return Err(ArmRefusal::Several);
    };
    if rule.count() > 1 || receiver.hooks() > 1 {
        return Err(ArmRefusal::Several);
    }
    session
        .out
        .use_trigger(receiver.trigger().ok_or(ArmRefusal::NoProgram)?);
    Ok(())
}

impl<R: Rule + 'static> Trader<'_, R>
where
    HotPath<Entry, true, R>: EventSink,
{
    /// Once a turn: what became of the armed order, and one that waits for its place.
    #[inline]
    pub(super) fn arm_orders(&mut self, now: Nanos) {
        let Some(session) = self.host.path.sessions.first_mut() else {
            return;
        };
        if let Some(told) = session.shooting(now) {
            R::end_armed(&mut self.host.path, now, told);
        }
        if let Some((source, instrument)) = self.host.path.rule.to_arm()
            && self.is_up(0)
            && let Some(point) = self.host.receiver.arming_point(source, instrument)
        {
            R::arm(&mut self.host.path, now, &point);
        }
    }

    /// What has left past the kernel, for who asks.
    pub(super) fn note_sending(&self) {
        let lines = self.host.lines.iter().zip(&self.host.path.sessions);
        let delegated = lines.filter(|(_, session)| session.out.counts().is_some());
        let all = delegated.map(|(line, session)| line.link.counts(&session.out));
        if let Some(counts) = all.reduce(|mut all, counts| {
            all.merge(&counts);
            all
        }) {
            self.shared.note_sending(&counts);
        }
    }

    /// Takes back what is armed over a session, before anything is sent there, and tells its end.
    #[inline]
    pub(super) fn end_armed(&mut self, line: usize, now: Nanos) {
        let session = &mut self.host.path.sessions[line];
        session.release_armed(now);
        if let Some(told) = session.shooting(now) {
            R::end_armed(&mut self.host.path, now, told);
        }
    }

    /// The same, and of one that waits for its place: everything open is to end, or is asked for.
    pub(super) fn end_all_armed(&mut self, line: usize, now: Nanos) {
        self.end_armed(line, now);
        if line == 0 && self.host.path.rule.to_arm().is_some() {
            R::end_armed(&mut self.host.path, now, Shooting::Back);
        }
    }
}
