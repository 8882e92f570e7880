//! Where rows come from, and how they are read.

use super::csv::CsvRows;
use super::dialect::{Delimiter, Dialect};
use super::formats::format_by_name;
use super::text::Text;
use super::{
    Cells, ColumnType, ColumnTypes, Counted, Format, WantedColumns, cannot_read, cannot_spool,
    compressed,
};
use crate::choice::Choice;
use crate::values::Values;
use privet_core::{Blame, Error, Reason, Result};
use std::fs::{self, File};
use std::io::{self, Read, Seek as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// CSV, wherever it comes from.
type AnyCsv = CsvRows<Box<dyn Read>>;

/// Where rows come from.
pub struct Source {
    input: Input,
    /// The file that was named; `-` for standard input.
    file: Option<PathBuf>,
    format: Option<Format>,
    dialect: Dialect,
    types: ColumnTypes,
    known_types: ColumnTypes,
    pub(crate) on_empty_key: OnEmptyKey,
    pub(super) like: Option<Like>,
}

enum Input {
    Path(PathBuf),
    Reader {
        name: String,
        reader: Box<dyn Read>,
    },
    /// A copy of what can be read only once, in a temporary file.
    Copy {
        name: String,
        file: File,
    },
    Cells {
        name: String,
        cells: Box<dyn Cells>,
    },
}

/// What to do with a row that has no key, where keys are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEmptyKey {
    /// Refuse the input, naming the row.
    #[default]
    Error,
    /// Leave the row out, and count it.
    Skip,
}

impl OnEmptyKey {
    /// All of them, as people choose them.
    pub const CHOICES: [Choice<Self>; 2] = [
        Choice::new(Self::Error, "error", "Stop and name the line"),
        Choice::new(Self::Skip, "skip", "Leave the row out; the report says how many there were"),
    ];
}

/// The value columns of another input. This input must have them all, and no others.
#[derive(Clone)]
pub(crate) struct Like {
    pub(crate) columns: Vec<String>,
    /// The name of that input.
    pub(crate) of: String,
}

/// An input that is open, and about how long it is.
pub(super) struct Opened {
    pub(super) bytes: Box<dyn Read>,
    pub(super) counter: Rc<std::cell::Cell<u64>>,
    pub(super) bytes_total: Option<u64>,
}

impl Source {
    /// A file. Its format follows from its extension, unless [`format`](Source::format) says
    /// otherwise. The name `-` stands for standard input.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let source = match path.as_os_str() == "-" {
            true => Self::reader("standard input", io::stdin()),
            false => Self::of(Input::Path(path.clone())),
        };
        Self { file: Some(path), ..source }
    }

    /// Anything that can be read, under a name for errors. Needs a [`format`](Source::format), or
    /// for CSV a [`delimiter`](Source::delimiter).
    pub fn reader(name: impl Into<String>, reader: impl Read + 'static) -> Self {
        Self::of(Input::Reader { name: name.into(), reader: Box::new(reader) })
    }

    /// Rows that a program supplies, under a name for errors.
    pub fn cells(name: impl Into<String>, cells: impl Cells + 'static) -> Self {
        Self::of(Input::Cells { name: name.into(), cells: Box::new(cells) })
    }

    fn of(input: Input) -> Self {
        let on_empty_key = OnEmptyKey::Error;
        Self {
            input,
            file: None,
            format: None,
            dialect: Dialect::default(),
            types: Vec::new(),
            known_types: Vec::new(),
            on_empty_key,
            like: None,
        }
    }

    /// Sets the format.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets what separates the cells of a row, for CSV: an ASCII character that is neither a quote
    /// nor a line end. An input whose format is not known otherwise is then read as CSV.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.dialect.delimiter = Some(Delimiter::Character(delimiter));
        self
    }

    /// Says how text is to be read.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Says what the cells of these columns are in JSON values, for CSV. All others are text.
    #[must_use]
    pub fn types(mut self, types: impl IntoIterator<Item = (String, ColumnType)>) -> Self {
        self.types = types.into_iter().collect();
        self
    }

    /// Requires the columns of a table whose values are `values`, and no others, if its values are
    /// of all columns. With `any`, other columns are fine. Columns of CSV have the types that they
    /// have in the table, unless others are [named](Self::types).
    #[must_use]
    pub fn of_table(mut self, name: impl Into<String>, values: &Values, any: bool) -> Self {
        let typed = values.columns.iter().filter(|_| !values.is_raw);
        self.known_types = typed
            .filter_map(|column| Some((column.name.clone(), ColumnType::of(&column.of)?)))
            .collect();
        if !values.is_raw && !any {
            let columns = values.columns.iter().map(|column| column.name.clone()).collect();
            self.like = Some(Like { columns, of: name.into() });
        }
        self
    }

    /// Says what becomes of rows without a key.
    #[must_use]
    pub fn on_empty_key(mut self, on_empty_key: OnEmptyKey) -> Self {
        self.on_empty_key = on_empty_key;
        self
    }

    /// Requires the value columns of another input, and no others.
    #[must_use]
    pub(crate) fn like(mut self, like: Option<Like>) -> Self {
        self.like = like;
        self
    }

    /// The name of the input, as errors give it.
    pub fn name(&self) -> String {
        match &self.input {
            Input::Path(path) => path.display().to_string(),
            Input::Reader { name, .. } | Input::Copy { name, .. } | Input::Cells { name, .. } => {
                name.clone()
            }
        }
    }

    /// The file that it reads, if one was named; `-` is standard input.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// How many bytes the input has, if that is known before it is opened.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`] if there is no such file, [`Blame::Unavailable`] if it cannot be looked
    /// at.
    pub(crate) fn bytes(&self) -> Result<Option<u64>> {
        let metadata = match &self.input {
            Input::Path(path) => fs::metadata(path),
            Input::Copy { file, .. } => file.metadata(),
            Input::Reader { .. } => return Ok(None),
            Input::Cells { cells, .. } => return Ok(cells.size().map(|(_, bytes)| bytes)),
        };
        match metadata {
            Ok(metadata) => Ok(Some(metadata.len()).filter(|len| *len > 0)),
            Err(error) => Err(cannot_open(error).within(self.name())),
        }
    }

    /// Whether its name, or an option, decides its format.
    pub fn tells_format(&self) -> bool {
        self.resolve_format().is_ok()
    }

    pub(crate) fn resolve_format(&self) -> Result<Format> {
        if let Input::Cells { .. } = self.input {
            return Ok(Format::Cells);
        }
        if let Some(format) = self.format {
            return Ok(format);
        }
        let by_name = match &self.input {
            Input::Path(path) => format_by_name(path),
            Input::Reader { .. } | Input::Copy { .. } | Input::Cells { .. } => None,
        };
        match (by_name, &self.input) {
            (Some(format), _) => Ok(format),
            _ if self.dialect.delimiter.is_some() => Ok(Format::Csv),
            (None, input) => {
                let words = match input {
                    Input::Path(path) => {
                        if tells_parquet(path)? {
                            return Ok(Format::Parquet);
                        }
                        "its name does not tell its format; say which it has"
                    }
                    _ => "say which format it has",
                };
                let names: Vec<_> = Format::choices().map(|choice| choice.name).collect();
                let error = Error::api_misuse(format!("{words}: {}", names.join(", ")));
                Err(error.because(Reason::FormatUnknown))
            }
        }
    }

    /// How the source is to be read, if it has that format.
    pub(super) fn checked_dialect(&self, format: Format) -> Result<&Dialect> {
        self.dialect.check(format)?;
        if !self.types.is_empty() && !matches!(format, Format::Csv | Format::Tsv) {
            return Err(Error::api_misuse(
                "only the columns of CSV can be given types: this format has types of its own",
            ));
        }
        Ok(&self.dialect)
    }

    /// `selection`, with what this source says of its columns.
    pub(super) fn wanted(&self, selection: super::Selection) -> WantedColumns {
        WantedColumns {
            selection,
            like: self.like.clone(),
            types: self.types.clone(),
            known_types: self.known_types.clone(),
        }
    }

    /// The file and its length, if the input is a regular file that is not compressed.
    pub(super) fn plain_file(&self) -> Result<Option<(File, u64)>> {
        let Input::Path(path) = &self.input else { return Ok(None) };
        if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(None);
        }
        let (mut file, len) = open_file(path)?;
        Ok((!compressed::is_compressed(&mut file)?).then_some((file, len)))
    }

    /// The cells of an input that has that format.
    pub(super) fn into_cells(self) -> Result<Box<dyn Cells>> {
        match self.input {
            Input::Cells { cells, .. } => Ok(cells),
            _ => Err(Error::internal("bytes are read as if they were rows of cells")),
        }
    }

    /// Opens the input, and decompresses it if it is compressed.
    pub(super) fn open(self) -> Result<Opened> {
        let (input, bytes_total): (Box<dyn Read>, _) = match self.input {
            Input::Path(path) => {
                let (file, len) = open_file(&path)?;
                // A pipe reports length 0, which says nothing of its input.
                (Box::new(file), (len > 0).then_some(len))
            }
            Input::Reader { reader, .. } => (reader, None),
            Input::Cells { .. } => {
                return Err(Error::internal("rows of cells are read as if they were bytes"));
            }
            Input::Copy { mut file, .. } => {
                file.rewind().map_err(cannot_read)?;
                let len = file.metadata().map_err(cannot_read)?.len();
                (Box::new(file), Some(len))
            }
        };
        let counter = Rc::new(std::cell::Cell::new(0));
        let counted = Counted { input, counter: Rc::clone(&counter) };
        let bytes = Box::new(compressed::decompressed(counted)?);
        Ok(Opened { bytes, counter, bytes_total })
    }

    /// The rows of an input in CSV, and how many bytes it has.
    pub(super) fn open_csv(self, selection: super::Selection) -> Result<(AnyCsv, Option<u64>)> {
        let format = self.resolve_format()?;
        let dialect = self.checked_dialect(format)?.clone();
        let wanted = self.wanted(selection);
        let Opened { bytes, counter, bytes_total } = self.open()?;
        Ok((CsvRows::open(bytes, counter, wanted, &dialect, format)?, bytes_total))
    }

    /// Makes sure that the input can be read again: an input that can be read only once is copied
    /// to a temporary file.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`] if its format is unknown or there is no such file,
    /// [`Blame::Unavailable`] if it cannot be copied.
    pub(super) fn keep(self) -> Result<Self> {
        let is_file = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.is_file());
        let name = self.name();
        let format = self.resolve_format()?;
        let input = match self.input {
            Input::Path(path) if is_file(&path) => Input::Path(path),
            Input::Path(path) => Input::Copy { name, file: copy(open_file(&path)?.0)? },
            Input::Reader { reader, .. } => Input::Copy { name, file: copy(reader)? },
            kept @ (Input::Copy { .. } | Input::Cells { .. }) => kept,
        };
        Ok(Self { input, format: Some(format), ..self })
    }

    /// Another source of the same rows, for an input that was [kept](Self::keep). One of the two
    /// must be read to its end before the other is opened, because they may share a file position.
    pub(super) fn again(&self) -> Result<Self> {
        let input = match &self.input {
            Input::Path(path) => Input::Path(path.clone()),
            Input::Copy { name, file } => {
                let file = file.try_clone().map_err(cannot_read)?;
                Input::Copy { name: name.clone(), file }
            }
            Input::Reader { .. } | Input::Cells { .. } => {
                return Err(Error::internal("an input that can be read once is read again"));
            }
        };
        let (types, known_types) = (self.types.clone(), self.known_types.clone());
        let (file, dialect, like) = (self.file.clone(), self.dialect.clone(), self.like.clone());
        Ok(Self { input, file, dialect, types, known_types, like, ..*self })
    }
}

/// A text of any usual encoding and compression, as it is read everywhere: as UTF-8, without a byte
/// order mark, decompressed. If reading it fails, [`cannot_read`] says why.
///
/// # Errors
/// - [`Blame::ApiMisuse`] if it is of a kind that is not read.
/// - [`Blame::Unavailable`] if it cannot be read.
pub fn text_of<R: Read>(input: R) -> Result<impl Read + use<R>> {
    Ok(Text::new(compressed::decompressed(input)?))
}

/// Whether a file whose name has no known extension is Parquet.
///
/// # Errors
/// [`Blame::ApiMisuse`] if it is of a kind that is not read.
fn tells_parquet(path: &Path) -> Result<bool> {
    let (mut file, len) = open_file(path)?;
    // A pipe gives its bytes once.
    if len == 0 {
        return Ok(false);
    }
    compressed::is_compressed(&mut file)?;
    let first = compressed::first_bytes(&mut file, 4).map_err(cannot_read)?;
    Ok(first == b"PAR1")
}

fn open_file(path: &Path) -> Result<(File, u64)> {
    let file = File::open(path).and_then(|file| {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            Err(io::ErrorKind::IsADirectory.into())
        } else {
            Ok((file, metadata.len()))
        }
    });
    file.map_err(cannot_open)
}

fn cannot_open(error: io::Error) -> Error {
    // The caller chose which file to read, but is not to blame if the disk fails.
    let blame = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Blame::ApiMisuse,
        _ => Blame::Unavailable,
    };
    if error.kind() == io::ErrorKind::IsADirectory {
        return Error::new(blame, "it is a folder; name the files in it");
    }
    Error::new(blame, format!("cannot open it: {error}")).caused_by(error)
}

fn copy(mut input: impl Read) -> Result<File> {
    let mut file = tempfile::tempfile().map_err(cannot_spool)?;
    io::copy(&mut input, &mut file).map_err(cannot_spool)?;
    Ok(file)
}
