//! What can be typed after `privet keygen` and `privet update`.

use super::reading::choice;
use super::{AsTyped, ReadingArguments, examples};
use clap::Args;
use privet_table::build::OnDuplicate;
use privet_table::update_log::NextKeyDigest;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_long_help = examples::KEYGEN)]
pub(crate) struct Keygen {
    /// The file to write the secret key to.
    ///
    /// Only its owner can read it, and an existing file is never replaced.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Make a next key: it signs nothing before the table is handed on, and can stay offline.
    ///
    /// What is printed is its digest, for `privet build --next-key`.
    #[arg(long)]
    pub(crate) next: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("rows").args(["from", "replace_with"]))]
#[command(after_long_help = examples::UPDATE)]
pub(crate) struct Update {
    /// The table file
    #[arg(value_name = "TABLE")]
    pub(crate) table: PathBuf,
    /// The secret key to sign with, as `privet keygen` makes it.
    ///
    /// The table must have been built with it (`privet build --publisher-key`), or see
    /// --begin-history.
    #[arg(long, value_name = "FILE")]
    pub(crate) publisher_key: PathBuf,
    /// Give a key this value.
    ///
    /// A JSON object of all of the value's columns, or the value itself for a table built with
    /// --raw-value. In a table by row number, KEY is the number of a row. In a table of several
    /// values (--multi) this is the key's only value then, and --set again with the same key adds
    /// another. KEY ends at the first =; keys that have one in them go through --from, and keys in
    /// base64 go without their padding.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_assignment)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) set: Vec<(String, String)>,
    /// Remove a key and its value, or all of its values
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) delete: Vec<String>,
    /// Set the key of each row of a CSV, JSON Lines or Parquet file.
    ///
    /// With the columns of the file that the table was built from. In a table by row number, append
    /// the rows. In a table of several values, the rows of a key in this file are all the values
    /// that it has then.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Make the table hold the rows of a file, and nothing else.
    ///
    /// For lists that come out whole. Keys that the file does not have are removed, and equal
    /// values change nothing. The difference is signed as one epoch, or as several if it is large.
    /// A table of ranges takes the file's ranges. Rows of a table by row number can become more,
    /// but not fewer. If the table cannot take all rows, it stays as it is.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["set", "delete", "from", "delete_from"])]
    pub(crate) replace_with: Option<PathBuf>,
    /// What to do with a key that occurs again in the file of --replace-with, as for `privet build`
    #[arg(long, value_parser = choice(OnDuplicate::CHOICES), default_value = "error")]
    #[arg(value_name = "WHAT", requires = "replace_with")]
    pub(crate) on_duplicate: OnDuplicate,
    /// Ranges in the file of --replace-with may lie in one another, as for `privet build`, and in
    /// the table from then on
    #[arg(long, requires = "replace_with")]
    pub(crate) nested: bool,
    /// Let values have other columns than the table's, or columns of other types
    ///
    /// Without it, each new value must have the columns that the table was built with, and their
    /// types. In a table that was built from JSON Lines, rows may differ; there a value is refused
    /// only if it leaves out columns that the key's present value has, or changes their types.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Remove the keys in a file, one on each line; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) delete_from: Option<PathBuf>,
    /// Afterwards replace the table file by one with all changes.
    ///
    /// If those that it does not have yet have grown to that percentage of it; 0: in any case. The
    /// log then keeps the last epochs, up to a quarter of the table file, for clients that are
    /// behind.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "0")]
    pub(crate) compact: Option<u32>,
    /// Sign a table for the first time that was built without --publisher-key
    ///
    /// Clients that know the table refuse it from then on, with exit code 4, until their users type
    /// `privet get --accept-new-table`. Also for a table whose log is lost for good: what is left
    /// in its file goes on as another table, and clients refuse that in the same way.
    #[arg(long)]
    pub(crate) begin_history: bool,
    /// Have another key sign the table's updates from now on.
    ///
    /// It is the next key that the table names, or any if it names none. Clients follow, and keep
    /// their hints. The key in --publisher-key signs this, and nothing afterwards.
    #[arg(long, value_name = "FILE")]
    pub(crate) hand_over_to: Option<PathBuf>,
    /// The digest of the publisher's next key from now on, which `privet keygen --next` prints
    #[arg(long, value_name = "DIGEST")]
    pub(crate) next_key: Option<NextKeyDigest>,
    /// Say what would change, and whether it fits, and sign nothing
    #[arg(long, conflicts_with_all = ["compact", "begin_history", "hand_over_to", "next_key"])]
    pub(crate) dry_run: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reading: AsTyped<ReadingArguments>,
}

fn parse_assignment(typed: &str) -> Result<(String, String), String> {
    typed
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .ok_or_else(|| "write KEY=VALUE, with a key before the first =".to_owned())
}
