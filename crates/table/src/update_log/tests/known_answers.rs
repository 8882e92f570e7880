//! Made by independent programs: `vectors/generate_update_log.py` and
//! `vectors/generate_succession.py`.

use super::*;
use crate::update_log::succession::SuccessionDraft;
use data_encoding::HEXLOWER;
use serde_json::Value;

fn vectors(file: &str) -> Vec<Value> {
    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors");
    let text = std::fs::read_to_string(format!("{FOLDER}/{file}")).expect("the vectors are there");
    let all: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert!(all.len() >= 4);
    all
}

fn histories() -> Vec<Value> {
    vectors("update_log.json")
}

fn bytes(hexadecimal: &Value) -> Vec<u8> {
    HEXLOWER.decode(hexadecimal.as_str().expect("text").as_bytes()).expect("hexadecimal")
}

fn array<const N: usize>(hexadecimal: &Value) -> [u8; N] {
    bytes(hexadecimal).try_into().expect("as many bytes as announced")
}

/// The table that `state` is about, a whole history or one of its epochs.
fn identity(history: &Value, state: &Value, epoch: u64) -> TableIdentity {
    let record_len = history["record_len"].as_u64().expect("a number");
    let records = bytes(&state["records"]);
    TableIdentity {
        id: TableId(array(&history["id"])),
        epoch: Epoch(epoch),
        digest: privet_core::TableDigest(array(&state["digest"])),
        shape: TableShape::new(records.len() as u64 / record_len, record_len).expect("a shape"),
    }
}

fn layout_of(state: &Value) -> TableLayout {
    TableLayout::decode(&bytes(&state["layout"])).expect("a layout")
}

#[test]
fn epochs_are_followed() {
    for history in histories() {
        let base = history["base"].as_u64().expect("a number");
        let publisher = PublisherKey::from_secret(&array(&history["secret"])).id();
        assert_eq!(publisher.0, array(&history["publisher"]));
        let begin = identity(&history, &history, base);
        let mut records = bytes(&history["records"]);
        let previous = Some(EpochHash::NONE);
        let mut chain = Chain::new(begin, layout_of(&history), publisher, previous)
            .expect("a layout that fits");
        for (epoch, state) in (base + 1..).zip(history["epochs"].as_array().expect("a list")) {
            let update = chain.follow(&bytes(&state["epoch"])).expect("the next epoch");
            assert_eq!(update.hash.0, array(&state["hash"]));
            assert_eq!(update.after, identity(&history, state, epoch));
            assert_eq!(chain.layout(), Some(&layout_of(state)));
            apply(&update, &mut records);
            assert_eq!(records, bytes(&state["records"]));
        }
    }
}

#[test]
fn successions_are_signed_and_followed() {
    for known in vectors("succession.json") {
        let secret = |name: &str| -> Option<PublisherKey> {
            known[name].as_str().map(|_| PublisherKey::from_secret(&array(&known[name])))
        };
        let (publisher, next) = (secret("publisher").expect("there is one"), secret("next"));
        let as_next = next.as_ref().map(|next| next.id().as_next_key());
        let keys = TableKeys { publisher: publisher.id(), next: as_next };
        let epoch = known["epoch"].as_u64().expect("a number");
        let before = identity(&known, &known, epoch);
        let previous = Some(EpochHash(array(&known["previous"])));
        let chain = Chain::new(before, layout_of(&known), keys, previous).expect("it fits");

        let record = Succession::decode(&bytes(&known["succession"])).expect("well-formed");
        assert_eq!(record.hash().0, array(&known["hash"]));
        let mut lineage = Lineage::default();
        lineage.push(record.clone()).expect("the first");
        let end = lineage.walk(&chain, &[]).expect("signed").expect("of this table").end;
        let new = end.identity();
        assert_eq!(new.id.0, array(&known["new_id"]));
        assert_eq!(new.digest.0, array(&known["new_digest"]));
        assert_eq!(end.keys().publisher.0, array(&known["new_publisher"]));
        let new_next = known["new_next"].as_str().map(|_| array(&known["new_next"]));
        assert_eq!(end.keys().next.map(|next| next.0), new_next);
        let revokes = known["revokes"].as_bool().expect("one of two");
        assert_eq!(record.revokes(), revokes);

        let parts = DigestParts {
            layout: layout_digest(&bytes(&known["new_layout"])),
            records: *blake3::hash(&bytes(&known["new_records"])).as_bytes(),
        };
        let (id, shape, keys) = (new.id, new.shape, end.keys());
        let draft = SuccessionDraft { end: &chain, id, shape, parts, keys };
        let by_publisher = (!revokes).then_some(&publisher);
        let made = draft.sign(by_publisher, next.as_ref()).expect("such a record");
        assert_eq!(made, record);
    }
}

/// The same epochs, appended: the file is the same to the byte.
#[cfg(feature = "files")]
#[test]
fn the_file_is_the_same() {
    use crate::snapshot::{Snapshot, SnapshotPlan, SnapshotWriter, ValueForm};
    for history in histories() {
        let base = history["base"].as_u64().expect("a number");
        let begin = identity(&history, &history, base);
        let directory = tempfile::TempDir::new().expect("a directory");
        let path = directory.path().join("t.privet");
        let plan = SnapshotPlan {
            id: begin.id,
            epoch: begin.epoch,
            shape: begin.shape,
            layout: layout_of(&history),
            key_column: None,
            until_column: None,
            value_form: ValueForm::JsonRest,
            mark: None,
        };
        let mut writer = SnapshotWriter::create(&path, plan).expect("writable");
        let record_len = begin.shape.record_len() as usize;
        let records_of = |state: &Value| -> Vec<Vec<u8>> {
            bytes(&state["records"]).chunks(record_len).map(<[u8]>::to_vec).collect()
        };
        for record in records_of(&history) {
            writer.write_record(&record).expect("in order");
        }
        writer.finish().expect("complete");
        let snapshot = Snapshot::open(&path).expect("whole");
        assert_eq!(snapshot.identity(), begin);

        let key = PublisherKey::from_secret(&array(&history["secret"]));
        let log = log_path(&path);
        UpdateLog::create(&log, &snapshot, key.id()).expect("there is none");
        let mut writer = LogWriter::open(&log, &snapshot).expect("whole");
        for state in history["epochs"].as_array().expect("a list") {
            let written = (0..).zip(records_of(state)).collect();
            let shape = writer.log().current().shape;
            let update = TableUpdate::new(shape, written, Some(layout_of(state)));
            writer.append(&key, &update.expect("fitting")).expect("the next epoch");
        }
        let file = std::fs::read(&log).expect("readable");
        assert!(file == bytes(&history["log"]), "the files differ");
    }
}
