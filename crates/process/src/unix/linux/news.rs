//! What a keeper and its owner tell one another, each in one message. Neither allocates nor panics: a keeper uses it.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::Pid;

use crate::{End, Stage};

/// Bytes of the longest message; there are no longer ones.
const LENGTH: usize = 9;
/// All stages, each at the place of its number.
const STAGES: [Stage; 7] =
    [Stage::Arguments, Stage::Pipe, Stage::Guard, Stage::Clone, Stage::Chdir, Stage::Limits, Stage::Exec];

/// What comes over the line.
#[derive(Debug)]
pub(super) enum Heard<T> {
    Nothing,
    Message(T),
    /// Nobody is at the other end.
    Silence,
}

/// What a keeper tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Started(Pid),
    /// Which stage failed, and with which error number.
    Failed(Stage, i32),
    /// The program exited with this code.
    Exited(i32),
    /// This signal ended the program.
    Signalled(i32),
}

/// What a keeper is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Ask the program's group to end.
    Ask,
    /// End it.
    Kill,
}

impl News {
    pub(super) fn tell(self, line: impl AsFd) {
        let (kind, first, second) = match self {
            Self::Started(pid) => (0, pid.as_raw_nonzero().get(), 0),
            Self::Failed(stage, error) => (1, STAGES.iter().position(|own| *own == stage).map_or(-1, number), error),
            Self::Exited(code) => (2, code, 0),
            Self::Signalled(signal) => (3, signal, 0),
        };
        let mut bytes = [kind; LENGTH];
        let numbers = first.to_ne_bytes().into_iter().chain(second.to_ne_bytes());
        bytes.iter_mut().skip(1).zip(numbers).for_each(|(place, byte)| *place = byte);
        say(line, &bytes);
    }

    pub(super) fn hear(line: impl AsFd) -> Heard<Self> {
        hear(line, |bytes| {
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

    /// How the program ended, if that is what it tells.
    pub(super) fn end(self) -> End {
        match self {
            Self::Exited(code) => End::Exited(code),
            Self::Signalled(signal) => End::Signalled(signal),
            Self::Started(_) | Self::Failed(..) => End::Lost,
        }
    }
}

impl Order {
    pub(super) fn tell(self, line: impl AsFd) {
        say(line, &[u8::from(self == Self::Kill)]);
    }

    pub(super) fn hear(line: impl AsFd) -> Heard<Self> {
        hear(line, |bytes| match bytes {
            [0] => Some(Self::Ask),
            [1] => Some(Self::Kill),
            _ => None,
        })
    }
}

fn number(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(-1)
}

/// Where nobody listens, nobody needs to be told.
fn say(line: impl AsFd, bytes: &[u8]) {
    while send(&line, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) == Err(Errno::INTR) {}
}

fn hear<T>(line: impl AsFd, read: impl FnOnce(&[u8]) -> Option<T>) -> Heard<T> {
    let mut room = [0; LENGTH];
    loop {
        return match recv(&line, &mut room, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Heard::Silence,
            Ok((count, _)) => room.get(..count).and_then(read).map_or(Heard::Nothing, Heard::Message),
            // Told once, where the other end has gone without hearing us out; what it said comes after that.
            Err(Errno::INTR | Errno::CONNRESET) => continue,
            Err(Errno::AGAIN) => Heard::Nothing,
            Err(_) => Heard::Silence,
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
        let stages = STAGES.map(|stage| News::Failed(stage, 2));
        let news = [News::Started(Pid::from_raw(7).unwrap()), News::Exited(-1), News::Signalled(9)];
        for news in news.into_iter().chain(stages) {
            news.tell(&theirs);
            assert!(matches!(News::hear(&ours), Heard::Message(heard) if heard == news), "{news:?}");
        }
        for order in [Order::Ask, Order::Kill] {
            order.tell(&ours);
            assert!(matches!(Order::hear(&theirs), Heard::Message(heard) if heard == order), "{order:?}");
        }
        assert!(matches!(News::hear(&ours), Heard::Nothing));
        Order::Ask.tell(&ours);
        News::Exited(3).tell(&theirs);
        drop(theirs);
        assert!(matches!(News::hear(&ours), Heard::Message(News::Exited(3))), "although an order was never heard");
        assert!(matches!(News::hear(&ours), Heard::Silence));
    }
}
