//! Reads and writes `.tar.gz`.

use std::io::{self, Read};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use tar::{Archive, Builder, Entry, EntryType, Header};

use super::ArchiveError;
use crate::collect::{Collector, LinkBase, Refusal};
use crate::package::{Bounds, Package};

/// Bytes per entry that an archive has beside the bytes of its files: headers, long names, padding.
const ROOM_PER_ENTRY: u64 = 4 << 10;

type Unpacked<'a> = BoundedReader<MultiGzDecoder<&'a [u8]>>;

pub(super) fn read(bytes: &[u8], bounds: Bounds, collector: &mut Collector) -> Result<(), ArchiveError> {
    let room = ROOM_PER_ENTRY.saturating_mul(bounds.entries as u64 + 4);
    let mut archive = Archive::new(BoundedReader {
        inner: MultiGzDecoder::new(bytes),
        left: bounds.bytes.saturating_add(room),
        is_over: false,
    });
    let found = archive.entries().map_err(|error| broken(&error)).and_then(|mut entries| {
        entries.try_for_each(|entry| take(&mut entry.map_err(|error| broken(&error))?, collector))
    });
    let mut rest = archive.into_inner();
    let done = found.and_then(|()| drain(&mut rest));
    // If the archive exceeds its limit, that is the error to report, not the failure of the cut data.
    if rest.is_over { Err(Refusal::TooLarge(bounds.bytes).into()) } else { done }
}

fn take(entry: &mut Entry<'_, Unpacked<'_>>, collector: &mut Collector) -> Result<(), ArchiveError> {
    let path = entry.path_bytes().into_owned();
    let mode = entry.header().mode().map_err(|error| broken(&error))?;
    let target = entry.link_name_bytes().unwrap_or_default().into_owned();
    match entry.header().entry_type() {
        EntryType::Regular | EntryType::Continuous => {
            let size = entry.size();
            collector.file(&path, mode, Some(size), entry)?;
        }
        EntryType::Directory => collector.folder(&path)?,
        EntryType::Symlink => collector.link(&path, &target, LinkBase::Folder)?,
        EntryType::Link => collector.link(&path, &target, LinkBase::Root)?,
        // Git writes the commit of the archive here.
        EntryType::XGlobalHeader => {}
        EntryType::Char | EntryType::Block => collector.other(&path, "a device")?,
        EntryType::Fifo => collector.other(&path, "a pipe")?,
        EntryType::GNUSparse => collector.other(&path, "a sparse file")?,
        _ => collector.other(&path, "something of an unknown kind")?,
    }
    Ok(())
}

/// Reads the rest after the last entry, so that a truncated archive is noticed. Only padding is allowed there.
fn drain(rest: &mut impl Read) -> Result<(), ArchiveError> {
    let mut room = vec![0; 16 << 10];
    loop {
        match rest.read(&mut room).map_err(|error| broken(&error))? {
            0 => return Ok(()),
            count if room.iter().take(count).any(|byte| *byte != 0) => {
                return Err(ArchiveError::Broken("something follows its end".to_owned()));
            }
            _ => {}
        }
    }
}

fn broken(error: &io::Error) -> ArchiveError {
    ArchiveError::Broken(error.to_string())
}

/// Returns at most this many bytes of an archive of any size.
struct BoundedReader<R> {
    inner: R,
    left: u64,
    is_over: bool,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(room)?;
        let Some(left) = self.left.checked_sub(count as u64) else {
            self.is_over = true;
            return Err(io::Error::other("it unpacks to more than it may"));
        };
        self.left = left;
        Ok(count)
    }
}

/// Packs files into `.tar.gz`. The same package always gives the same bytes, independent of machine and time.
pub fn pack(package: &Package) -> io::Result<Vec<u8>> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for (path, file) in package.files() {
        let mut header = Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(if file.executable { 0o755 } else { 0o644 });
        header.set_entry_type(EntryType::Regular);
        builder.append_data(&mut header, path, file.bytes.as_slice())?;
    }
    builder.into_inner()?.finish()
}
