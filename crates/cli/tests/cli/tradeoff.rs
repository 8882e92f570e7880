//! `privet tradeoff`: what it prints, that this agrees with what is served, and that input can
//! only fail by being refused.

use crate::place::Place;
use insta::assert_snapshot;
use serde_json::Value;

#[test]
fn the_curve_of_a_table_is_shown_and_what_serve_takes_is_marked() {
    let place = Place::new();
    assert_snapshot!(place.run("tradeoff --records 2^24 --record-len 1").printed(), @r#"
    16,777,216 records of 1 B, 16.00 MiB in all, with finite-differences and 2 servers. There is to choose from:
         variables  degree     storage  × table    reads  cache lines      answer    download
                27      13  128.00 MiB      8.0  397,594       82,160  388.28 KiB  776.55 KiB
      *         28      11  256.00 MiB       16  122,438       35,443  119.57 KiB  239.14 KiB
                31       9    2.00 GiB      128   36,457       15,276   35.60 KiB   71.21 KiB
                40       7    1.00 TiB   65,536   10,701        6,580   10.45 KiB   20.90 KiB
    * is what `privet serve --scheme finite-differences` takes.
    Storage, reads, lines and answers are those of each server; the download is that of all. If the table grew to n records, and the variables and the degree in proportion:
      variables  degree  degree / variables  storage    reads
             27      13               0.481  n^1.001  n^0.797
             28      11               0.393  n^1.035  n^0.739
             31       9               0.290  n^1.151  n^0.688
             40       7               0.175  n^1.495  n^0.640
    "#);
    // The marked setting depends on the limits.
    let marked = |limits: &str| {
        let report = place.run(&format!("tradeoff --records 2^24 --json {limits}")).json();
        let curve = report["curve"].as_array().unwrap();
        let chosen: Vec<u64> = curve
            .iter()
            .filter(|offer| offer["chosen"] == true)
            .map(|offer| offer["variables"].as_u64().unwrap())
            .collect();
        (chosen, report["refusal"].clone())
    };
    assert_eq!(marked(""), (vec![28], Value::Null));
    assert_eq!(marked("--storage-limit 2^31"), (vec![31], Value::Null));
    assert_eq!(marked("--storage-limit 2^27"), (vec![27], Value::Null));
    assert_eq!(marked("--answer-limit 20000"), (vec![40], Value::Null));
    assert_eq!(marked("--answer-limit 40000"), (vec![31], Value::Null));
    let (chosen, refusal) = marked("--answer-limit 40000 --storage-limit 2^30");
    assert_eq!(chosen, Vec::<u64>::new());
    assert!(refusal.as_str().unwrap().contains("keeps these limits for 16777216 records"));
    let page = place.run("tradeoff --records 2^24 --one-bit --storage-limit 2^20");
    let line = page.stdout().lines().find(|line| line.contains("takes none"));
    let command = "`privet serve --scheme finite-differences --one-bit --storage-limit 1048576`";
    assert!(line.unwrap().starts_with(&format!("{command} takes none: no choice of")), "{page}");
}

/// The server that `bench` starts takes the setting that `tradeoff` marks.
#[test]
fn what_is_marked_is_what_is_benchmarked() {
    let place = Place::new();
    let offers = |arguments: &str| {
        place.run(&format!("tradeoff --json {arguments}")).json()["curve"].clone()
    };
    for (scheme, arguments) in [
        ("finite-differences", "--records 3000 --record-len 1 --one-bit --storage-limit 2^13"),
        ("finite-differences-many", "--records 300 --record-len 20 --servers 3"),
    ] {
        let offers = offers(arguments);
        let chosen =
            offers.as_array().unwrap().iter().find(|offer| offer["chosen"] == true).unwrap();
        let bench = format!("bench --scheme {scheme} {arguments} --queries 1 --json");
        let measured = place.run(&bench).json();
        let servers = measured["online"]["servers"].as_array().unwrap();
        for server in servers {
            // Each message has some bytes besides its query or answer.
            for (received, sent) in [("up_bytes", "query_bytes"), ("down_bytes", "answer_bytes")] {
                let more = server[received].as_u64().unwrap() - chosen[sent].as_u64().unwrap();
                assert!((1..100).contains(&more), "{measured}");
            }
        }
        let table =
            measured["records"].as_u64().unwrap() * measured["record_len"].as_u64().unwrap();
        assert_eq!(
            measured["server_extra_bytes"],
            chosen["storage_bytes"].as_u64().unwrap() - table
        );
        let all = chosen["answer_bytes"].as_u64().unwrap() * servers.len() as u64;
        assert_eq!(chosen["download_bytes"], all);
    }
}

#[test]
fn curves_of_more_servers_and_of_single_bits_are_those_of_their_schemes() {
    let place = Place::new();
    assert_snapshot!(place.run("tradeoff --records 10000 --record-len 16 --servers 3").printed(), @r#"
    10,000 records of 16 B, 156.25 KiB in all, with finite-differences-many and 3 servers. There is to choose from:
         variables  degree     storage  × table  reads  cache lines    answer  download
      *         16       8  697.89 MiB    4,574    137          143  2.27 KiB  6.82 KiB
                19       5   18.40 GiB  123,490     20           23     340 B    1020 B
    * is what `privet serve --scheme finite-differences-many --servers 3` takes.
    Storage, reads, lines and answers are those of each server; the download is that of all. If the table grew to n records, and the variables and the degree in proportion:
      variables  degree  degree / variables  storage    reads
             16       8               0.500  n^1.585  n^0.650
             19       5               0.263  n^1.906  n^0.516
    "#);
    let bytes = place.run("tradeoff --records 2^24 --json").json();
    let bits = place.run("tradeoff --records 2^24 --one-bit --json").json();
    let curves = [&bytes, &bits].map(|report| report["curve"].as_array().unwrap());
    assert_eq!(bits["table_bytes"], 1 << 21);
    for (byte, bit) in curves[0].iter().zip(curves[1]) {
        for (same, name) in [(1, "variables"), (1, "reads"), (8, "storage_bytes")] {
            assert_eq!(byte[name], bit[name].as_u64().unwrap() * same, "{name}");
        }
        let answer = byte["answer_bytes"].as_u64().unwrap();
        assert_eq!(bit["answer_bytes"], answer.div_ceil(8));
        assert!(bit["cache_lines"].as_u64() < byte["cache_lines"].as_u64());
    }
}

#[test]
fn what_is_too_long_to_be_sent_is_said() {
    let run = Place::new().run("tradeoff --records 2^36");
    assert_snapshot!(run.printed(), @r#"
    68,719,476,736 records of 1 B, 64.00 GiB in all, with finite-differences and 2 servers. There is to choose from:
         variables  degree     storage  × table        reads  cache lines      answer    download
      !         39      19  512.00 GiB      8.0  292,750,368   58,115,146  279.19 MiB  558.38 MiB
      *         40      17    1.00 TiB       16  100,146,724   25,211,936   95.51 MiB  191.01 MiB
                42      15    4.00 TiB       64   33,199,096   10,739,176   31.66 MiB   63.32 MiB
                45      13   32.00 TiB      512    9,531,040    3,930,551    9.09 MiB   18.18 MiB
    * is what `privet serve --scheme finite-differences` takes.
    ! has answers that are too long to be sent in one message.
    Storage, reads, lines and answers are those of each server; the download is that of all. If the table grew to n records, and the variables and the degree in proportion:
      variables  degree  degree / variables  storage    reads
             39      19               0.487  n^1.000  n^0.801
             40      17               0.425  n^1.017  n^0.759
             42      15               0.357  n^1.064  n^0.720
             45      13               0.289  n^1.153  n^0.687
    "#);
}

/// A file's elements in order, each with its depth, and its text labels. Panics on what no XML
/// reader would accept: unclosed tags, bare ampersands, attributes without quotation marks.
fn elements(svg: &str) -> (Vec<String>, Vec<String>) {
    let (mut open, mut names, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = svg.trim();
    while let Some(tag) = rest.strip_prefix('<') {
        let (tag, after) = tag.split_once('>').unwrap();
        let (text, _) = after.split_once('<').unwrap_or((after, ""));
        rest = &after[text.len()..];
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else {
            let (empty, tag) = (tag.ends_with('/'), tag.trim_end_matches('/'));
            let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            assert!(name.chars().all(char::is_alphabetic) && !tag.contains('<'), "{tag}");
            let parts: Vec<&str> = attributes.split('"').collect();
            assert!(parts.len() % 2 == 1 && parts.last().unwrap().is_empty(), "{tag}");
            assert!(parts.iter().step_by(2).all(|part| part.is_empty() || part.ends_with('=')));
            names.push(format!("{}{name}", " ".repeat(open.len())));
            if !empty {
                open.push(name);
            }
        }
        let mut words = text.trim().to_owned();
        for (entity, meant) in [("&lt;", "<"), ("&gt;", ">"), ("&apos;", "'"), ("&quot;", "\"")] {
            words = words.replace(entity, meant);
        }
        assert!(!words.replace("&amp;", "").contains('&'), "{text}");
        if !words.is_empty() {
            texts.push(words.replace("&amp;", "&"));
        }
    }
    assert!(rest.is_empty() && open.is_empty(), "{rest} {open:?}");
    (names, texts)
}

#[test]
fn a_plot_is_written_and_is_the_same_every_time() {
    let place = Place::new();
    let plot = |arguments: &str| {
        let run = place.run(&format!("tradeoff {arguments} --svg plot.svg"));
        assert_eq!((run.code(), run.stderr()), (0, ""), "{run}");
        std::fs::read_to_string(place.path("plot.svg")).unwrap()
    };
    let of_a_table = "--records 2^24";
    let svg = plot(of_a_table);
    assert_eq!(svg, plot(of_a_table));
    let (names, texts) = elements(&svg);
    assert_snapshot!(texts.join("\n"), @r#"
    16,777,216 records of 1 B: finite-differences, 2 servers
    points and cache lines read by each server
    bytes stored on each server
    1,000
    10⁴
    10⁵
    10⁶
    256 MiB
    1 GiB
    4 GiB
    16 GiB
    64 GiB
    256 GiB
    1 TiB
    bytes of each server's answer (to the points read)
    1 KiB
    4 KiB
    16 KiB
    64 KiB
    256 KiB
    points read
    cache lines read
    what serve takes
    "#);
    // First the background, before anything visible. A curve and its legend sample have the first
    // colour.
    assert_eq!(names[..2], ["svg", " rect"]);
    assert!(svg.contains(r##"width="820" height="588" opacity="1" fill="#FFFFFF""##), "{svg}");
    let blue = |line: &&str| line.starts_with("<polyline") && line.contains("#0072B2");
    assert_eq!(svg.lines().filter(blue).count(), 2);

    for arguments in [
        "--records 1",
        "--records 2^24 --one-bit",
        "--records 9 --record-len 2^24",
        "--records 9 --servers 5",
    ] {
        let svg = plot(arguments);
        elements(&svg);
        for word in ["NaN", "inf", "<script", "href"] {
            assert!(!svg.contains(word), "{arguments}: {word}");
        }
    }
    assert_eq!(place.files(), ["plot.svg"]);
    assert_snapshot!(place.run("tradeoff --records 9 --svg nowhere/plot.svg").mistake(), @r#"
    privet: cannot write nowhere/plot.svg: its directory does not exist
    "#);
}

#[test]
fn what_there_is_not_is_refused() {
    let place = Place::new();
    assert_snapshot!(place.run("tradeoff --records 9 --servers 14").mistake(), @r#"
    error: invalid value '14' for '--servers <S>': 14 is not in 2..=13

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("tradeoff --records 2^47").mistake(), @r#"
    privet: finite differences with 2 servers cannot hold 140737488355328 records: their points would take more than 281474976710656 bytes, or answers more than 134217728
    "#);
    assert_snapshot!(place.run("tradeoff --records 100 --one-bit --servers 3").refusal(), @r#"
    [exit 2]
    privet: single bits are packed with two servers only: leave out --one-bit or --servers
    "#);
    assert_snapshot!(place.run("tradeoff --records 100 --record-len 2 --one-bit").mistake(), @r#"
    privet: single bits are bytes of value 0 or 1, records of one byte each, not 2
    "#);
    for typed in [
        "",
        "--records 5 --servers 0",
        "--records 5 --servers 1",
        "--records 0",
        "--records -1",
        "--records x",
        "--records 5 --record-len 0",
        "--records 5 --storage-limit 0",
    ] {
        let run = place.run(&format!("tradeoff {typed}"));
        assert_eq!((run.code(), run.stdout()), (2, ""), "{typed}: {run}");
    }
}

/// All combinations of the largest and the oddest arguments. Each gives an answer or a refusal, in
/// a time that does not depend on the size of the numbers.
#[test]
fn nothing_that_can_be_typed_is_too_much() {
    let place = Place::new();
    let check = |arguments: &str| {
        let run = place.run(&format!("tradeoff --json {arguments}"));
        let refused = run.stderr().starts_with("privet: ") || run.stderr().starts_with("error: ");
        match run.code() {
            0 => assert!(run.json().is_object()),
            2 => assert!(refused && run.stdout().is_empty(), "{arguments}: {run}"),
            _ => panic!("{arguments}: {run}"),
        }
        run.code()
    };
    let mut codes = Vec::new();
    for records in ["1", "2", "999", "2^34", "2^48", "2^63", "18446744073709551615"] {
        for record_len in ["1", "63", "2^24", "18446744073709551615"] {
            for servers in [2, 3, 13] {
                codes.push(check(&format!(
                    "--records {records} --record-len {record_len} --servers {servers} --answer-limit 2^63"
                )));
            }
        }
    }
    let answered = codes.iter().filter(|code| **code == 0).count();
    assert!(answered >= 20 && codes.len() - answered >= 20, "{answered} of {}", codes.len());
}
