//! What a small file can make the decoder allocate.
//!
//! A page says how long it is decompressed and how many values it has, and the decoder allocates
//! that. A file of some kilobytes could say gigabytes. So each page is looked at before it is
//! decompressed, and again before its values are decoded.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length, RowGroupReader};
use privet_core::codec::Reader;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest page, decompressed: 128 MiB. Writers make pages of about 1 MiB, some up to 100 MiB.
const MOST_BYTES: u64 = 1 << 27;

/// The most bytes of the pages of all columns that are in memory at once: 512 MiB, and 2 MiB for
/// each column.
const MOST_HELD: u64 = 1 << 29;
const HELD_PER_COLUMN: u64 = 2 << 20;

/// The most values of a page.
const MOST_VALUES: u64 = 1 << 24;

/// The most values of the pages that a batch of rows needs where a row has several, and of a
/// dictionary. Each may take 32 bytes.
const MOST_KEPT: u64 = 1 << 22;

/// The last bytes of a file, which lead to its table of contents.
const FOOTER_LEN: u64 = 8;

/// The bytes of decompressed pages in memory, of all columns that are read.
#[derive(Default)]
pub(super) struct PageBytes {
    bytes: AtomicU64,
    columns: AtomicU64,
}

impl PageBytes {
    /// So many columns are read.
    pub(super) fn expect(&self, columns: usize) {
        self.columns.store(columns as u64, Ordering::Relaxed);
    }

    /// Whether there is room for a page of `page` bytes.
    fn check(&self, page: u64) -> Result<()> {
        limit("a page", page, "bytes", MOST_BYTES)?;
        let most = MOST_HELD + HELD_PER_COLUMN * self.columns.load(Ordering::Relaxed);
        let all = self.bytes.load(Ordering::Relaxed) + page;
        limit("a page, with those of other columns,", all, "bytes", most)
    }
}

/// A file, whose pages are looked at before they are decompressed.
pub(super) struct Pages {
    pub(super) file: File,
    pub(super) held: Arc<PageBytes>,
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Pages {
    type T = BufReader<File>;

    /// The decoder reads the headers of pages here, and the file's last bytes.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut read = self.file.get_read(start)?;
        if start.checked_add(FOOTER_LEN) != Some(self.len()) {
            let (_, bytes) = lengths(read.fill_buf()?).ok_or_else(|| {
                ParquetError::General("a page does not begin with its lengths".to_owned())
            })?;
            self.held.check(bytes)?;
        }
        Ok(read)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes> {
        if length as u64 > self.len() {
            return Err(ParquetError::EOF("a page is longer than the file".to_owned()));
        }
        self.file.get_bytes(start, length)
    }
}

/// The kind of a page and its length, decompressed: the first two fields of its header, in Thrift's
/// compact protocol. Every writer puts them first.
fn lengths(header: &[u8]) -> Option<(u64, u64)> {
    let mut reader = Reader::new("the header of a page", header);
    let mut next = || {
        // The next field, of 32 bits.
        (reader.u8().ok()? == 0x15).then_some(())?;
        let mut number = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = reader.u8().ok()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // Negative numbers are the odd ones, and no lengths.
                return (number & 1 == 0).then_some(number >> 1);
            }
        }
        None
    };
    Some((next()?, next()?))
}

fn limit(what: &str, number: u64, of: &str, limit: u64) -> Result<()> {
    match number <= limit {
        true => Ok(()),
        false => Err(ParquetError::General(format!(
            "{what} has {number} {of}, and the limit is {limit}; write the file again with smaller pages"
        ))),
    }
}

/// The values of leaf number `number` of a row group, and how many of them one batch may still
/// need.
pub(super) fn column(
    group: &dyn RowGroupReader,
    number: usize,
    left: &Arc<Left>,
    held: &Arc<PageBytes>,
) -> Result<ColumnReader> {
    let pages = Counted {
        pages: group.get_column_page_reader(number)?,
        is_incremental: is_incremental(group, number),
        left: Arc::clone(left),
        held: Arc::clone(held),
        ahead: None,
        lengths: [0; 2],
        dictionary: 0,
    };
    let column = group.metadata().column(number).column_descr_ptr();
    Ok(get_column_reader(column, Box::new(pages)))
}

/// Whether each value may repeat a long beginning of the one before it, in few bytes of a page.
pub(super) fn is_incremental(group: &dyn RowGroupReader, number: usize) -> bool {
    group.metadata().column(number).encodings().any(|one| one == Encoding::DELTA_BYTE_ARRAY)
}

/// How many values the pages that a batch of rows needs may still have.
#[derive(Default)]
pub(super) struct Left(AtomicU64);

impl Left {
    /// A batch begins, of rows that have one value each or several.
    pub(super) fn begin(&self, several: bool) {
        self.0.store(if several { MOST_KEPT } else { MOST_VALUES }, Ordering::Relaxed);
    }
}

/// Pages whose values are counted.
struct Counted {
    pages: Box<dyn PageReader>,
    /// A page that was looked at before its turn. The decoder looks at headers alone, and then
    /// comes back for what follows them; here it would be taken for a header.
    ahead: Option<Page>,
    is_incremental: bool,
    left: Arc<Left>,
    held: Arc<PageBytes>,
    /// The bytes of the last two pages: the present one, and the one after it …
    lengths: [u64; 2],
    /// … and of the dictionary.
    dictionary: u64,
}

impl Counted {
    fn fetch(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.iter().try_for_each(|page| self.check(page))?;
        Ok(page)
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let (values, bytes) = (u64::from(page.num_values()), page.buffer().len() as u64);
        let is_dictionary = matches!(page, Page::DictionaryPage { .. });
        let gone = match is_dictionary {
            true => mem::replace(&mut self.dictionary, bytes),
            false => {
                let [present, before] = self.lengths;
                self.lengths = [bytes, present];
                before
            }
        };
        self.held.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.held.bytes.fetch_sub(gone, Ordering::Relaxed);
        if page.encoding() == Encoding::DELTA_BYTE_ARRAY && !self.is_incremental {
            return Err(ParquetError::General("a page has another encoding than is said".into()));
        }
        if is_dictionary {
            return limit("a dictionary", values, "values", MOST_KEPT.min(bytes));
        }
        let left = self.left.0.load(Ordering::Relaxed);
        limit("a page, with those before it,", values, "values", left)?;
        self.left.0.store(left - values, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let held = self.lengths.iter().sum::<u64>() + self.dictionary;
        self.held.bytes.fetch_sub(held, Ordering::Relaxed);
    }
}

impl PageReader for Counted {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        match self.ahead.take() {
            Some(page) => Ok(Some(page)),
            None => self.fetch(),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        if self.ahead.is_none() {
            self.ahead = self.fetch()?;
        }
        let metadata = |page: &Page| PageMetadata {
            num_rows: match page {
                Page::DataPageV2 { num_rows, .. } => Some(*num_rows as usize),
                _ => None,
            },
            num_levels: Some(page.num_values() as usize),
            is_dict: matches!(page, Page::DictionaryPage { .. }),
        };
        Ok(self.ahead.as_ref().map(metadata))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.get_next_page().map(drop)
    }
}

impl Iterator for Counted {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
