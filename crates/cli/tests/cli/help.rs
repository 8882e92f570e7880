//! Help and version.

use crate::place::Place;
use insta::assert_snapshot;
use privet_schemes::SchemeId;

#[test]
fn the_command_explains_itself() {
    let place = Place::new();
    assert_snapshot!(place.run("--help"), @r#"
    [exit 0]
    [stdout]
    Privet: look records up in somebody else's table without the server learning which

    Usage: privet <COMMAND>

    Commands:
      build     Turn a CSV, JSON Lines or Parquet file into a table that can be served
      inspect   Show what a table file (or a file of its points) holds, and check that it is whole
      setup     Make what a scheme needs beside a table: the reference string of tapir-pp, the points of
                finite-differences
      keygen    Make the key with which a table's owner signs its updates
      update    Set and delete keys of a table: the next of its signed updates
      serve     Serve tables over the network
      get       Look records up without the server learning which
      state     Show, check or erase what is kept between lookups
      demo      Show the whole thing in one process: a table, lookups under each scheme, and what the
                server saw
      bench     Measure a scheme on this machine; every record received is compared with the table
      tradeoff  Compute what finite differences cost with more or less storage: a table, JSON, or a plot
      doctor    Say what this machine offers and what to do about what is missing
      help      Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Exit codes: 0 found or done, 1 not found, 2 usage or bad input, 3 server or network, 4 do not try
    again: a lie, damage, or a failure that may depend on what was asked for.
    "#);
    assert_snapshot!(place.run("--version"), @r#"
    [exit 0]
    [stdout]
    privet [VERSION]
    "#);
}

#[test]
fn build_explains_itself() {
    assert_snapshot!(Place::new().run("build --help"), @r"
    [exit 0]
    [stdout]
    Turn a CSV, JSON Lines or Parquet file into a table that can be served

    Usage: privet build [OPTIONS] --output <FILE> <INPUT>...

    Arguments:
      <INPUT>...
              The files to read, one after the other; `-` for standard input (needs --format)

              All have to be of one format and to have the same columns, in any order.

    Options:
          --key <COLUMN>
              Column that holds the key; without it, records are numbered by row from 0

          --key-map <KIND>
              How keys get to records: with buckets every lookup takes one query; with cuckoo it takes
              two, and tables can change without clients having to learn where keys went

              Possible values:
              - buckets: One candidate record for each key
              - cuckoo:  Two candidate records for each key

              [default: buckets]

          --parts <N>
              How many records the value of a key may lie in, 1 to 16: every lookup fetches as many,
              however long the value is, and twice as many with cuckoo. Long values then need no wide
              records; default: 1, or more where values of many kilobytes make that cheaper for clients

          --value <COLUMN,…>
              Columns that make up the value, as compact JSON; default: all but the key

          --raw-value <COLUMN>
              Store the bytes of this one column as the value, instead of JSON

          --max-value <BYTES>
              Refuse values longer than this many bytes

          --on-duplicate <WHAT>
              What to do when a key appears twice

              Possible values:
              - error: Stop and name the key and its lines
              - first: Keep the first row
              - last:  Keep the last row

              [default: error]

          --multi
              Keep all rows with the same key: it has several values, and `get` prints them all, in the
              order of the rows

          --authenticate
              Store with each record the proof that it belongs to the table, 32 bytes for each doubling
              of the number of records, and print the root that clients verify against (`get --root`)

          --publisher-key <FILE>
              Say from the beginning who will sign the table's updates: whose key file this is, made by
              `privet keygen`. Clients that have used the table before its first update then follow it

          --format <FORMAT>
              Format of the inputs; default: by their extension

              Input that gzip or zstd has compressed is recognised by its content: big.csv.gz is CSV.
              What another program decompresses comes through standard input: `zcat big.csv.gz | privet
              build - --format csv -o big.privet`.

              Possible values:
              - csv:     Comma-separated values, the first line with the names of the columns
              - tsv:     The same with tabs
              - jsonl:   JSON Lines: one object on each line
              - parquet: Apache Parquet

          --delimiter <CHARACTER>
              What separates the cells of a row in CSV; default: a comma, in TSV a tab

              A single character, such as `;` or `|` (in quotes, for the shell), or `tab`.

          --types <TYPES>
              What columns of CSV are in JSON: `auto`, or COLUMN=number|boolean|text,…; default: text

              A number is kept as it is written, and an empty cell becomes null. With `auto` the inputs
              are read twice, and a column is a column of numbers if no program writes or reads any of
              them otherwise (so 007, 1.50 and long numbers stay text), or of booleans if it has true
              and false alone. Both together: `auto,zip=text`.

          --on-empty-key <WHAT>
              What to do with a row that has no key

              It has none where the cell is empty or null.

              Possible values:
              - error: Stop and name the line
              - skip:  Leave the row out; the report says how many there were

              [default: error]

      -o, --output <FILE>
              The table file to write. A table that is there already is replaced, unless it has updates;
              a file that is read never is

          --force
              Replace the output also if it is a file that `privet build` has not written

          --json
              Print the report as JSON

      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn inspect_explains_itself() {
    assert_snapshot!(Place::new().run("inspect --help"), @r"
    [exit 0]
    [stdout]
    Show what a table file (or a file of its points) holds, and check that it is whole

    Usage: privet inspect [OPTIONS] <FILE>

    Arguments:
      <FILE>
              The table file, or the file of its points

    Options:
          --verify
              Read the whole file and check its digest

          --head <N>
              Print the first N values as well, as `privet get` prints them

              In a table by key they lie in no order that anybody chose, and without their keys, of
              which the file has tags alone.

          --json
              Print as JSON

      -h, --help
              Print help (see a summary with '-h')
    ");
}

#[test]
fn setup_explains_itself() {
    assert_snapshot!(Place::new().run("setup pointproofs --help"), @r#"
    [exit 0]
    [stdout]
    Make a reference string for tapir-pp. Whoever makes it must be trusted by all clients: who knows the
    secret number it is made from can prove any record. The number is erased when the command ends

    Usage: privet setup pointproofs [OPTIONS] --size <M> --output <FILE>

    Options:
          --size <M>       Records in a partition of the table, at most 65536. About twice the square
                           root of the number of records is a good choice. Tables of any size can be
                           served with it, in partitions of up to so many records
      -o, --output <FILE>  The file to write
          --force          Replace the file if there is one: servers and clients that use it cannot go
                           on without it
          --json           Print the report as JSON
      -h, --help           Print help
    "#);
    assert_snapshot!(Place::new().run("setup points --help"), @r#"
    [exit 0]
    [stdout]
    Compute what servers of finite-differences or finite-differences-many answer from, once and into a
    file (`serve --points`). It belongs to this one version of the table, and may be larger than the
    memory

    Usage: privet setup points [OPTIONS] --scheme <SCHEME> --output <FILE> <TABLE>

    Arguments:
      <TABLE>  The table file

    Options:
          --scheme <SCHEME>        The scheme that will answer: finite-differences or
                                   finite-differences-many
          --storage-limit <BYTES>  At most so many bytes for what each server makes of the table, such
                                   as 2^30; default: 32 times the table. More storage, fewer reads and
                                   shorter answers
          --answer-limit <BYTES>   Answers of at most so many bytes, with the least storage that allows
                                   them
          --variables <M>          Exactly this number of variables, with the degree at which servers
                                   read the least
          --degree <D>             Exactly this degree; with two servers, an odd number of at most half
                                   the variables
          --one-bit                For finite-differences. Records are bytes of value 0 or 1, and are
                                   stored as single bits
          --digits                 For finite-differences. With records of single bits: these are the
                                   characters 0 and 1
          --servers <S>            For finite-differences-many. How many servers are asked, 3 unless it
                                   is said. The more there are, the fewer points each reads, and the
                                   more storage each needs
      -o, --output <FILE>          The file to write, on a disk with room for all points
          --memory <BYTES>         Memory to compute with, beside the table; default: half of what is
                                   available. With less than the points take, they are read from the
                                   disk and written again
          --threads <THREADS>      Threads to compute with; default: all cores
          --kernel <KERNEL>        Instruction set to compute with: portable, avx2 or avx512; default:
                                   the best there is
          --force                  Replace the file if there is one
          --json                   Print the report as JSON
      -h, --help                   Print help
    "#);
}

#[test]
fn serve_explains_itself() {
    assert_snapshot!(Place::new().run("serve --help"), @r#"
    [exit 0]
    [stdout]
    Serve tables over the network

    Usage: privet serve [OPTIONS] <[NAME=]FILE>...

    Arguments:
      <[NAME=]FILE>...  Table files. A table is named after its file, without the extension; NAME=FILE
                        chooses another name

    Options:
          --scheme <SCHEME>        The scheme to answer with: simplepir, doublepir, dpf, dummy-subsets,
                                   dummy-subsets-two, piano, piano-all-parities, singlepass, tapir-mt,
                                   tapir-pp, apir-dpf, apir-matrix-mt, finite-differences,
                                   finite-differences-many, download; or `auto`, which takes download
                                   where simplepir's hint would be no smaller than the table (up to 16
                                   MiB) and simplepir otherwise. With --help it explains the options of
                                   that scheme; docs/schemes.md compares them [default: auto]
          --points <FILE>          For finite-differences and finite-differences-many: answer from the
                                   points that `privet setup points` computed from this one table, read
                                   into memory. The scheme and what was chosen for it are those of the
                                   file
          --mapped                 With --points: leave the points in the file, of which the system
                                   keeps in memory what there is room for. The file is still read once
                                   at the start, to check it
          --listen <ADDR>          Address to listen on [default: 127.0.0.1:7700]
          --metrics-listen <ADDR>  Second address, for /metrics (Prometheus) and /healthz
          --tls-cert <FILE>        Certificate chain in PEM; with --tls-key
          --tls-key <FILE>         Private key in PEM; with --tls-cert
          --insecure               Allow plaintext on an address that is not loopback
          --threads <THREADS>      Threads that share each pass over a table; default: all cores
          --batch-window <MS>      Collect concurrent queries for at most this long before a pass, in
                                   milliseconds; schemes where a pass saves nothing never wait [default:
                                   2]
          --max-batch <N>          Most queries answered in one pass [default: 16]
          --max-connections <N>    Most connections at once [default: 4096]
          --cache <DIR>            Where precomputed hints are kept between starts; default: the user's
                                   cache directory
          --no-cache               Keep precomputed hints in memory only
          --watch <SECONDS>        Look so often, in seconds, whether a table file or its update log has
                                   changed, and serve the table with the new updates; 0: only when told
                                   to by SIGHUP [default: 1]
          --grace <SECONDS>        After an update, go on serving the version before for so many seconds
                                   beside the new one, for clients that are in the middle of something.
                                   Each version takes memory of its own; at most 3 earlier ones are kept
                                   [default: 600]
          --scrub-rate <BYTES>     Read again so many bytes a second of what is answered from, to find
                                   damage to memory and files; a table in which some is found is not
                                   served any more. 0: read nothing again [default: 2^25]
          --skip-verification      Serve tables without a look at whether they are whole. A start is
                                   shorter by the time in which a table is read once, but hints are
                                   computed anew. From a damaged table clients then get wrong records,
                                   and nobody notices
          --publisher <HEX>        Who has to sign the updates of these tables, as `privet keygen`
                                   printed it: an update log of anybody else is refused. Without it, it
                                   is whoever a table's log names when it is opened first
          --log-json               Log as JSON lines
          --kernel <KERNEL>        Instruction set to compute with: portable, avx2 or avx512; default:
                                   the best there is
      -h, --help                   Print help
    "#);
}

#[test]
fn get_explains_itself() {
    assert_snapshot!(Place::new().run("get --help"), @r#"
    [exit 0]
    [stdout]
    Look records up without the server learning which

    Usage: privet get [OPTIONS] <--key <KEY>|--index <N>|--keys-from <FILE>> <URL>...

    Arguments:
      <URL>...  Address of the server, such as http://127.0.0.1:7700; for schemes that take several
                servers, those of all, in the same order every time: for those that keep hints
                (dummy-subsets-two, singlepass, tapir-mt, tapir-pp) it decides who learns what. The
                first server of dummy-subsets-two and singlepass computes the hints and learns their
                key, which the second must never learn. By tapir-mt, tapir-pp, apir-dpf and
                apir-matrix-mt answers are verified: a wrong one ends the command with exit code 4

    Options:
      -k, --key <KEY>             A key to look up; may be repeated
      -i, --index <N>             A record to look up by its number, from 0; may be repeated
          --keys-from <FILE>      Look up every line of this file; `-` for standard input
          --table <NAME>          The table to look in, if the server has several, or another than the
                                  one that was used there last
          --scheme <NAME>         Use only these schemes, the most wanted first: names with commas
                                  between, or the option repeated. Without it, what was used before with
                                  the table stays; otherwise those that verify answers come first, and
                                  no server's order of offers decides
          --verified              Use only schemes that verify answers: apir-dpf, apir-matrix-mt,
                                  tapir-mt, tapir-pp
          --state <DIR>           Where hints, tables and pins are kept between calls; default: the
                                  user's state directory
          --max-download <BYTES>  Refuse to receive more than this many bytes before the first lookup
                                  (record layout, hint, table or stream, updates), such as 100000000 or
                                  2^32, and to keep hints that take more [default: 2^32]
          --timeout <SECONDS>     End with exit code 3 once a server has left the command waiting for
                                  about so long: half of it for an answer, half of it in new attempts.
                                  Not for the whole command, which is --max-time [default: 120; 600
                                  while a server computes hints]
          --max-time <SECONDS>    End with exit code 3 when the whole command has taken so long,
                                  whatever it is doing. What was found by then is printed
          --min-rate <BYTES>      Give up a download that comes slower than this, on the whole, in bytes
                                  a second [default: 8192]
          --insecure              Allow plaintext to several servers that are not on this machine:
                                  whoever listens nearby then sees the queries to all of them, and can
                                  tell what is looked up
          --ca-file <FILE>        Certificates to trust for https besides the system's, in PEM
          --accept-new-table      Accept that the table at this address is another one than at first use
          --root <HEX>            The table's root, from whoever built it with --authenticate: any other
                                  table is refused before anything is asked, and any record that does
                                  not belong to it. Without --root, records of such a table are verified
                                  against the root that the server announced at first use, which is
                                  pinned with the table: that finds damage, not a server that lied from
                                  the beginning
          --publisher <HEX>       Who publishes the table, as `privet keygen` printed it: a table with
                                  updates by anybody else, or by nobody, is refused before anything is
                                  asked. Without --publisher, it is whoever the server named at first
                                  use
          --compare-streams       Have both servers stream the whole table and stop at the first byte in
                                  which they differ, for schemes of two servers that stream it; default:
                                  each streams a half, and the whole is checked at the end against the
                                  digest that both announced
          --json                  Print one JSON object for each lookup, on one line of printable
                                  characters, whatever the value holds
          --raw                   Write the bytes of values as they are, also to a terminal, where
                                  otherwise control characters are escaped
      -v, --verbose               Say on standard error what was sent and received, and how long it took
      -h, --help                  Print help
    "#);
}

#[test]
fn demo_explains_itself() {
    assert_snapshot!(Place::new().run("demo --help"), @r#"
    [exit 0]
    [stdout]
    Show the whole thing in one process: a table, lookups under each scheme, and what the server saw

    Usage: privet demo [OPTIONS]

    Options:
          --entries <ENTRIES>  Entries in the demonstration's table [default: 200000]
      -h, --help               Print help
    "#);
}

#[test]
fn bench_explains_itself() {
    assert_snapshot!(Place::new().run("bench --help"), @r#"
    [exit 0]
    [stdout]
    Measure a scheme on this machine; every record received is compared with the table

    Usage: privet bench [OPTIONS] --records <N> --record-len <B>

    Options:
          --scheme <SCHEME>  The scheme to measure: simplepir, doublepir, dpf, dummy-subsets,
                             dummy-subsets-two, piano, piano-all-parities, singlepass, tapir-mt,
                             tapir-pp, apir-dpf, apir-matrix-mt, finite-differences,
                             finite-differences-many, download; or `plain`, a lookup that is not
                             private, for comparison. With --help it explains the options of that scheme
                             [default: simplepir]
          --records <N>      Records in the table, such as 1000000 or 2^20
          --record-len <B>   Bytes in a record
          --queries <Q>      Queries to measure, rounded up to whole batches [default: 16]
          --batch <K>        Queries answered in one pass [default: 1]
          --edits <E>        Records to change afterwards, for schemes whose clients can follow: one by
                             one, or in one batch where servers follow as well [default: 16]
          --threads <T>      Threads of the server; default: all cores
          --seed <X>         Seed of the table's bytes and of the choice of records (never of secrets)
                             [default: 1]
          --json             Print one JSON object
          --kernel <KERNEL>  Instruction set to compute with: portable, avx2 or avx512; default: the
                             best there is
      -h, --help             Print help
    "#);
}

/// The options of a scheme come with the scheme, under a heading of their own.
#[test]
fn a_schemes_own_options_are_explained_with_the_scheme() {
    let place = Place::new();
    let lines = |arguments: &str| place.run(arguments).stdout().lines().count();
    assert!(lines("serve --help") <= 60 && lines("bench --help") <= 40);
    for scheme in SchemeId::ALL {
        let own: Vec<_> = scheme.about().options.iter().map(|option| option.name).collect();
        for arguments in ["serve --help --scheme", "bench --help --scheme"] {
            let help = place.run(&format!("{arguments} {scheme}"));
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words(help.stdout()).contains(&words(scheme.about().summary)), "{help}");
            let (_, explained) =
                help.stdout().split_once("Options of this scheme:").unwrap_or_default();
            let explained = explained.split_whitespace().filter_map(|word| word.strip_prefix("--"));
            let explained: Vec<&str> = explained.filter(|word| own.contains(word)).collect();
            assert!(own.iter().all(|option| explained.contains(option)), "{help}");
            assert_eq!(own.is_empty(), !help.stdout().contains("of this scheme:"), "{help}");
        }
    }
}

#[test]
fn tradeoff_explains_itself() {
    assert_snapshot!(Place::new().run("tradeoff --help"), @r#"
    [exit 0]
    [stdout]
    Compute what finite differences cost with more or less storage: a table, JSON, or a plot

    Usage: privet tradeoff [OPTIONS]

    Options:
          --records <N>                Show what there is to choose from for a table of so many records,
                                       such as 1000000 or 2^30. Without --records and --variables: the
                                       powers of the number of records that storage and reads tend to
          --record-len <B>             Bytes in a record [default: 1]
          --servers <S>                How many servers are asked [default: 2]
          --one-bit                    Records are bytes of value 0 or 1, and are stored as single bits:
                                       with two servers
          --storage-limit <BYTES>      Mark what `serve` takes if each server may store at most so many
                                       bytes, such as 2^30; default: 32 times the table
          --answer-limit <BYTES>       Mark what `serve` takes for answers of at most so many bytes
          --variables <M>              Show what a polynomial in so many variables costs, whether it can
                                       be served or not
          --degree <D>                 The degree of that polynomial
          --field <Q>                  Compute over the field of so many elements: 2, 3, 5, 7, 11 or 13;
                                       default: the smallest with one for each server
          --individual-degree <POWER>  The highest power of a single variable in the polynomial; what is
                                       served has 1 [default: 1]
          --json                       Print as JSON
          --svg <FILE>                 Write a plot of the curve to this file, which is replaced if it
                                       is there
      -h, --help                       Print help
    "#);
}

#[test]
fn doctor_explains_itself() {
    assert_snapshot!(Place::new().run("doctor --help"), @r#"
    [exit 0]
    [stdout]
    Say what this machine offers and what to do about what is missing

    Usage: privet doctor [OPTIONS]

    Options:
          --json  Print as JSON
      -h, --help  Print help
    "#);
}

#[test]
fn state_explains_itself() {
    let place = Place::new();
    assert_snapshot!(place.run("state --help"), @r#"
    [exit 0]
    [stdout]
    Show, check or erase what is kept between lookups

    Usage: privet state <COMMAND>

    Commands:
      show    Say what is kept, in counts and sizes
      verify  Read everything that is kept and check that it is whole; exit code 4 if it is not
      reset   Erase private hints with zeros, and remove downloads and pins
      help    Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    "#);
    assert_snapshot!(place.run("state reset --help"), @r#"
    [exit 0]
    [stdout]
    Erase private hints with zeros, and remove downloads and pins

    Usage: privet state reset [OPTIONS] [DIR]

    Arguments:
      [DIR]  The state directory; default: the user's

    Options:
          --table <ID>    Erase only what is kept for this table
          --server <URL>  Forget only what was seen at this server: its pins
          --yes           Really do it
      -h, --help          Print help
    "#);
}
