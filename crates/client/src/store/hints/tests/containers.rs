//! Hints in containers: baked into an image that is started twice, and on a volume.

use super::super::anchor::{Anchor, AnchorFile, contradicts};
use super::super::*;
use super::history::{generation, key, record, seen};
use super::journal::named;
use crate::disk::simulated::Disk;
use crate::disk::{Attributes, Directory, Folder, Medium, Times};
use crate::state::HintStore as _;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Set for the process that may mount: the place to do it.
const MOUNTS_AT: &str = "PRIVET_TEST_MOUNTS_AT";
const THIS_TEST: &str =
    "store::hints::tests::containers::hints_baked_into_an_image_are_erased_in_every_container";
/// What that process prints if it succeeded.
const MOUNTED: &str = "two containers were started from one image";

fn open(folder: Directory) -> (Box<KeptHints>, Option<String>) {
    match KeptHints::open(Arc::new(folder), &key(), false, Others::Refuse).unwrap() {
        Opening::Have { hints, notice } => (hints, notice),
        Opening::Busy => panic!("busy"),
    }
}

/// Prepares hints, and uses two.
fn use_two(hints: &mut KeptHints) {
    hints.preparation().unwrap().save_generation(&generation(1)).unwrap();
    hints.switch().unwrap();
    for id in 0..2 {
        hints.reserve_one(ReservationId(id), &record(b"change", b"query")).unwrap();
    }
}

/// Runs `mount` or `umount`; returns its message if it fails.
fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// An image, and containers that are started from it.
struct Image(PathBuf);

impl Image {
    /// The file system of container `number`. Starting it again finds what it left.
    fn start(&self, number: u32) -> Result<PathBuf, String> {
        let part = |name: &str| self.0.join(format!("{name}-{number}"));
        let (upper, work, root) = (part("upper"), part("work"), part("root"));
        for directory in [&upper, &work, &root] {
            std::fs::create_dir_all(directory).unwrap();
        }
        let shown = |path: &Path| path.display().to_string();
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            shown(&self.0.join("image")),
            shown(&upper),
            shown(&work)
        );
        let mut mount = Command::new("mount");
        run(mount.args(["-t", "overlay", "overlay", "-o", &options]).arg(&root))?;
        Ok(root)
    }
}

fn stop(root: &Path) {
    run(Command::new("umount").arg(root)).unwrap();
}

/// Checks that no container uses hints that are part of its image, and that a container's own hints
/// stay.
fn check_containers(place: &Path, births: bool) -> Result<(), String> {
    let image = Image(place.to_owned());
    let folder = |path: &Path| {
        let folder = Directory::create(&path.join("state")).unwrap();
        if births { folder } else { folder.hiding_births() }
    };
    let lower = place.join("image");
    let (mut baked, _) = open(folder(&lower));
    use_two(&mut baked);
    drop(baked);
    if !births {
        // Longer than the amount by which a file system may round times.
        std::thread::sleep(Duration::from_millis(2500));
    }
    for number in [1, 2] {
        let root = image.start(number)?;
        let (mut hints, notice) = open(folder(&root));
        assert!(notice.is_some_and(|notice| notice.contains("copied")), "container {number}");
        assert_eq!(seen(&mut hints).unwrap().generation, None, "container {number}");
        use_two(&mut hints);
        drop(hints);
        stop(&root);
        let root = image.start(number)?;
        let (mut hints, notice) = open(folder(&root));
        assert_eq!(notice, None, "container {number} has hints of its own");
        assert_eq!(seen(&mut hints).unwrap().changes.len(), 2);
        drop(hints);
        stop(&root);
    }
    let (mut baked, notice) = open(folder(&lower));
    assert_eq!(notice, None, "the original is the original");
    assert_eq!(seen(&mut baked).unwrap().changes.len(), 2);
    Ok(())
}

/// The same with the attributes that files had in a trial on Linux 6.18.
fn check_recorded() {
    let lower = Attributes {
        inode: Some(9_994_335),
        born: Some(1_795_370_776_782_198_891),
        machine: None,
        snapshot: None,
    };
    let containers = [1_795_370_778_054_198_855, 1_795_370_779_382_198_817];
    for born in containers {
        let copied_up = Attributes { born: Some(born), ..lower.clone() };
        assert_ne!(copied_up.place(), lower.place());
    }
}

/// Mounts if it may: in a namespace of its own, as a user that is root there. If it may not, it
/// says so, and checks the attributes that were recorded where it was possible.
#[test]
fn hints_baked_into_an_image_are_erased_in_every_container() {
    if let Some(place) = std::env::var_os(MOUNTS_AT).map(PathBuf::from) {
        let mounted = [("births", true), ("no births", false)].map(|(name, births)| {
            std::fs::create_dir(place.join(name.replace(' ', "-"))).unwrap();
            check_containers(&place.join(name.replace(' ', "-")), births)
        });
        match mounted.into_iter().collect::<Result<Vec<()>, _>>() {
            Ok(_) => println!("{MOUNTED}"),
            Err(why) => println!("no overlay can be mounted: {why}"),
        }
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let mut inside = Command::new("unshare");
    inside.args(["--user", "--map-root-user", "--mount", "--"]);
    inside.arg(std::env::current_exe().unwrap()).args(["--exact", THIS_TEST, "--nocapture"]);
    let said = match inside.env(MOUNTS_AT, place.path()).output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            assert!(output.status.success() || !said.contains("panicked"), "{said}");
            said
        }
        Err(error) => format!("unshare cannot be run: {error}"),
    };
    match said.contains(MOUNTED) {
        true => println!("{MOUNTED}"),
        false => println!("not tried with an overlay, only as recorded: {said}"),
    }
    check_recorded();
}

/// A file with the attributes that a test gives it.
#[derive(Debug)]
struct Told {
    medium: Arc<dyn Medium>,
    attributes: Attributes,
    times: Option<Times>,
}

impl Medium for Told {
    fn len(&self) -> io::Result<u64> {
        self.medium.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.medium.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.medium.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.medium.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.medium.sync()
    }

    fn place(&self) -> io::Result<[u8; 32]> {
        Ok(self.attributes.place())
    }

    fn times(&self) -> io::Result<Option<Times>> {
        Ok(self.times)
    }

    fn now(&self) -> u64 {
        self.medium.now()
    }
}

#[test]
fn what_tells_a_copy_from_the_original() {
    let disk = Disk::default();
    let there = Attributes {
        inode: Some(7),
        born: Some(1_000),
        machine: Some(b"a machine".to_vec()),
        snapshot: Some(256),
    };
    let anchor = Anchor::new(&key(), [1; 16], there.place());
    let medium = disk.create(ANCHOR).unwrap();
    let written = AnchorFile::begin(named(medium), anchor).unwrap().anchor().written;
    let is_original = |attributes: Attributes, times: Option<(u64, Option<u64>)>| {
        let medium = disk.open(ANCHOR).unwrap().unwrap();
        let times = times.map(|(changed, written)| Times { changed, written });
        let told = Arc::new(Told { medium, attributes, times });
        AnchorFile::read(named(told)).unwrap().is_original().unwrap()
    };
    let now = Some((written, None));
    assert!(is_original(there.clone(), now));
    assert!(is_original(there.clone(), None), "the system need not keep times");
    let others = [
        ("another file", Attributes { inode: Some(8), ..there.clone() }),
        ("copied up on overlayfs", Attributes { born: Some(1_001), ..there.clone() }),
        ("another machine", Attributes { machine: Some(b"another".to_vec()), ..there.clone() }),
        ("a machine without a name", Attributes { machine: None, ..there.clone() }),
        ("a snapshot on Btrfs or ZFS", Attributes { snapshot: Some(257), ..there.clone() }),
    ];
    for (what, attributes) in others {
        assert!(!is_original(attributes, now), "{what}");
    }
    let at = |changed, contents: Option<u64>| {
        let after = |milliseconds| written + milliseconds;
        is_original(there.clone(), Some((after(changed), contents.map(after))))
    };
    assert!(at(30_000, None) && at(30_000, Some(30_000)), "clocks may differ by so much");
    assert!(!at(90_000, None) && !at(90_000, Some(90_000)), "somebody else wrote to it");
    assert!(at(1_500, Some(0)), "times may be rounded");
    assert!(!at(2_500, Some(0)), "copied with its times");
}

/// A crash may lose the time of a change, and a file system may round it down when it stores it.
#[test]
fn an_earlier_time_than_the_other_file_tells_contradicts_nothing() {
    for (changed, told, contradicted) in
        [(5000, 5000, false), (4999, 5000, false), (0, 5000, false), (5001, 5000, true)]
    {
        assert_eq!(contradicts(changed, told), contradicted, "{changed}, told {told}");
    }
    assert!(!contradicts(5000, 0), "the other file does not tell");
}

/// The journal is checked in the same way, by the time in its last commit.
#[test]
fn what_tells_a_journal_that_was_put_back() {
    let disk = Disk::default();
    let there = Attributes { inode: Some(7), born: Some(1_000), ..Attributes::default() };
    let told = |attributes: &Attributes, times| {
        let (medium, attributes) = (disk.create("journal").unwrap(), attributes.clone());
        Arc::new(Told { medium, attributes, times })
    };
    let generation = super::journal::header(1);
    let mut journal = Journal::create(named(told(&there, None)), &generation).unwrap();
    let anchor = super::journal::counting(&journal);
    let is_original = |attributes: &Attributes, changed: Option<u64>| {
        let times = changed.map(|changed| Times { changed, written: None });
        let told = told(attributes, times);
        Journal::open(named(told), &anchor).unwrap().is_original().unwrap()
    };
    let first = disk.now();
    assert!(is_original(&there, None) && is_original(&there, Some(first + 30_000)));
    assert!(!is_original(&there, Some(first + 90_000)), "somebody else wrote to it");
    assert!(!is_original(&Attributes { inode: Some(8), ..there.clone() }, Some(first)));
    disk.pass(Duration::from_millis(1100));
    journal.commit(&[]).unwrap();
    assert!(is_original(&there, Some(first + 61_000)), "its own write is none of somebody else");
}
