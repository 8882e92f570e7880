//! The examples at the end of each command's `--help`. What begins with `privet` is a line to type:
//! a test gives each to the parser.

/// After the list of commands.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 found or done, 1 not found (of `load`: too slow), 2 usage or bad input, 3 server or \
network, 4 do not try again: a lie, damage, or a failure that may depend on what was asked for.";

/// After the list of commands, where there is more room.
pub(crate) fn all() -> String {
    format!("{ALL}\n\n{EXIT_CODES}")
}

const ALL: &str = "\
Examples:
  See it work:
    privet demo

  Make a table, and serve it:
    privet build capitals.csv --key country -o capitals.privet
    privet serve capitals.privet

  Look something up, from another terminal:
    privet get http://127.0.0.1:7700 --key Kenya

  More about a command:
    privet get --help";

pub(crate) const DEMO: &str = "\
Examples:
  Show everything:
    privet demo

  With a larger table:
    privet demo --entries 2^20

  As a page in a browser:
    privet demo --web";

pub(crate) const BUILD: &str = "\
Examples:
  A table that is looked up by the column `country`:
    privet build capitals.csv --key country -o capitals.privet

  From another program:
    xz -dc rows.jsonl.xz | privet build - --format jsonl --key id -o rows.privet

  A file that is not quite CSV (docs/formats.md has many):
    privet build feed.txt --delimiter ';' --comment '#' --no-header --key 1 -o feed.privet

  A row for each network, looked up by an address:
    privet build networks.csv --range-from network -o networks.privet

  Keys in which upper and lower case do not count:
    privet build hashes.csv --key sha1 --normalize trim,lower -o hashes.privet

  Several rows for a key, of which two columns are kept:
    privet build visits.csv --key country --multi --value year,visitors -o visits.privet

  A table whose updates a key will sign, and one to which its clients follow later:
    privet build old.csv --key country --publisher-key p.key -o old.privet
    privet build new.csv --key country --succeeds old.privet --publisher-key p.key -o new.privet";

pub(crate) const INSPECT: &str = "\
Examples:
  What a table holds:
    privet inspect capitals.privet

  Read every byte and compare it with the digest, for a script:
    privet inspect capitals.privet --verify --json";

pub(crate) const PLAN: &str = "\
Examples:
  For a table that is built:
    privet plan capitals.privet

  For a file that `privet build` reads, with the same options:
    privet plan capitals.csv --key country

  For one that is not there yet, used by many who come back:
    privet plan --keys 5M --value-len 100 --clients 100k --lookups 50

  With a second operator, of whom either may lie:
    privet plan capitals.privet --servers 2 --may-lie

  For a script, with the yardsticks of another machine:
    privet plan capitals.privet --machine server.json --json";

pub(crate) const SERVE: &str = "\
Examples:
  On this machine, by the scheme that suits the table:
    privet serve capitals.privet --listen 127.0.0.1:7700

  One of two servers that do not collude, over TLS:
    privet serve capitals.privet --scheme dpf --listen 0.0.0.0:443 --tls-cert c.pem --tls-key k.pem

  Several tables, the second under another name, and metrics for Prometheus:
    privet serve capitals.privet old=capitals-2024.privet --metrics-listen 127.0.0.1:7790

  What else one scheme can be told:
    privet serve --scheme finite-differences --help";

pub(crate) const GET: &str = "\
Examples:
  One key:
    privet get http://127.0.0.1:7700 --key Kenya

  A key that is a secret, which no list of processes may show:
    printf '%s\\n' \"$KEY\" | privet get http://127.0.0.1:7700 --keys-from -

  A key of bytes, from a table whose keys are written in hexadecimal:
    privet get http://127.0.0.1:7700 --key 0x9348ccb9352910390d366c56636a9b607179ffbf

  Every line of a file, for a script; exit code 1 if one was not found:
    privet get http://127.0.0.1:7700 --keys-from countries.txt --json

  From two servers that do not collude, with answers that are verified:
    privet get https://one.example.org https://two.example.com --verified --key Kenya

  A server with a certificate of its own:
    privet get https://one.example.org:7700 --ca-file cert.pem --key Kenya";

pub(crate) const STATE: &str = "\
Examples:
  What is kept:
    privet state show

  Whether it is whole:
    privet state verify

  Erase all of it:
    privet state reset --yes";

pub(crate) const STATE_SHOW: &str = "\
Examples:
  What is kept in the user's state directory:
    privet state show

  What is kept elsewhere (`get --state`), for a script:
    privet state show /var/lib/lookups --json";

pub(crate) const STATE_VERIFY: &str = "\
Examples:
  Check the user's state directory:
    privet state verify

  Check another one (`get --state`), for a script:
    privet state verify /var/lib/lookups --json";

pub(crate) const STATE_RESET: &str = "\
Examples:
  Say what would be erased, and erase nothing:
    privet state reset

  Erase what is kept for one table; `privet state show` says its id:
    privet state reset --table da48b8cab4e2907f2e003901daa42375 --yes

  Forget what was seen at one server:
    privet state reset --server http://127.0.0.1:7700 --yes";

pub(crate) const KEYGEN: &str = "\
Examples:
  Make the key, and print who signs with it:
    privet keygen -o publisher.key

  Make the key that will hand tables on, and print its digest:
    privet keygen --next -o next.key

  The same for a script:
    privet keygen -o publisher.key --json";

pub(crate) const UPDATE: &str = "\
Deletions come first, then rows of files, then single keys, each in the order given. In a table of \
several values, what a file or --set has of a key replaces all that it had before. All together \
are one epoch: it is made whole or not at all, signed, and appended to TABLE.updates. The table \
file notes how far that reaches; its records stay until the log is folded into it (--compact).

Examples:
  Change one key and delete another:
    privet update t.privet --publisher-key p.key --set 'Kenya={\"population\":\"49\"}' --delete Peru

  Set the keys of a file's rows, and fold the log into the table where it has grown:
    privet update t.privet --publisher-key p.key --from changes.csv --compact 20

  Follow a list that comes out whole every week:
    privet update t.privet --publisher-key p.key --replace-with week2.csv

  Have another key sign from now on:
    privet update t.privet --publisher-key p.key --hand-over-to q.key";

pub(crate) const DOCTOR: &str = "\
Examples:
  Look at this machine:
    privet doctor

  The same for a script:
    privet doctor --json";

pub(crate) const BENCH: &str = "\
Examples:
  SimplePIR on a table of 1 GiB:
    privet bench --records 2^20 --record-len 1024

  Another scheme, on one core, for a script:
    privet bench --scheme dpf --records 2^20 --record-len 32 --threads 1 --json

  What else one scheme can be told:
    privet bench --scheme tapir-pp --help";

pub(crate) const LOAD: &str = "\
Lookups begin when they are due, whether or not earlier ones have been answered, and a lookup's \
latency counts from the moment at which it was due. So a server that stalls is not asked less. \
Percentiles are of all lookups: one that failed counts as slower than any other. A value is \
checked as `get` checks it. Ctrl-C ends the command with exit code 130, and leaves nothing behind.

Examples:
  How many lookups a second this server stands:
    privet load http://127.0.0.1:7700

  The same, with a plot of all rates that were tried:
    privet load http://127.0.0.1:7700 --plot load.svg

  A hundred lookups a second for half a minute:
    privet load http://127.0.0.1:7700 --rate 100 --for 30s

  For a script; exit code 1 if one lookup in a hundred takes longer than 250 ms:
    privet load http://127.0.0.1:7700 --rate 100 --slo p99=250ms --json";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  For bash:
    privet completions bash > ~/.local/share/bash-completion/completions/privet

  For fish:
    privet completions fish > ~/.config/fish/completions/privet.fish";

pub(crate) const MAN: &str = "\
Examples:
  Read the page about the command:
    privet man | man -l -

  Install all pages:
    privet man ~/.local/share/man/man1";
