//! The messages between a reaper and its owner. The code neither allocates nor panics, because a reaper uses it.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::Pid;

use crate::{End, Stage};

/// The length of the longest message in bytes.
const LENGTH: usize = 9;
/// All stages; the index of each is its number in messages.
const STAGES: [Stage; 8] =
    [Stage::Arguments, Stage::Pipe, Stage::Guard, Stage::Clone, Stage::Chdir, Stage::Limits, Stage::Box, Stage::Exec];

/// The result of one read from the line.
#[derive(Debug)]
pub(super) enum Incoming<T> {
    Nothing,
    Message(T),
    /// The other end is closed.
    Closed,
}

/// What a reaper reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaperEvent {
    Started(Pid),
    /// Which stage failed, and with which error number.
    Failed(Stage, i32),
    /// The program exited with this code.
    Exited(i32),
    /// This signal ended the program.
    Signalled(i32),
}

/// The commands to a reaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaperCommand {
    /// Ask the program's group to end.
    Ask,
    /// Kill it.
    Kill,
}

impl ReaperEvent {
    pub(super) fn send(self, line: impl AsFd) {
        let (kind, first, second) = match self {
            Self::Started(pid) => (0, pid.as_raw_nonzero().get(), 0),
            Self::Failed(stage, error) => (1, STAGES.iter().position(|own| *own == stage).map_or(-1, number), error),
            Self::Exited(code) => (2, code, 0),
            Self::Signalled(signal) => (3, signal, 0),
        };
        let mut bytes = [kind; LENGTH];
        let numbers = first.to_ne_bytes().into_iter().chain(second.to_ne_bytes());
        bytes.iter_mut().skip(1).zip(numbers).for_each(|(place, byte)| *place = byte);
        send_bytes(line, &bytes);
    }

    pub(super) fn receive(line: impl AsFd) -> Incoming<Self> {
        receive(line, |bytes| {
            let (kind, numbers) = bytes.split_first()?;
            let (first, second) = numbers.split_first_chunk()?;
            let (first, second) = (i32::from_ne_bytes(*first), i32::from_ne_bytes(*second.first_chunk()?));
            match kind {
                0 => Pid::from_raw(first).map(Self::Started),
                1 => STAGES.get(usize::try_from(first).ok()?).map(|stage| Self::Failed(*stage, second)),
                2 => Some(Self::Exited(first)),
                3 => Some(Self::Signalled(first)),
                _ => None,
            }
        })
    }

    /// How the program ended, if the event says so.
    pub(super) fn end(self) -> End {
        match self {
            Self::Exited(code) => End::Exited(code),
            Self::Signalled(signal) => End::Signalled(signal),
            Self::Started(_) | Self::Failed(..) => End::Lost,
        }
    }
}

impl ReaperCommand {
    pub(super) fn send(self, line: impl AsFd) {
        send_bytes(line, &[u8::from(self == Self::Kill)]);
    }

    pub(super) fn receive(line: impl AsFd) -> Incoming<Self> {
        receive(line, |bytes| match bytes {
            [0] => Some(Self::Ask),
            [1] => Some(Self::Kill),
            _ => None,
        })
    }
}

fn number(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(-1)
}

/// A closed line is no error, because no reader is left to miss the message.
fn send_bytes(line: impl AsFd, bytes: &[u8]) {
    while send(&line, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) == Err(Errno::INTR) {}
}

fn receive<T>(line: impl AsFd, read: impl FnOnce(&[u8]) -> Option<T>) -> Incoming<T> {
    let mut room = [0; LENGTH];
    loop {
        return match recv(&line, &mut room, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Incoming::Closed,
            Ok((count, _)) => room.get(..count).and_then(read).map_or(Incoming::Nothing, Incoming::Message),
            // The kernel reports this once if the other end closed without reading our messages; its own messages come
            // after that.
            Err(Errno::INTR | Errno::CONNRESET) => continue,
            Err(Errno::AGAIN) => Incoming::Nothing,
            Err(_) => Incoming::Closed,
        };
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn what_is_told_is_heard() {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let stages = STAGES.map(|stage| ReaperEvent::Failed(stage, 2));
        let event =
            [ReaperEvent::Started(Pid::from_raw(7).unwrap()), ReaperEvent::Exited(-1), ReaperEvent::Signalled(9)];
        for event in event.into_iter().chain(stages) {
            event.send(&theirs);
            assert!(
                matches!(ReaperEvent::receive(&ours), Incoming::Message(received) if received == event),
                "{event:?}"
            );
        }
        for order in [ReaperCommand::Ask, ReaperCommand::Kill] {
            order.send(&ours);
            assert!(
                matches!(ReaperCommand::receive(&theirs), Incoming::Message(received) if received == order),
                "{order:?}"
            );
        }
        assert!(matches!(ReaperEvent::receive(&ours), Incoming::Nothing));
        ReaperCommand::Ask.send(&ours);
        ReaperEvent::Exited(3).send(&theirs);
        drop(theirs);
        assert!(
            matches!(ReaperEvent::receive(&ours), Incoming::Message(ReaperEvent::Exited(3))),
            "although an order was never received"
        );
        assert!(matches!(ReaperEvent::receive(&ours), Incoming::Closed));
    }
}
