//! The documents keep their promises: each test that they name exists, and each link has a target.

#![allow(clippy::unwrap_used)]

use privet_schemes::registry::{chosen, tree};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages that make claims about security.
fn security_pages() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("docs/security")).unwrap();
    let mut pages: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    pages.push(root().join("SECURITY.md"));
    pages.push(root().join("docs/laboratory/security.md"));
    pages.sort();
    pages
}

/// The texts between `[test:` and `]` on a page, in the form `file::function`.
fn named_tests(page: &str) -> Vec<String> {
    let named = page.split("[test:").skip(1);
    named.map(|rest| rest.split(']').next().unwrap().trim().to_owned()).collect()
}

/// Whether `source` has a test function called `name`. Comments and ordinary functions do not
/// count. Tests made by `proptest!` carry the test attribute too.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(at, line)| {
        let declares = line
            .split_once("fn ")
            .filter(|(before, _)| before.is_empty() || *before == "async ")
            .is_some_and(|(_, rest)| {
                rest.strip_prefix(name).is_some_and(|rest| rest.starts_with('('))
            });
        let attributes = lines[..at].iter().rev().take_while(|line| {
            line.starts_with("#[") || line.starts_with("//") || line.ends_with(")]")
        });
        let is_test = |line: &str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let attributes: Vec<&str> = attributes.take(8).copied().collect();
        let is_run = !attributes.iter().any(|line| line.starts_with("#[ignore"));
        declares && is_run && attributes.into_iter().any(is_test)
    }) || is_made_by_macro(&lines, name)
}

/// Whether `name` is an argument of a macro that makes one test for each of several forms.
fn is_made_by_macro(lines: &[&str], name: &str) -> bool {
    let listed = format!("{name},");
    let begins = |line: &&&str| line.starts_with("tests_of_both_forms!(");
    let in_a_list = lines.iter().enumerate().any(|(at, line)| {
        let before = lines[..at].iter().rev().take_while(|line| !line.starts_with(");"));
        *line == listed && before.clone().any(|line| begins(&line))
    });
    in_a_list || lines.contains(&format!("for_both_forms!({name});").as_str())
}

/// The suites that schemes run: the macro call in a scheme's tests, and the file of the suite.
const SUITES: [(&str, &str); 2] = [
    ("stateless_suite!(", "crates/schemes/src/conformance/stateless.rs"),
    ("hinted_suite!(", "crates/schemes/src/conformance/hinted.rs"),
];

/// Whether `source` runs a suite that has the test. The last macro in a suite's file makes a test
/// for each name in its list.
fn is_of_a_suite(source: &str, name: &str) -> bool {
    let listed = format!("{name},");
    SUITES.iter().filter(|(run, _)| source.lines().any(|line| line.starts_with(run))).any(
        |(_, file)| {
            let suite = fs::read_to_string(root().join(file)).unwrap_or_default();
            let list = suite.rsplit_once("macro_rules! ").map_or("", |(_, list)| list);
            list.lines().any(|line| line.trim() == listed)
        },
    )
}

fn exists(named: &str) -> Result<(), String> {
    let (file, name) =
        named.rsplit_once("::").ok_or_else(|| format!("{named:?} is not file::function"))?;
    let source =
        fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
    let exists = has_test(&source, name) || is_of_a_suite(&source, name);
    exists.then_some(()).ok_or_else(|| format!("{file} has no test {name}"))
}

#[test]
fn every_test_that_a_security_page_names_exists() {
    let mut missing = Vec::new();
    let mut count = 0;
    for path in security_pages() {
        let page = fs::read_to_string(&path).unwrap();
        for named in named_tests(&page) {
            count += 1;
            if let Err(error) = exists(&named) {
                missing.push(format!("{}: {error}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
    assert!(count > 80, "only {count} tests are named: are they read at all?");
}

#[test]
fn a_test_that_does_not_exist_is_noticed() {
    let page = "A claim. [test: crates/cli/tests/documents.rs::no_such_test] Another.
        [test: crates/cli/tests/no_such_file.rs::a_test] [test: crates/cli/tests/documents.rs::root]
        [test: crates/cli/tests/documents.rs::a_test_that_does_not_exist_is_noticed]";
    let found: Vec<bool> = named_tests(page).iter().map(|named| exists(named).is_ok()).collect();
    assert_eq!(found, [false, false, false, true], "`root` is a function and no test");
    assert!(!has_test("// #[test]\n// fn a() {}", "a"));
    assert!(!has_test("#[test]\nfn ab() {}", "a"));
    assert!(!has_test("#[test]\n#[ignore = \"slow\"]\nfn a() {}", "a"));
    assert!(has_test("tests_of_both_forms!(World:\n    a,\n);", "a"));
    assert!(!has_test("tests_of_both_forms!(World:\n);\n    a,", "a"));
    let of_all = "a_record_takes_one_answer_of_each_server";
    assert!(is_of_a_suite("stateless_suite!(Tested);", of_all));
    assert!(!is_of_a_suite("stateless_suite!(Tested);", "is_read"));
    assert!(!is_of_a_suite("// stateless_suite!(Tested);", of_all));
    assert!(!is_of_a_suite("hinted_suite!(suite: Tested);", of_all));
    assert!(has_test("#[tokio::test(start_paused = true)]\nasync fn a() {}", "a"));
}

/// SECURITY.md must fit on two printed pages, so that people read it.
#[test]
fn the_threat_model_is_two_pages() {
    let words = fs::read_to_string(root().join("SECURITY.md")).unwrap().split_whitespace().count();
    assert!(words <= 1_100, "SECURITY.md has {words} words");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut pages = security_pages();
    for name in
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/key-transparency/README.md"]
    {
        pages.push(root().join(name));
    }
    for name in [
        "schemes.md",
        "glossary.md",
        "bench.md",
        "laboratory/tradeoff.md",
        "operating.md",
        "python.md",
    ] {
        pages.push(root().join("docs").join(name));
    }
    let mut broken = Vec::new();
    for path in pages {
        let page = fs::read_to_string(&path).unwrap();
        for link in page.split("](").skip(1) {
            let target = link.split(')').next().unwrap();
            if target.starts_with("http") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let to = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            match fs::read_to_string(&to) {
                Ok(text) if heading.is_empty() || has_heading(&text, heading) => {}
                Ok(_) => broken.push(format!("{}: {target}: no such heading", path.display())),
                // A folder, or a picture.
                Err(_) if heading.is_empty() && to.exists() => {}
                Err(error) => broken.push(format!("{}: {target}: {error}", path.display())),
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Whether a page has a heading with this anchor. Anchors are formed as code hosts form them.
fn has_heading(page: &str, anchor: &str) -> bool {
    let headings = page.lines().filter_map(|line| line.strip_prefix('#'));
    headings.map(|heading| heading.trim_start_matches('#').trim()).any(|heading| {
        let kept = heading.to_lowercase();
        let kept: String =
            kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect();
        kept.replace(' ', "-") == anchor
    })
}

/// The table of all schemes, made from their descriptors.
fn table_of_schemes() -> String {
    let mut table = String::from(
        "| scheme | what it is | servers | verifies answers | its own options |\n|---|---|---|---|---|\n",
    );
    for scheme in privet_laboratory::all() {
        let about = scheme.about();
        let (fewest, most) = (about.servers.start(), about.servers.end());
        let servers = match fewest == most {
            true => fewest.to_string(),
            false => format!("{fewest} to {most}"),
        };
        let verifies = if about.verifies { "yes" } else { "no" };
        let options = about.options.iter().map(|option| format!("`--{}`", option.name));
        let options = options.collect::<Vec<_>>().join(", ");
        table.push_str(&format!(
            "| `{scheme}` | {} | {servers} | {verifies} | {options} |\n",
            about.summary
        ));
    }
    table
}

/// Compares what stands in `docs/schemes.md` behind the line `begins` with what the code makes of
/// it, or writes that there.
fn has_on_the_page_on_schemes(begins: &str, made: &str) {
    const ENDS: &str = "<!-- Here it ends. -->";
    // Tests write one after the other.
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock();
    let path = root().join("docs/schemes.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(begins).unwrap();
    let (written, after) = rest.split_once(ENDS).unwrap();
    if std::env::var_os("PRIVET_WRITE_TABLES").is_some() {
        fs::write(&path, format!("{before}{begins}{made}{ENDS}{after}")).unwrap();
        return;
    }
    assert!(
        written == made,
        "docs/schemes.md does not have what the descriptors say; run this test once more with \
         PRIVET_WRITE_TABLES=1, which writes:\n{made}"
    );
}

#[test]
fn the_page_on_schemes_has_the_table_that_the_schemes_make() {
    has_on_the_page_on_schemes(
        "<!-- The schemes' descriptors make this table. -->\n",
        &format!("\n{}\n", table_of_schemes()),
    );
}

#[test]
fn the_page_on_schemes_has_the_tree_by_which_schemes_are_chosen() {
    has_on_the_page_on_schemes(
        "<!-- The rule draws this tree. -->\n",
        &format!("\n```\n{}```\n\n", tree()),
    );
}

/// The schemes that stand at the beginning of the rows of the first table behind a heading.
fn schemes_below(page: &str, heading: &str) -> Vec<String> {
    let (_, rest) = page.split_once(heading).unwrap();
    let rows = rest.lines().skip_while(|line| !line.starts_with('|'));
    let names = rows.take_while(|line| line.starts_with('|')).filter_map(|row| {
        let name = row.strip_prefix("| `")?.split_once('`')?.0;
        Some(name.to_owned())
    });
    names.collect()
}

#[test]
fn the_documents_offer_the_schemes_that_the_rule_chooses() {
    let mut chosen: Vec<_> = chosen().into_iter().map(|scheme| scheme.name().to_owned()).collect();
    chosen.sort();
    for (page, heading) in [("README.md", "## Which scheme"), ("docs/schemes.md", "## Five names")]
    {
        let mut offered = schemes_below(&fs::read_to_string(root().join(page)).unwrap(), heading);
        offered.sort();
        assert_eq!(offered, chosen, "{page}");
    }
}
