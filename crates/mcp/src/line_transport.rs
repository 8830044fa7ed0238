//! The stdio transport: messages as lines on a pair of streams, each up to a length limit.
//!
//! Lines that hold no message are logged and skipped, up to a limit; beyond it the connection is closed. An unreadable
//! answer ends the call that waits for it.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

use crate::batch::{self, DecodeError};
use crate::log::Log;

/// Free space before one read.
const CHUNK: usize = 16 * 1024;
/// Buffer capacity that stays after a large message.
const KEPT: usize = 64 * 1024;
/// How many messages of the largest size may be skipped in a row.
pub(crate) const LARGEST_SKIPS: usize = 2;
/// How long closing waits for a message that is being written.
const LAST_WRITE: Duration = Duration::from_millis(50);

/// Why we closed a connection, if we did.
pub(crate) type CloseReason = Arc<OnceLock<String>>;

/// A connection over two streams.
#[derive(Debug)]
pub(crate) struct LineTransport<R, W> {
    reader: R,
    outbox: Arc<Outbox<W>>,
    lines: LineReader,
    log: Arc<Log>,
    close_reason: CloseReason,
}

impl<R, W> LineTransport<R, W> {
    pub(crate) fn new(reader: R, writer: W, cap: usize, log: Arc<Log>) -> Self {
        let outbox = Arc::new(Outbox {
            waiting: Mutex::default(),
            writer: AsyncMutex::new(LineWriter { stream: Some(writer), written: 0 }),
        });
        Self { reader, outbox, lines: LineReader::new(cap), log, close_reason: CloseReason::default() }
    }

    /// The place where the reason for closing the connection will be stored.
    pub(crate) fn close_reason(&self) -> CloseReason {
        Arc::clone(&self.close_reason)
    }

    /// Logs an unfinished line, such as a prompt that no person sees.
    pub(crate) fn note_rest(&self) {
        let rest = self.lines.rest();
        if !rest.trim_ascii().is_empty() {
            self.log.add_noise(&batch::head(rest));
        }
    }
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let outbox = Arc::clone(&self.outbox);
        let turn = outbox.put(&item);
        async move { outbox.send(turn?).await }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.lines.next() {
                Some(FoundLine::Message(message)) => return Some(message),
                Some(FoundLine::Noise(line)) if line.trim().is_empty() => {}
                Some(FoundLine::Noise(line)) => self.log.add_noise(&line),
                Some(FoundLine::Flood) => {
                    let _ = self.close_reason.set("it wrote far too much that is no message".to_owned());
                    return None;
                }
                None => {
                    let room = self.lines.room();
                    // A read error also ends the connection; the exit of the program explains it.
                    if self.reader.read_buf(room).await.unwrap_or(0) == 0 {
                        return None;
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        if let Ok(mut writer) = timeout(LAST_WRITE, self.outbox.writer.lock()).await {
            writer.stream = None;
        }
        Ok(())
    }
}

/// Outgoing messages. One write sends all waiting messages, so that many calls wake the server once.
#[derive(Debug)]
struct Outbox<W> {
    waiting: Mutex<WaitingLines>,
    writer: AsyncMutex<LineWriter<W>>,
}

#[derive(Debug, Default)]
struct WaitingLines {
    lines: Vec<u8>,
    /// How many messages were ever queued.
    count: u64,
}

/// The stream, until it is closed or broken.
#[derive(Debug)]
struct LineWriter<W> {
    stream: Option<W>,
    /// How many messages have been written.
    written: u64,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    /// Queues a message and returns its number.
    fn put(&self, item: &ClientJsonRpcMessage) -> io::Result<u64> {
        let mut waiting = self.waiting();
        let before = waiting.lines.len();
        if let Err(error) = serde_json::to_writer(&mut waiting.lines, item) {
            waiting.lines.truncate(before);
            return Err(error.into());
        }
        waiting.lines.push(b'\n');
        waiting.count += 1;
        Ok(waiting.count)
    }

    /// Returns once the message with this number has been written.
    async fn send(&self, number: u64) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        if writer.written >= number {
            return Ok(());
        }
        // A partly written message makes the stream unusable, so it is put back only after a complete write.
        let mut stream = writer.stream.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let WaitingLines { lines, count } = self.take();
        stream.write_all(&lines).await?;
        stream.flush().await?;
        *writer = LineWriter { stream: Some(stream), written: count };
        self.keep(lines);
        Ok(())
    }

    /// Takes all waiting messages.
    fn take(&self) -> WaitingLines {
        let mut waiting = self.waiting();
        WaitingLines { lines: std::mem::take(&mut waiting.lines), count: waiting.count }
    }

    /// Keeps the written buffer for the next messages.
    fn keep(&self, mut lines: Vec<u8>) {
        let mut waiting = self.waiting();
        if waiting.lines.is_empty() && lines.capacity() <= KEPT {
            lines.clear();
            waiting.lines = lines;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds messages in bytes.
#[derive(Debug)]
struct LineReader {
    buffer: Vec<u8>,
    /// Where the first unread line begins.
    start: usize,
    /// The search found no line end before this position.
    searched: usize,
    /// Whether the current line is the rest of one that was too long.
    skipping: bool,
    /// Bytes since the last message that belong to no message.
    noise: usize,
    cap: usize,
    /// Messages of one batch.
    batch: VecDeque<ServerJsonRpcMessage>,
}

/// A message, or a line that holds none.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are messages, and none is kept")]
enum FoundLine {
    Message(ServerJsonRpcMessage),
    Noise(String),
    Flood,
}

impl LineReader {
    fn new(cap: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, skipping: false, noise: 0, cap, batch: VecDeque::new() }
    }

    /// The buffer for more bytes; lines that were read are removed.
    fn room(&mut self) -> &mut Vec<u8> {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT {
            self.buffer.shrink_to(KEPT);
        }
        self.buffer.reserve(CHUNK);
        &mut self.buffer
    }

    /// The unfinished line, unless it was already logged.
    fn rest(&self) -> &[u8] {
        self.buffer.get(self.start..).filter(|_| !self.skipping).unwrap_or_default()
    }

    fn next(&mut self) -> Option<FoundLine> {
        if let Some(message) = self.batch.pop_front() {
            return Some(FoundLine::Message(message));
        }
        if self.noise > self.cap.saturating_mul(LARGEST_SKIPS) {
            return Some(FoundLine::Flood);
        }
        let fresh = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(length) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return self.overlong();
        };
        let (from, to) = (self.start, self.searched + length);
        self.start = to + 1;
        self.searched = self.start;
        if std::mem::take(&mut self.skipping) {
            self.noise += to - from;
            return self.next();
        }
        let line = self.buffer.get(from..to).unwrap_or_default();
        match batch::read(line, &mut self.batch) {
            Ok(message) => {
                self.noise = 0;
                Some(FoundLine::Message(message))
            }
            Err(why) => {
                self.noise += line.len() + 1;
                Some(unreadable(line, &why))
            }
        }
    }

    /// Drops the beginning of an unfinished line that is already too long.
    fn overlong(&mut self) -> Option<FoundLine> {
        let line = self.buffer.get(self.start..).unwrap_or_default();
        if self.skipping {
            self.noise += line.len();
            self.start = self.buffer.len();
            return (self.noise > self.cap.saturating_mul(LARGEST_SKIPS)).then_some(FoundLine::Flood);
        }
        if line.len() <= self.cap {
            return None;
        }
        let found = unreadable(line, &DecodeError::Long(self.cap));
        self.noise += line.len();
        self.skipping = true;
        self.start = self.buffer.len();
        Some(found)
    }
}

/// A failure for the request that waits for this line; noise if the line names no request.
fn unreadable(line: &[u8], why: &DecodeError) -> FoundLine {
    batch::failure(line, why).map_or_else(|| FoundLine::Noise(batch::head(line)), FoundLine::Message)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use proptest::prelude::*;
    use rmcp::model::{ClientRequest, PingRequest, RequestId};

    use super::*;

    /// Records each write separately; fails where writing is not allowed.
    #[derive(Clone, Default)]
    struct WriteLog {
        writes: Arc<Mutex<Vec<String>>>,
        full: bool,
    }

    impl AsyncWrite for WriteLog {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            if self.full {
                return Poll::Ready(Err(io::ErrorKind::StorageFull.into()));
            }
            self.writes.lock().unwrap().push(String::from_utf8(bytes.to_vec()).unwrap());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn wire(paper: &WriteLog) -> LineTransport<tokio::io::Empty, WriteLog> {
        LineTransport::new(tokio::io::empty(), paper.clone(), 1000, Arc::new(Log::new(Vec::new(), Vec::new(), 10)))
    }

    fn ping(id: i64) -> ClientJsonRpcMessage {
        ClientJsonRpcMessage::request(ClientRequest::PingRequest(PingRequest::default()), RequestId::Number(id))
    }

    #[tokio::test]
    async fn messages_that_wait_go_out_in_one_write_and_each_once() {
        let paper = WriteLog::default();
        let mut wire = wire(&paper);
        let numbers: Vec<u64> = (1..=3).map(|id| wire.outbox.put(&ping(id)).unwrap()).collect();
        for number in numbers.into_iter().rev() {
            wire.outbox.send(number).await.unwrap();
        }
        wire.send(ping(4)).await.unwrap();
        let line = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        assert_eq!(*paper.writes.lock().unwrap(), [line(1) + &line(2) + &line(3), line(4)]);
        wire.close().await.unwrap();
        assert!(wire.send(ping(5)).await.is_err());
        assert_eq!(paper.writes.lock().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn every_message_that_did_not_go_out_is_known_as_such() {
        let wire = wire(&WriteLog { full: true, ..WriteLog::default() });
        let numbers: Vec<u64> = (1..=3).map(|id| wire.outbox.put(&ping(id)).unwrap()).collect();
        for number in numbers {
            assert!(wire.outbox.send(number).await.is_err());
        }
    }

    fn texts(lines: &mut LineReader) -> Vec<String> {
        std::iter::from_fn(|| lines.next())
            .take(1000)
            .map(|found| match found {
                FoundLine::Message(message) => serde_json::to_string(&message).unwrap(),
                FoundLine::Noise(line) => format!("noise {line}"),
                FoundLine::Flood => "flood".to_owned(),
            })
            .take_while(|text| text != "flood")
            .collect()
    }

    fn feed(lines: &mut LineReader, bytes: &[u8]) -> Vec<String> {
        lines.room().extend(bytes);
        texts(lines)
    }

    #[test]
    fn messages_are_found_whatever_stands_between_them() {
        let mut lines = LineReader::new(1000);
        let found = feed(
            &mut lines,
            b"starting...\n\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\n\
              [{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}]\n{\"jsonrpc\"",
        );
        let answer = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}");
        assert_eq!(found, ["noise starting...".to_owned(), answer(1), "noise ".to_owned(), answer(2), answer(3)]);
        assert_eq!(feed(&mut lines, b":\"2.0\",\"id\":4,\"result\":{}}\n"), [answer(4)]);
    }

    #[test]
    fn one_of_several_messages_that_cannot_be_read_takes_no_other_with_it() {
        let good = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}";
        let found = feed(
            &mut LineReader::new(1000),
            format!("[{{\"id\":1,\"result\":7,\"x\":}},{good},7]\n[INFO] up\n").as_bytes(),
        );
        assert!(found[0].contains("\"id\":1") && found[0].contains("cannot be read"), "{found:?}");
        assert_eq!(found[1..], [good.to_owned(), "noise [INFO] up".to_owned()]);
    }

    #[test]
    fn an_answer_that_is_too_long_fails_its_call_and_no_other() {
        let mut lines = LineReader::new(100);
        let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"x\":\"{}", "x".repeat(90));
        let found = feed(&mut lines, long.as_bytes());
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("\"id\":7") && found[0].contains("longer than 100 bytes"), "{found:?}");
        let next = "{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}";
        assert_eq!(feed(&mut lines, format!("xxxx\"}}}}\n{next}\n").as_bytes()), [next]);
    }

    #[test]
    fn a_line_without_end_is_a_flood_and_takes_no_memory() {
        let mut lines = LineReader::new(1000);
        for _ in 0..100 {
            feed(&mut lines, &[b'x'; 500]);
            assert!(lines.buffer.capacity() <= KEPT + CHUNK);
        }
        assert!(matches!(lines.next(), Some(FoundLine::Flood)));
    }

    #[test]
    fn noise_without_end_is_a_flood() {
        let mut lines = LineReader::new(100);
        for _ in 0..100 {
            feed(&mut lines, b"this is no message at all\n");
        }
        assert!(matches!(lines.next(), Some(FoundLine::Flood)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn messages_are_the_same_however_the_bytes_come(cuts in prop::collection::vec(1_usize..40, 1..20), count in 1_i64..20) {
            let line = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"é\":{id}}}}}\n");
            let text = (0..count).map(line).collect::<Vec<_>>().concat();
            let mut rest = text.as_bytes();
            let (mut lines, mut found) = (LineReader::new(1000), Vec::new());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                found.extend(feed(&mut lines, piece));
                rest = later;
            }
            prop_assert_eq!(found.join("\n") + "\n", text);
        }

        #[test]
        fn any_bytes_are_survived(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20)) {
            let mut lines = LineReader::new(64);
            for piece in pieces {
                feed(&mut lines, &piece);
                if lines.noise > 64 * LARGEST_SKIPS {
                    break;
                }
                prop_assert!(lines.buffer.len() - lines.start <= 64 + 200);
            }
        }
    }
}
