//! Help and version.

use crate::place::Place;
use insta::assert_snapshot;

#[test]
fn the_command_explains_itself() {
    let place = Place::new();
    assert_snapshot!(place.run("--help"), @r"
    [exit 0]
    [stdout]
    Privet: look records up in somebody else's table without the server learning which

    Usage: privet <COMMAND>

    Commands:
      demo         Show the whole thing in one process
      build        Turn a CSV, JSON Lines or Parquet file into a table that can be served
      inspect      Show what a table file holds, and check that it is whole
      serve        Serve tables over the network
      get          Look records up without the server learning which
      state        Show, check or erase what is kept between lookups
      keygen       Make the key with which a table's owner signs its updates
      update       Set and delete keys of a table: the next of its signed updates
      doctor       Say what this machine offers and what to do about what is missing
      setup        Make what some schemes need beside a table
      plan         Say which scheme suits a table, and what each would cost
      bench        Measure a scheme on this machine; every record received is compared with the table
      load         Measure how a running server answers at a rate of lookups
      papers       Measure what the papers measured, and put both on one page
      tradeoff     Compute what finite differences cost with more or less storage
      completions  Print what makes a shell complete this command
      man          Print the manual, or write it to a directory, a page for each command
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Examples:
      See it work:
        privet demo

      Make a table, and serve it:
        privet build capitals.csv --key country -o capitals.privet
        privet serve capitals.privet

      Look something up, from another terminal:
        privet get http://127.0.0.1:7700 --key Kenya

      More about a command:
        privet get --help

    Exit codes: 0 found or done, 1 not found (of `load`: too slow), 2 usage or bad input, 3 server or
    network, 4 do not try again: a lie, damage, or a failure that may depend on what was asked for.
    ");
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
              The files to read, one after the other; `-` for standard input (needs --format).

              All have to be of one format and to have the same columns, in any order.

    Options:
          --key <COLUMN>
              Column that holds the key; without it, records are numbered by row from 0

          --range-from <COLUMN>
              Column of the first key of a range: a row answers for all keys of its range.

              Keys are whole numbers, or IPv4 and IPv6 addresses. A cell may hold a whole range, as a
              network (`1.2.3.0/24`) or as `1.2.3.0-1.2.3.255`. Ranges may not overlap. A client
              downloads the bounds of all ranges, one to three bytes for most networks.

          --range-to <COLUMN>
              Column of the last key of a range; default: a range ends where the next one begins

          --nested
              Ranges may lie in one another: of those that hold a key, the narrowest answers.

              The others are cut, so the table has more records than rows. Clients still make one
              lookup. A range may not lie partly in another, and no two may be the same. Such a table is
              changed as a whole, with `privet update --replace-with`.

          --normalize <NAME,…>
              Differences between keys that do not count: trim, trim-invisible, nfc, lower, upper, fold,
              alphanumeric, number.

              Clients treat their keys in the same way. trim: white space at both ends. trim-invisible:
              also what has no width there. nfc: whether an accent is a part of its letter, as Windows
              writes it, or stands behind it, as macOS does. lower, upper: upper and lower case, letter
              by letter. fold: case as Unicode compares it, for which `Straße` is `STRASSE`, and a sigma
              at the end of a word is a sigma. alphanumeric: all but letters and digits, so that
              `08-00-30` and `08:00:30` are one key. number: how a decimal number is written, so that
              `1.50` and `01.5` are one key. For words: `trim-invisible,nfc,fold`.

          --key-format <FORMAT>
              How keys are written; default: text, and hex where a column of Parquet holds bytes.

              With hex and base64, the keys of the table are bytes. Clients give and see them in that
              form.

              Possible values:
              - text:   As they are
              - hex:    Two digits for each byte, in upper or lower case, with or without 0x
              - base64: Also as it stands in URLs, with or without padding

          --on-duplicate <WHAT>
              What to do when a key appears twice

              Possible values:
              - error: Stop and name the key and its lines
              - first: Keep the first row
              - last:  Keep the last row

              [default: error]

          --multi
              Keep all rows with the same key.

              It then has several values, and `get` prints them all, in the order of the rows.

      -o, --output <FILE>
              The table file to write.

              A table that is there already is replaced, unless it has updates; a file that is read
              never is.

          --force
              Replace the output also if it is a file that `privet build` has not written

          --json
              Print the report as JSON

      -q, --quiet
              No report and no progress; errors are said all the same

      -h, --help
              Print help (see a summary with '-h')

    How values are stored:
          --value <COLUMN,…>
              Columns that make up the value, as compact JSON; default: all but the key

          --raw-value <COLUMN>
              Store the bytes of this one column as the value, instead of JSON

          --max-value <BYTES>
              Refuse values longer than this many bytes

          --key-map <KIND>
              How keys get to records.

              With buckets every lookup takes one query; with cuckoo it takes two, and tables can change
              without clients having to learn where keys went.

              Possible values:
              - buckets: One candidate record for each key
              - cuckoo:  Two candidate records for each key

              [default: buckets]

          --parts <N>
              How many records the value of a key may lie in, 1 to 16.

              Every lookup fetches as many, however long the value is, and twice as many with cuckoo.
              Long values then need no wide records. Default: 1, or more where values of many kilobytes
              make that cheaper for clients.

          --room <N>
              Leave room for N keys that updates may add, with --key-map cuckoo

    Changes and forgery:
          --authenticate
              Store with each record the proof that it belongs to the table.

              It takes 32 bytes for each doubling of the number of records. The root that clients verify
              against (`get --root`) is printed.

          --publisher-key <FILE>
              Say from the beginning who will sign the table's updates.

              The file is the key of whoever will, made by `privet keygen`. Clients that have used the
              table before its first update then follow it.

          --next-key <DIGEST>
              The digest of the publisher's next key (`privet keygen --next`).

              Clients pin it. Whoever steals the publisher's key can then sign updates, and lead no
              client to another table or to other keys.

          --succeeds <TABLE>
              The table that ends for this one, as its publisher signs.

              Clients that know that table follow to this one without a question, and prepare new hints.
              --publisher-key is the key of that table's publisher.

          --hand-over-to <FILE>
              The key of who publishes from now on, if that changes.

              If the table that ends names a next key, it has to be that one, and signs too. Without
              --publisher-key, because that was stolen, it signs alone: updates that are not in the log
              of the table that ends are void then, and clients that have followed them leave them.

    How files of rows are read:
          --format <FORMAT>
              Format of the files; default: by their names.

              Input that gzip or zstd has compressed is recognised by its content: big.csv.gz is CSV. So
              is UTF-16. What another program unpacks comes through standard input: `xz -dc big.csv.xz |
              privet build - --format csv -o big.privet`.

              Possible values:
              - csv:     Comma-separated values, the first line with the names of the columns
              - tsv:     The same with tabs
              - jsonl:   JSON Lines: one object on each line; or one JSON array of objects
              - parquet: Apache Parquet

          --delimiter <CHARACTER>
              What separates the cells of a row in CSV; default: a comma, in TSV a tab.

              A single character, such as `;` or `|` (in quotes, for the shell), or `tab`, or
              `whitespace`: any number of spaces and tabs. A first line `sep=;`, as spreadsheets write
              it, says it too.

          --no-quotes
              Quotation marks in CSV are characters like any other.

              As in most dumps of databases with tabs. Without it, a cell that begins with one ends with
              one.

          --no-header
              The first line of CSV is a row, and not the names of the columns.

              Columns then are called by their numbers, from 1, or as --columns says.

          --columns <NAME,…>
              Names of the columns, where there is no header

          --spread
              A row of CSV with more cells than columns is several rows.

              They differ in their last column, which has one of the further cells in each: a line of a
              hosts file is a row for each of its names.

          --comment <PREFIX>
              Leave out lines that begin with this, such as `#` or `//`.

              With `--delimiter whitespace` also the rest of a line.

          --skip-lines <N>
              Skip the first N lines, before the header

          --types <TYPES>
              What columns of CSV are in JSON: `auto`, or COLUMN=number|boolean|text,…; default: text.

              A number is kept as it is written, and an empty cell becomes null. With `auto` the inputs
              are read twice, and a column is a column of numbers if no program writes or reads any of
              them otherwise (so 007, 1.50 and long numbers stay text), or of booleans if it has true
              and false alone. Both together: `auto,zip=text`. An update knows the types of the table.

          --on-empty-key <WHAT>
              What to do with a row that has no key.

              It has none where the cell is empty or null.

              Possible values:
              - error: Stop and name the line
              - skip:  Leave the row out; the report says how many there were

              [default: error]

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
        privet build new.csv --key country --succeeds old.privet --publisher-key p.key -o new.privet
    ");
}

#[test]
fn inspect_explains_itself() {
    assert_snapshot!(Place::new().run("inspect --help"), @r"
    [exit 0]
    [stdout]
    Show what a table file holds, and check that it is whole.

    Also a file of a table's points, as `privet setup points` makes it.

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

    Examples:
      What a table holds:
        privet inspect capitals.privet

      Read every byte and compare it with the digest, for a script:
        privet inspect capitals.privet --verify --json
    ");
}

#[test]
fn setup_explains_itself() {
    assert_snapshot!(Place::new().run("setup pointproofs --help"), @r#"
    [exit 0]
    [stdout]
    Make a reference string for tapir-pp.

    Whoever makes it must be trusted by all clients: who knows the secret number it is made from can
    prove any record. The number is erased when the command ends.

    Usage: privet setup pointproofs [OPTIONS] --size <M> --output <FILE>

    Options:
          --size <M>
              Records in a partition of the table, at most 65536.

              About twice the square root of the number of records is a good choice. Tables of any size
              can be served with it, in partitions of up to so many records.

      -o, --output <FILE>
              The file to write

          --force
              Replace the file if there is one.

              Servers and clients that use it cannot go on without it.

          --json
              Print the report as JSON

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      For tables of some four million records:
        privet setup pointproofs --size 4096 -o string.pps

      Serve with it:
        privet serve t.privet --scheme tapir-pp --reference-string string.pps
    "#);
    assert_snapshot!(Place::new().run("setup points --help"), @r"
    [exit 0]
    [stdout]
    Compute what servers of finite differences answer from, into a file.

    For finite-differences and finite-differences-many: `serve --points` takes the file. It belongs to
    this one version of the table, and may be larger than the memory.

    Usage: privet setup points [OPTIONS] --scheme <SCHEME> --output <FILE> <TABLE>

    Arguments:
      <TABLE>
              The table file

    Options:
          --scheme <SCHEME>
              The scheme that will answer: finite-differences or finite-differences-many

      -o, --output <FILE>
              The file to write, on a disk with room for all points

          --memory <BYTES>
              Memory to compute with, beside the table.

              Default: half of what is available. With less than the points take, they are read from the
              disk and written again.

          --threads <THREADS>
              Threads to compute with; default: all cores

          --kernel <KERNEL>
              Instruction set to compute with: portable, avx2 or avx512; default: the best there is

          --force
              Replace the file if there is one

          --json
              Print the report as JSON

      -h, --help
              Print help (see a summary with '-h')

    Scheme options:
          --storage-limit <BYTES>
              The most bytes that each server may make of the table, such as 2^30; default: 32 times the
              table. More storage means fewer reads and shorter answers

          --answer-limit <BYTES>
              The most bytes of an answer. Servers take the least storage that allows it

          --variables <M>
              Exactly this number of variables, with the degree at which servers read the least

          --degree <D>
              Exactly this degree; with two servers, an odd number of at most half the variables

          --one-bit
              For finite-differences. Records are bytes of value 0 or 1, and are stored as single bits

          --digits
              For finite-differences. With records of single bits: these are the characters 0 and 1

          --servers <S>
              For finite-differences-many. How many servers a client asks; default: 3. The more servers,
              the fewer points each reads, and the more storage each needs

    Examples:
      With at most 2^30 bytes of points:
        privet setup points t.privet --scheme finite-differences --storage-limit 2^30 -o t.points

      For three servers:
        privet setup points t.privet --scheme finite-differences-many --servers 3 -o t.points

      Serve from the file:
        privet serve t.privet --points t.points --mapped
    ");
}

#[test]
fn serve_explains_itself() {
    assert_snapshot!(Place::new().run("serve --help"), @r#"
    [exit 0]
    [stdout]
    Serve tables over the network

    Usage: privet serve [OPTIONS] <[NAME=]FILE>...

    Arguments:
      <[NAME=]FILE>...
              Table files, each as FILE or NAME=FILE.

              A table is named after its file, without the extension; NAME=FILE chooses another name.

    Options:
          --log-json
              Log as JSON lines

      -q, --quiet
              Say nothing but warnings and errors

      -h, --help
              Print help (see a summary with '-h')

    Table and scheme:
          --scheme <SCHEME>
              Scheme to answer with: simplepir, simplepir-packed, doublepir, dpf, dummy-subsets,
              dummy-subsets-two, harmony, piano, piano-all-parities, singlepass, tapir-mt, apir-dpf,
              apir-matrix-mt, download, tapir-pp, finite-differences, finite-differences-many; or
              `auto`, by the rule of `privet plan`, for one operator, clients that keep no secrets, and
              ten lookups of each in a day: download for tables of a few MiB, simplepir-packed for
              larger ones, and simplepir where simplepir-packed refuses the table.

              With --help it explains the options of that scheme. docs/schemes.md compares the schemes.

              [default: auto]

          --points <FILE>
              Answer from points that `privet setup points` computed.

              For finite-differences and finite-differences-many, and for one table, from which the
              points were computed. They are read into memory. The scheme and what was chosen for it are
              those of the file.

          --mapped
              With --points: leave the points in the file.

              The system keeps in memory what there is room for. The file is still read once at the
              start, to check it.

          --skip-verification
              Serve tables without verifying their records.

              A start is shorter by the time in which a table is read once, but hints are computed anew.
              From a damaged table clients then get wrong records, and nobody notices.

    Network:
          --listen <ADDR>
              Address to listen on; a port alone is of this machine

              [default: 127.0.0.1:7700]

          --tls-cert <FILE>
              Certificate chain in PEM; with --tls-key

          --tls-key <FILE>
              Private key in PEM; with --tls-cert.

              Without a passphrase. A key that anybody on this machine can read is refused.

          --insecure
              Allow plaintext on an address that is not loopback

          --metrics-listen <ADDR>
              Second address, for /metrics (Prometheus) and /healthz.

              Without TLS, and for anybody who reaches it: it shows the names of the tables, and when
              and how much is looked up.

          --limit <NAME=VALUE>
              Another limit on what clients may hold. May be repeated.

              One address may hold a quarter of each unless NAME-per-peer says otherwise; an IPv6
              address counts with all that begin with the same 64 bits. docs/operating.md says what to
              set behind a proxy.

              connections=4096: open connections
              connections-per-peer=1024: of one address
              streams-per-connection=64: requests of one connection at once; more wait in the client
              bodies=2048: requests whose bodies are being read
              bodies-per-peer=512: of one address
              body-bytes=67108864: bytes of bodies that are being read
              describes=64: requests for the server's description
              describes-per-peer=16: of one address
              answers=2048: requests with queries under way
              answers-per-peer=512: of one address
              answer-bytes=268435456: bytes of these queries and their answers
              answer-bytes-per-peer=67108864: of one address
              queries=1024: queries that wait for a pass
              queries-per-peer=256: of one address
              fetches=64: downloads under way
              fetches-per-peer=16: of one address
              fetches-per-connection=8: of one connection
              preparations=16: requests for hints under way
              preparations-per-peer=4: of one address
              preparations-per-connection=2: of one connection
              body-deadline=5: seconds for a request's body to arrive
              request-deadline=30: seconds until a response begins
              preparation-deadline=600: seconds until a reply with hints begins
              stall-limit=60: seconds for which a response may be slower than least-rate
              least-rate=1024: bytes a second of a response that a client has to take
              handshake-limit=10: seconds for a TLS handshake, and to a connection's first request
              keepalive=20: seconds between pings to a quiet connection

    Tables that change:
          --watch <SECONDS>
              Seconds between two looks for new updates.

              If a table file or its update log has changed, the table is served with the new updates.
              0: only when told to by SIGHUP.

              [default: 1]

          --grace <SECONDS>
              Seconds for which the previous version is served after an update.

              It stands beside the new one, for clients that are in the middle of something. Each
              version takes memory of its own; at most 3 earlier ones are kept.

              [default: 600]

          --max-version-memory <BYTES>
              Memory that versions beside the newest may hold; default: as much as that.

              In bytes, of all tables together. The version that is being made counts as well, and can
              always be made. Earlier versions that find no room give way before --grace ends, the
              earliest of the table first, and their clients move on at once. Versions of other tables
              do not give way to it: allow for one version of the largest table besides. 0: keep none.
              By default, a table's other versions hold at most a tenth more than its newest one, so two
              of them are in memory at most; versions of small tables may hold 16 MiB.

          --publisher <HEX>
              Who has to sign the updates of these tables, as `privet keygen` printed it.

              An update log of anybody else is refused. Without it, it is whoever a table's log names
              when it is opened first.

    Speed and memory:
          --cache <DIR>
              Where precomputed hints are kept between starts.

              Default: the user's cache directory.

              [env: PRIVET_CACHE]

          --no-cache
              Keep precomputed hints in memory only, whatever --cache says

          --threads <N>
              Threads that compute answers; default: all cores.

              They share each pass over a table. Answers that read only a part of it are computed side
              by side.

          --batch-window <MS>
              Collect queries for at most this long before a pass.

              In milliseconds. Queries that come while a pass runs are answered together by the next one
              in any case. A window makes batches larger where many clients ask, and every lookup
              slower.

              [default: 0]

          --max-batch <N>
              Most queries answered in one pass

              [default: 16]

          --scrub-rate <BYTES>
              Bytes to read again each second, to find damage.

              What is answered from is read, in memory and in files. A table in which damage is found is
              not served any more. 0: read nothing again.

              [default: 32MiB]

          --kernel <KERNEL>
              Instruction set to compute with: portable, avx2 or avx512; default: the best there is

    Examples:
      On this machine, by the scheme that suits the table:
        privet serve capitals.privet --listen 127.0.0.1:7700

      One of two servers that do not collude, over TLS:
        privet serve capitals.privet --scheme dpf --listen 0.0.0.0:443 --tls-cert c.pem --tls-key k.pem

      Several tables, the second under another name, and metrics for Prometheus:
        privet serve capitals.privet old=capitals-2024.privet --metrics-listen 127.0.0.1:7790

      What else one scheme can be told:
        privet serve --scheme finite-differences --help
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
      <URL>...
              Address of the server, such as http://127.0.0.1:7700; or of all servers.

              A path may follow, as in https://example.org/privet, if the server lies behind one. For
              schemes that take several servers, name all, in the same order every time: for those that
              keep hints (dummy-subsets-two, singlepass, tapir-mt, tapir-pp) it decides who learns what.
              The first server of dummy-subsets-two and singlepass computes the hints and learns their
              key, which the second must never learn. By tapir-mt, tapir-pp, apir-dpf and apir-matrix-mt
              answers are verified: a wrong one ends the command with exit code 4. In PRIVET_URL,
              addresses have spaces or commas between.

              [env: PRIVET_URL]

    Options:
      -k, --key <KEY>
              A key to look up; may be repeated.

              Written as the table's keys are, in hexadecimal or base64 perhaps (`build --key-format`).
              What the table can never have, such as `abc` in a table of addresses, is looked up like
              any other key, so that nobody who listens learns of it; then it is told, and the exit code
              is 2.

              What is typed here, other users of this machine can read in the list of processes, and it
              stays in the shell's history. Hand a key that is a secret in through `--keys-from -`.

      -i, --index <N>
              A record to look up by its number, from 0; may be repeated

          --keys-from <FILE>
              Look up every line of this file; `-` for standard input.

              In UTF-8 or UTF-16, also compressed with gzip or zstd. Blank lines are skipped. A file is
              checked before anything is asked; from a pipe, lookups begin while lines still come. How
              many are sent, and when, follows from the list and from when its lines come. It never
              follows from what they say, from what is found, or from who reads the output and how fast:
              a reader who goes away (`| head`) ends no lookup.

          --table <NAME>
              The table to look in, if the server has several.

              Or another than the one that was used there last.

      -h, --help
              Print help (see a summary with '-h')

    Output:
          --json
              Print one JSON object for each lookup.

              On one line of printable characters, whatever the value holds: JSON under "value", text
              under "text", other bytes under "hex". If the table can have no such key, "error" says
              why.

          --format <FORMAT>
              How to print what is found

              Possible values:
              - lines: The value; of several lookups, key, tab and value on each line: JSON as it is, in
                other text \\ for a backslash, \t, \n, \r, \u{1b} and \xff for what is no text (default)
              - csv:   Comma-separated, with a header: the key, and a cell for each column of the table.
                Have spreadsheets import cells as text: they take what begins with =, +, - or @ for a
                formula
              - jsonl: As --json

          --raw
              Write the bytes of values as they are, also to a terminal.

              Without keys, each with the end of a line. Otherwise control characters are escaped on a
              terminal, and behind keys.

      -o, --output <FILE>
              The file to write to, instead of standard output.

              A new file is for its owner alone (mode 0600). One that is there is replaced, and stays
              open to whom it was open. What is not found is said on standard error all the same.

      -v, --verbose
              Say on standard error what was sent and received, and how long it took

      -q, --quiet
              No notices and no progress.

              What was not found, and errors, are said all the same: a typed key by its name, one of a
              list by its line, unless standard error is a terminal.

    Whom and what to trust:
          --scheme <NAME>
              Use only these schemes, the most wanted first.

              Names with commas between, or the option repeated. Without it, what was used before with
              the table stays; otherwise those that verify answers come first, and no server's order of
              offers decides.

          --verified
              Use only schemes that verify answers: apir-dpf, apir-matrix-mt, tapir-mt, tapir-pp

          --ca-file <FILE>
              Certificates to trust for https instead of the system's, in PEM.

              Those of authorities, or a server's own. Nobody else is trusted then. A file may have
              several; one that has the system's as well trusts both.

          --proxy <URL>
              Reach the servers through this proxy; `none`: through no proxy.

              http://HOST:PORT or socks5h://HOST:PORT, with NAME:PASSWORD@ before the host if it wants
              that. Once for all servers, or once for each in their order. Without it, HTTPS_PROXY,
              HTTP_PROXY, ALL_PROXY and NO_PROXY say which. A proxy that cannot be used is an error:
              nothing goes around it. By Tor (socks5h://127.0.0.1:9050), each server is asked on a
              circuit of its own. What is typed here, other users of this machine can read; a password
              is better set in the environment.

          --insecure
              Allow plaintext to several servers that are not on this machine.

              Whoever listens nearby then sees the queries to all of them, and can tell what is looked
              up.

          --root <HEX>
              The table's root, from whoever built it with --authenticate.

              Any other table is refused before anything is asked, and any record that does not belong
              to it. Without --root, records of such a table are verified against the root that the
              server announced at first use, which is pinned with the table: that finds damage, not a
              server that lied from the beginning.

          --publisher <HEX>
              Who publishes the table, as `privet keygen` printed it.

              A table with updates by anybody else, or by nobody, is refused before anything is asked.
              Without --publisher, it is whoever the server named at first use.

          --digest <HEX>
              The digest of the version to use, as `privet inspect` prints it.

              Nothing is asked of servers that say that they serve another version, and nothing more
              once they stop serving this one. By most schemes, a server that lies about its digest is
              not found out by this: name the publisher or the root as well.

          --at-least-epoch <N>
              The earliest version to use: its epoch.

              Nothing is asked of servers that are behind. The command ends with exit code 3 then,
              because they may catch up.

          --accept-new-table
              Accept that the table at this address is another one than at first use

          --compare-streams
              Have both servers stream the whole table, and compare every byte.

              For schemes of two servers that stream it. It stops at the first byte in which they
              differ. Default: each streams a half, and the whole is checked at the end against the
              digest that both announced.

    Limits:
          --max-download <BYTES>
              Refuse to receive more than this before the first lookup.

              In bytes, such as 100MB or 4GiB. It counts the record layout, the hint, the table or
              stream, and updates; hints that take more are not kept either.

              [default: 4GiB]

          --timeout <SECONDS>
              Wait so long for a server that does not answer [default: 120].

              A lookup fails, with exit code 3, once a server has left it waiting for about so long:
              half of it for an answer, half of it in new attempts. While a server computes hints, the
              default is 600.

          --min-rate <BYTES>
              Give up a download slower than this, in bytes a second [default: 8192]

          --max-time <SECONDS>
              End with exit code 3 when the whole command has taken so long.

              Whatever it is doing, and however short each wait of --timeout was. What was found by then
              is printed.

    What is kept:
          --state <DIR>
              Directory for hints, tables and pins between calls.

              Default: the user's state directory. `privet state` shows what is in it.

              [env: PRIVET_STATE]

    Examples:
      One key:
        privet get http://127.0.0.1:7700 --key Kenya

      A key that is a secret, which no list of processes may show:
        printf '%s\n' "$KEY" | privet get http://127.0.0.1:7700 --keys-from -

      A key of bytes, from a table whose keys are written in hexadecimal:
        privet get http://127.0.0.1:7700 --key 0x[ID]7179ffbf

      Every line of a file, for a script; exit code 1 if one was not found:
        privet get http://127.0.0.1:7700 --keys-from countries.txt --json

      From two servers that do not collude, with answers that are verified:
        privet get https://one.example.org https://two.example.com --verified --key Kenya

      A server with a certificate of its own:
        privet get https://one.example.org:7700 --ca-file cert.pem --key Kenya
    "#);
}

#[test]
fn demo_explains_itself() {
    assert_snapshot!(Place::new().run("demo --help"), @r"
    [exit 0]
    [stdout]
    Show the whole thing in one process.

    A table, lookups under each scheme, and what the server saw.

    Usage: privet demo [OPTIONS]

    Options:
          --all
              Show every scheme, not only three

          --entries <ENTRIES>
              Entries in the demonstration's table

              [default: 200000]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      Show everything:
        privet demo

      With a larger table:
        privet demo --entries 2^20
    ");
}

#[test]
fn bench_explains_itself() {
    assert_snapshot!(Place::new().run("bench --help"), @r#"
    [exit 0]
    [stdout]
    Measure a scheme on this machine; every record received is compared with the table

    Usage: privet bench [OPTIONS] --records <N> --record-len <B>

    Options:
          --scheme <SCHEME>
              Scheme to measure: simplepir, simplepir-packed, doublepir, dpf, dummy-subsets,
              dummy-subsets-two, harmony, piano, piano-all-parities, singlepass, tapir-mt, apir-dpf,
              apir-matrix-mt, download, tapir-pp, finite-differences, finite-differences-many; or
              `plain`, a lookup that is not private, for comparison.

              With --help it explains the options of that scheme.

              [default: simplepir]

          --records <N>
              Records in the table, such as 1000000 or 2^20

          --record-len <B>
              Bytes in a record

          --queries <Q>
              Queries to measure, rounded up to whole batches

              [default: 16]

          --batch <K>
              Queries answered in one pass

              [default: 1]

          --edits <E>
              Records to change afterwards.

              For schemes whose clients can follow: one by one, or in one batch where servers follow as
              well.

              [default: 16]

          --threads <T>
              Threads of the server; default: all cores

          --seed <X>
              Seed of the table's bytes and of the choice of records (never of secrets)

              [default: 1]

          --json
              Print one JSON object

          --kernel <KERNEL>
              Instruction set to compute with: portable, avx2 or avx512; default: the best there is

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      SimplePIR on a table of 1 GiB:
        privet bench --records 2^20 --record-len 1024

      Another scheme, on one core, for a script:
        privet bench --scheme dpf --records 2^20 --record-len 32 --threads 1 --json

      What else one scheme can be told:
        privet bench --scheme tapir-pp --help
    "#);
}

/// A scheme's options have a heading of their own in the help.
#[test]
fn a_schemes_own_options_are_explained_with_the_scheme() {
    let place = Place::new();
    let lines = |arguments: &str| place.run(arguments).stdout().lines().count();
    assert!(lines("serve -h") <= 45 && lines("bench -h") <= 40);
    for scheme in privet_laboratory::all() {
        let own: Vec<_> = scheme.about().options.iter().map(|option| option.name).collect();
        for arguments in ["serve --help --scheme", "bench --help --scheme"] {
            let help = place.run(&format!("{arguments} {scheme}"));
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words(help.stdout()).contains(&words(scheme.about().summary)), "{help}");
            let (_, explained) = help.stdout().split_once("Scheme options:").unwrap_or_default();
            let explained = explained.split_whitespace().filter_map(|word| word.strip_prefix("--"));
            let explained: Vec<&str> = explained.filter(|word| own.contains(word)).collect();
            assert!(own.iter().all(|option| explained.contains(option)), "{help}");
            assert_eq!(own.is_empty(), !help.stdout().contains("Scheme options:"), "{help}");
        }
    }
}

#[test]
fn masks_on_demand_are_explained_with_their_scheme() {
    let help = Place::new().run("serve --scheme simplepir-packed --help");
    let (_, after) = help.stdout().split_once("Scheme options:\n").unwrap();
    let own = after.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
    assert_snapshot!(own.collect::<Vec<_>>().join("\n"), @r"
          --masks-on-demand
              Send the mask of its record with each answer, instead of all masks to each client beside
              its first lookup: for clients that keep nothing. A first lookup then moves fewer bytes on
              tables of 64 MiB and more (167 KiB instead of 232 for 1 GiB), and every lookup is more
              work (a seventh for 1 GiB, a third for 128 MiB)
    ");
}

#[test]
fn tradeoff_explains_itself() {
    assert_snapshot!(Place::new().run("tradeoff --help"), @r#"
    [exit 0]
    [stdout]
    Compute what finite differences cost with more or less storage.

    A table, JSON, or a plot.

    Usage: privet tradeoff [OPTIONS] --records <N>

    Options:
          --records <N>
              How many records the table has, such as 1000000 or 2^30

          --record-len <B>
              Bytes in a record

              [default: 1]

          --servers <S>
              How many servers are asked

              [default: 2]

          --one-bit
              Records are bytes of value 0 or 1, and are stored as single bits: with two servers

          --storage-limit <BYTES>
              Mark what `serve` takes if each server may store at most so many bytes.

              Such as 2^30. Default: 32 times the table.

          --answer-limit <BYTES>
              Mark what `serve` takes for answers of at most so many bytes

          --json
              Print as JSON

          --svg <FILE>
              Write a plot of the curve to this file, which is replaced if it is there

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      What two servers of a table of 2^20 records can choose from:
        privet tradeoff --records 2^20 --record-len 32

      The same for three servers, with a plot:
        privet tradeoff --records 2^20 --record-len 32 --servers 3 --svg curve.svg
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
          --json
              Print as JSON

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      Look at this machine:
        privet doctor

      The same for a script:
        privet doctor --json
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
      -h, --help
              Print help (see a summary with '-h')

    Examples:
      What is kept:
        privet state show

      Whether it is whole:
        privet state verify

      Erase all of it:
        privet state reset --yes
    "#);
    assert_snapshot!(place.run("state reset --help"), @r#"
    [exit 0]
    [stdout]
    Erase private hints with zeros, and remove downloads and pins

    Usage: privet state reset [OPTIONS] [DIR]

    Arguments:
      [DIR]
              The state directory; default: the user's

              [env: PRIVET_STATE]

    Options:
          --table <ID>
              Erase only what is kept for this table

          --server <URL>
              Forget only what was seen at this server: its pins

          --yes
              Really do it

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      Say what would be erased, and erase nothing:
        privet state reset

      Erase what is kept for one table; `privet state show` says its id:
        privet state reset --table [ID] --yes

      Forget what was seen at one server:
        privet state reset --server http://127.0.0.1:7700 --yes
    "#);
}

#[test]
fn load_explains_itself() {
    assert_snapshot!(Place::new().run("load --help"), @r"
    [exit 0]
    [stdout]
    Measure how a running server answers at a rate of lookups

    Usage: privet load [OPTIONS] <URL>...

    Arguments:
      <URL>...
              Address of the server, such as http://127.0.0.1:7700; or of all servers.

              A path may follow, as in https://example.org/privet, if the server lies behind one. For
              schemes that take several servers, name all, in the same order every time: for those that
              keep hints (dummy-subsets-two, singlepass, tapir-mt, tapir-pp) it decides who learns what.
              The first server of dummy-subsets-two and singlepass computes the hints and learns their
              key, which the second must never learn. By tapir-mt, tapir-pp, apir-dpf and apir-matrix-mt
              answers are verified: a wrong one ends the command with exit code 4. In PRIVET_URL,
              addresses have spaces or commas between.

              [env: PRIVET_URL]

    Options:
          --rate <N>
              How many lookups begin each second; default: find how many the server stands.

              Such as 100 or 0.5. Lookups come at random moments (a Poisson process), as from many users
              who do not know of each other. All are drawn before the first is sent. Without --rate, the
              rate is raised until the server does not achieve --slo (or p99 is ten times what it is
              under a light load) or does not keep up, and then narrowed down to 5 %. This loads the
              server: use it on one of your own.

          --for <TIME>
              For how long at each rate: 500ms, 10s, 2m

              [default: 10s]

          --clients <N>
              How many clients look up, in turn.

              Each has its own connections. Together they receive and keep public hints once; secret
              hints are each client's own. What they keep lies in a temporary directory (below TMPDIR).

              [default: 8]

          --slo <pN=TIME>
              What the server must achieve, such as p99=250ms; otherwise the exit code is 1.

              The share of lookups, in percent, and the time within which they must be answered. May be
              repeated, or have commas between. Without --rate, the exit code is 1 if the server
              achieves it at no rate.

          --metrics <URL>
              Where the server publishes its metrics, such as http://127.0.0.1:7790/metrics.

              The report then says what share of the time the server's passes took, and how many queries
              each answered. Of several servers, name each once. They are asked directly, whatever proxy
              is set.

          --plot <FILE>
              Write a plot of rates and latencies to this file, as SVG; it is replaced if it is there

          --table <NAME>
              The table, if the server has several

          --json
              Print one JSON object

      -q, --quiet
              No notices, only the report

      -h, --help
              Print help (see a summary with '-h')

    Whom and what to trust:
          --scheme <NAME>
              Use only these schemes, the most wanted first.

              Names with commas between, or the option repeated. Without it, what was used before with
              the table stays; otherwise those that verify answers come first, and no server's order of
              offers decides.

          --verified
              Use only schemes that verify answers: apir-dpf, apir-matrix-mt, tapir-mt, tapir-pp

          --ca-file <FILE>
              Certificates to trust for https instead of the system's, in PEM.

              Those of authorities, or a server's own. Nobody else is trusted then. A file may have
              several; one that has the system's as well trusts both.

          --proxy <URL>
              Reach the servers through this proxy; `none`: through no proxy.

              http://HOST:PORT or socks5h://HOST:PORT, with NAME:PASSWORD@ before the host if it wants
              that. Once for all servers, or once for each in their order. Without it, HTTPS_PROXY,
              HTTP_PROXY, ALL_PROXY and NO_PROXY say which. A proxy that cannot be used is an error:
              nothing goes around it. By Tor (socks5h://127.0.0.1:9050), each server is asked on a
              circuit of its own. What is typed here, other users of this machine can read; a password
              is better set in the environment.

          --insecure
              Allow plaintext to several servers that are not on this machine.

              Whoever listens nearby then sees the queries to all of them, and can tell what is looked
              up.

          --root <HEX>
              The table's root, from whoever built it with --authenticate.

              Any other table is refused before anything is asked, and any record that does not belong
              to it. Without --root, records of such a table are verified against the root that the
              server announced at first use, which is pinned with the table: that finds damage, not a
              server that lied from the beginning.

          --publisher <HEX>
              Who publishes the table, as `privet keygen` printed it.

              A table with updates by anybody else, or by nobody, is refused before anything is asked.
              Without --publisher, it is whoever the server named at first use.

          --digest <HEX>
              The digest of the version to use, as `privet inspect` prints it.

              Nothing is asked of servers that say that they serve another version, and nothing more
              once they stop serving this one. By most schemes, a server that lies about its digest is
              not found out by this: name the publisher or the root as well.

          --at-least-epoch <N>
              The earliest version to use: its epoch.

              Nothing is asked of servers that are behind. The command ends with exit code 3 then,
              because they may catch up.

    Limits:
          --max-download <BYTES>
              Refuse to receive more than this before the first lookup.

              In bytes, such as 100MB or 4GiB. It counts the record layout, the hint, the table or
              stream, and updates; hints that take more are not kept either.

              [default: 4GiB]

          --timeout <SECONDS>
              Wait so long for a server that does not answer [default: 120].

              A lookup fails, with exit code 3, once a server has left it waiting for about so long:
              half of it for an answer, half of it in new attempts. While a server computes hints, the
              default is 600.

          --min-rate <BYTES>
              Give up a download slower than this, in bytes a second [default: 8192]

    Lookups begin when they are due, whether or not earlier ones have been answered, and a lookup's
    latency counts from the moment at which it was due. So a server that stalls is not asked less.
    Percentiles are of all lookups: one that failed counts as slower than any other. A value is checked
    as `get` checks it. Ctrl-C ends the command with exit code 130, and leaves nothing behind.

    Examples:
      How many lookups a second this server stands:
        privet load http://127.0.0.1:7700

      The same, with a plot of all rates that were tried:
        privet load http://127.0.0.1:7700 --plot load.svg

      A hundred lookups a second for half a minute:
        privet load http://127.0.0.1:7700 --rate 100 --for 30s

      For a script; exit code 1 if one lookup in a hundred takes longer than [TIME]:
        privet load http://127.0.0.1:7700 --rate 100 --slo p99=250ms --json
    ");
}
