"""Tables from frames of every kind, and what comes back."""

import datetime
import decimal
import json
import pathlib
import signal
import threading
import time
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pytest

import privet

UTC = datetime.timezone.utc
TYPES = {
    "boolean": (pyarrow.bool_(), [True, False, None]),
    "small": (pyarrow.int8(), [-128, 127, None]),
    "large": (pyarrow.uint64(), [0, 2**64 - 1, None]),
    "float": (pyarrow.float64(), [0.1, -1e300, None]),
    "half": (pyarrow.float32(), [0.5, 1.25, None]),
    "price": (pyarrow.decimal128(20, 2), [decimal.Decimal("1.50"), decimal.Decimal("-0.01"), None]),
    "text": (pyarrow.string(), ["é\"\n", "", None]),
    "view": (pyarrow.string_view(), ["a view that is longer than twelve", "x", None]),
    "bytes": (pyarrow.binary(), [b"\x00\xff", b"", None]),
    "date": (pyarrow.date32(), [datetime.date(1, 1, 1), datetime.date(2026, 2, 28), None]),
    "time": (pyarrow.time64("us"), [datetime.time(1, 2, 3, 4), datetime.time(0), None]),
    "seconds": (pyarrow.timestamp("s"), [datetime.datetime(2020, 1, 2, 3, 4, 5)] * 2 + [None]),
    "local": (pyarrow.timestamp("us"), [datetime.datetime(2020, 1, 2, 3, 4, 5, 678)] * 2 + [None]),
    "instant": (
        pyarrow.timestamp("us", "UTC"),
        [datetime.datetime(2020, 1, 2, tzinfo=UTC)] * 2 + [None],
    ),
    "list": (pyarrow.list_(pyarrow.int64()), [[1, None], [], None]),
    "struct": (
        pyarrow.struct([("b", pyarrow.binary()), ("n", pyarrow.int32())]),
        [{"b": b"q", "n": 1}, {"b": None, "n": None}, None],
    ),
    "map": (pyarrow.map_(pyarrow.string(), pyarrow.binary()), [[("k", b"v")], [], None]),
}
KEYS = ["first", "second", "third"]


def typed() -> pyarrow.Table:
    columns = {name: pyarrow.array(cells, of) for name, (of, cells) in TYPES.items()}
    return pyarrow.table({"key": KEYS, **columns})


def looked_up(path: pathlib.Path, keys: list) -> privet.Answers:
    with privet.serve(path, scheme="download") as server:
        with privet.connect(server, keep=False, progress=False) as db:
            return db.get_many(keys)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "t.privet"


def test_every_type_comes_back_as_it_went_in(path: pathlib.Path) -> None:
    table = typed()
    privet.build(table, path, key="key")
    answers = looked_up(path, KEYS)
    frame = answers.to_arrow()
    for name, (of, cells) in TYPES.items():
        column = frame[name]
        expected = pyarrow.string() if of == pyarrow.string_view() else of
        assert column.type == expected, name
        assert column.to_pylist() == cells, name
    for row, answer in enumerate(answers):
        values = answer.value.values
        for name, (_, cells) in TYPES.items():
            expected = dict(cells[row]) if name == "map" and cells[row] is not None else cells[row]
            assert values[name] == expected, name
            assert type(values[name]) is type(expected), name


@pytest.mark.parametrize(
    "convert",
    [
        lambda table: table.to_pandas(),
        polars.from_arrow,
        lambda table: table,
        lambda table: table.to_reader(),
        lambda table: table.to_batches(max_chunksize=1),
        lambda table: duckdb.from_arrow(table),
        lambda table: table.set_column(1, "city", table["city"].dictionary_encode()),
        lambda table: polars.from_arrow(table).cast({"city": polars.Categorical}),
        lambda table: table.to_pandas().astype({"city": "category"}),
        lambda table: [table.slice(0, 1), table.slice(1)],
    ],
    ids=(
        "pandas polars pyarrow reader batches duckdb dictionary categorical category tables"
    ).split(),
)
def test_every_kind_of_frame_makes_the_same_table(path: pathlib.Path, convert) -> None:
    table = pyarrow.table({"name": ["ada", "bob"], "city": ["Ulm", "Rom"], "age": [36, 7]})
    report = privet.build(convert(table), path, key="name")
    assert (report.rows, report.keys) == (2, 2)
    frame = looked_up(path, ["bob", "eve", "ada"])
    assert frame.to_polars().to_dicts() == [
        {"key": "bob", "found": True, "city": "Rom", "age": 7, "error": None},
        {"key": "eve", "found": False, "city": None, "age": None, "error": None},
        {"key": "ada", "found": True, "city": "Ulm", "age": 36, "error": None},
    ]
    assert isinstance(frame.to_pandas(), pandas.DataFrame)
    answers = frame
    assert duckdb.sql("select count(*) from answers where found").fetchall() == [(2,)]


def test_a_table_from_arrow_is_that_from_parquet(tmp_path: pathlib.Path) -> None:
    import pyarrow.parquet

    table = typed().drop_columns(["map"])
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    privet.build(tmp_path / "t.parquet", tmp_path / "file.privet", key="key")
    privet.build(table, tmp_path / "frame.privet", key="key")
    found = [
        [answer.value.bytes for answer in looked_up(tmp_path / name, KEYS)]
        for name in ("file.privet", "frame.privet")
    ]
    assert found[0] == found[1]


def test_rows_by_number_raw_values_and_several_values(path: pathlib.Path) -> None:
    privet.build(pyarrow.table({"v": [b"a", b"bc"]}), path, raw="v")
    dates = pyarrow.table({"v": [datetime.date(2020, 1, 2)]})
    privet.build(dates, path.with_name("dates.privet"), raw="v")
    answers = looked_up(path.with_name("dates.privet"), [0])
    assert answers[0].value.values == datetime.date(2020, 1, 2)
    assert answers.to_arrow()["v"].to_pylist() == [datetime.date(2020, 1, 2)]
    answers = looked_up(path, [1, 0])
    assert [answer.value.values for answer in answers] == [b"bc", b"a"]
    assert answers.to_arrow()["v"].to_pylist() == [b"bc", b"a"]
    with pytest.raises(privet.UsageError, match="rows 0 to 1"):
        looked_up(path, [2])
    with pytest.raises(TypeError):
        looked_up(path, ["0"])

    privet.build(
        pyarrow.table({"k": ["a", "b", "a"], "n": [1, 2, 3]}), path, key="k", on_duplicate="all"
    )
    answers = looked_up(path, ["a", "b"])
    assert [value.values for value in answers[0].value.all] == [{"n": 1}, {"n": 3}]
    assert answers.to_arrow().to_pydict()["n"] == [1, 3, 2]


def test_ranges_and_numbers_as_keys(path: pathlib.Path) -> None:
    import ipaddress

    networks = pyarrow.table({"network": ["1.0.0.0/24", "9.0.0.0/8"], "country": ["AU", "US"]})
    privet.build(networks, path, range_from="network")
    answers = looked_up(path, [ipaddress.ip_address("9.1.2.3"), "1.0.0.7", "2.0.0.0"])
    assert [a.value and a.value.json()["country"] for a in answers] == ["US", "AU", None]
    numbers = pyarrow.table({"id": [7, 8], "v": ["x", "y"]})
    privet.build(numbers, path, key="id")
    assert looked_up(path, [8])[0].value.json() == {"v": "y"}


def test_mistakes_are_usage_errors_and_leave_the_file(path: pathlib.Path) -> None:
    table = pyarrow.table({"k": ["a", "a"], "v": [1, 2]})
    path.write_text("mine")
    with pytest.raises(privet.UsageError, match="not a table.* replace it with `force`$"):
        privet.build(table, path, key="k")
    with pytest.raises(ValueError, match="a"):
        privet.build(table, path, key="k", force=True)
    with pytest.raises(privet.UsageError, match="nonsense"):
        privet.build(table, path, key="nonsense", force=True)
    assert path.read_text() == "mine"
    for wrong in (3, {"k": ["a"]}, [object()], None):
        with pytest.raises(TypeError, match="__arrow_c_stream__"):
            privet.build(wrong, path, key="k")
    with pytest.raises(privet.UsageError, match="nested|list"):
        privet.build(pyarrow.table({"k": [[1]], "v": [1]}), path, key="k", force=True)


def test_ctrl_c_ends_a_build_and_leaves_the_file(path: pathlib.Path) -> None:
    path.write_text("mine")
    asked = threading.Event()

    def batches():
        for row in range(1000):
            asked.set()
            time.sleep(0.05)
            yield pyarrow.record_batch({"k": [str(row)]})

    schema = pyarrow.schema({"k": pyarrow.string()})
    reader = pyarrow.RecordBatchReader.from_batches(schema, batches())

    def interrupt() -> None:
        asked.wait()
        signal.raise_signal(signal.SIGINT)

    # What a script runs in the background ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        privet.build(reader, path, raw="k", force=True, progress=False)
    time.sleep(0.3)
    assert path.read_text() == "mine"
    assert [name.name for name in path.parent.iterdir()] == [path.name]


def test_progress_is_told_and_its_errors_are_raised(tmp_path: pathlib.Path) -> None:
    told = []
    rows = pyarrow.table({"k": [str(row) for row in range(20_000)]})
    privet.build(rows, tmp_path / "t.privet", key="k", progress=told.append)
    assert told and all(isinstance(one, privet.Progress) for one in told)
    assert told[-1].done == told[-1].total > 0

    def fails(progress: privet.Progress) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        privet.build(rows, tmp_path / "other.privet", key="k", progress=fails)


def test_an_updated_table_is_looked_up_anew(tmp_path: pathlib.Path) -> None:
    key, path = tmp_path / "publisher.key", tmp_path / "t.privet"
    privet.keygen(key)
    day = datetime.date(2020, 1, 1)
    table = pyarrow.table({"k": ["a", "b", "c"], "n": [1, 2, 3], "d": [day] * 3})
    privet.build(table, path, key="k", publisher_key=key)
    report = privet.update(
        path, key, set={"a": {"n": 10, "d": datetime.date(2021, 1, 1)}}, delete=["b", "x"],
        from_=pyarrow.table({"k": ["e"], "n": [5], "d": [None]}, schema=table.schema),
    )  # fmt: skip
    told = (report.epoch, report.inserted, report.replaced, report.deleted, report.absent)
    assert told == (1, 1, 1, 1, 1)
    answers = looked_up(path, ["a", "b", "e"])
    assert answers[0].value.values == {"n": 10, "d": datetime.date(2021, 1, 1)}
    assert answers.to_arrow()["n"].to_pylist() == [10, None, 5]
    with pytest.raises(privet.UsageError):
        privet.update(path, key)
    # A value of another type makes its column one of JSON, and no error.
    privet.update(path, key, set={"a": {"n": "ten", "d": None}}, replace=True)
    answers = looked_up(path, ["a", "c"])
    assert answers.to_arrow()["n"].to_pylist() == ['"ten"', "3"]
    assert answers[0].value.values == {"n": "ten", "d": None}
    # Nor is it taken for what it is not: a number for a date, say, or a text for a number.
    privet.update(path, key, set={"a": {"n": "10", "d": 7}}, replace=True)
    frame = looked_up(path, ["a", "c"]).to_arrow()
    assert frame["n"].to_pylist() == ['"10"', "3"]
    assert frame["d"].to_pylist() == ["7", '"2020-01-01"']


def test_a_table_becomes_what_a_frame_says(tmp_path: pathlib.Path) -> None:
    key, path = tmp_path / "publisher.key", tmp_path / "t.privet"
    privet.keygen(key)
    privet.build(
        pyarrow.table({"k": ["a", "b", "c"], "n": [1, 2, 3]}), path, key="k", publisher_key=key
    )
    week = pyarrow.table({"k": ["a", "c", "d"], "n": [1, 30, 4]})
    with pytest.raises(TypeError, match="replace_with"):
        privet.update(path, key, replace_with=week, delete=["a"])
    report = privet.update(path, key, replace_with=week)
    told = (report.inserted, report.replaced, report.deleted, report.unchanged)
    assert told == (1, 1, 1, 1)
    assert privet.update(path, key, delete=["nobody"]).unchanged is None
    answers = looked_up(path, ["a", "b", "c", "d"])
    assert answers.to_arrow()["n"].to_pylist() == [1, None, 30, 4]
    with privet.serve(path) as server:
        demands: list[tuple[dict[str, Any], type[Exception]]] = [
            ({"digest": "00" * 32}, privet.IntegrityError),
            ({"at_least_epoch": 2}, privet.UnavailableError),
        ]
        for demand, error in demands:
            with pytest.raises(error, match="was demanded"):
                privet.connect(server.url, keep=False, **demand)
        demand = {"digest": report.digest, "at_least_epoch": 1}
        with privet.connect(server.url, keep=False, **demand) as db:
            assert db.refresh() == 1
            assert db["d"].values == {"n": 4}


def test_a_table_file_is_inspected(tmp_path: pathlib.Path) -> None:
    key, path = tmp_path / "publisher.key", tmp_path / "t.privet"
    publisher = privet.keygen(key)
    with pytest.raises(privet.PrivetError, match="publisher.key"):
        privet.keygen(key)
    table = pyarrow.table({"k": ["a", "b", "c"], "n": [1, 2, 3], "d": ["x", None, "z"]})
    built = privet.build(table, path, key="k", publisher_key=key)
    told = privet.inspect(path)
    assert (told.table_id, told.digest, told.root) == (built.table_id, built.digest, None)
    assert (told.epoch, told.keys, told.records) == (0, 3, built.records)
    assert told.publisher == publisher == built.publisher
    assert told.columns == (("n", "int64"), ("d", "text"))
    assert not told.verified and privet.inspect(path, verify=True).verified
    assert told.report["value"] == "json"
    report = privet.update(path, key, set={"a": {"n": 5, "d": "y"}}, delete=["b"])
    told = privet.inspect(path)
    assert (told.epoch, told.digest, told.records) == (1, report.digest, report.records)
    assert told.log_bytes == report.log_bytes and "digest" in told._repr_html_()
    vouched = privet.build(table, tmp_path / "vouched.privet", key="k", authenticate=True)
    assert privet.inspect(tmp_path / "vouched.privet").root == vouched.root
    privet.build(pyarrow.table({"v": [b"a", b"bc"]}), tmp_path / "raw.privet", raw="v")
    told = privet.inspect(tmp_path / "raw.privet")
    assert (told.keys, told.key_column, told.publisher, told.log_bytes) == (None, None, None, 0)
    with pytest.raises(privet.PrivetError):
        privet.inspect(key)


def test_a_table_is_signed_for_the_first_time_only_if_that_is_said(tmp_path: pathlib.Path) -> None:
    key, path = tmp_path / "publisher.key", tmp_path / "t.privet"
    privet.keygen(key)
    privet.build(pyarrow.table({"k": ["a", "b"], "n": [1, 2]}), path, key="k")
    with pytest.raises(privet.UsageError, match="begin its history"):
        privet.update(path, key, delete=["a"])
    report = privet.update(path, key, delete=["a"], begin_history=True)
    assert (report.epoch, report.deleted) == (1, 1)
    # The flag is not left in a script by mistake.
    with pytest.raises(privet.UsageError, match="has its history already"):
        privet.update(path, key, delete=["b"], begin_history=True)
    (tmp_path / "t.privet.updates").unlink()
    with pytest.raises(privet.PrivetError, match="bring it back"), privet.serve(path):
        pass


def test_a_table_is_handed_on_to_a_successor_and_to_other_keys(tmp_path: pathlib.Path) -> None:
    key, path, new = tmp_path / "p.key", tmp_path / "t.privet", tmp_path / "new.privet"
    privet.keygen(key)
    digest = privet.keygen(tmp_path / "next.key", next=True)
    table = pyarrow.table({"k": ["a", "b"], "n": [1, 2]})
    built = privet.build(table, path, key="k", publisher_key=key, next_key=digest)
    assert built.next_key == privet.inspect(path).next_key == digest
    later = privet.keygen(tmp_path / "later.key", next=True)
    report = privet.update(path, key, hand_over_to=tmp_path / "next.key", next_key=later)
    assert (report.epoch, report.records_changed) == (1, 0)
    with pytest.raises(privet.UsageError, match="has to sign this too"):
        privet.build(table, new, key="k", publisher_key=tmp_path / "next.key", succeeds=path)
    # The next key alone revokes what the publisher's key has signed since.
    built = privet.build(table, new, key="k", succeeds=path, hand_over_to=tmp_path / "later.key")
    updates = privet.inspect(path).report["updates"]
    assert updates["succeeded_by"] == built.table_id and built.next_key is None


def test_floats_that_json_does_not_have_come_back(path: pathlib.Path) -> None:
    infinity = float("inf")
    floats = [infinity, -infinity, float("nan"), 1.0]
    table = pyarrow.table({"k": ["a", "b", "c", "d"], "v": floats})
    privet.build(table, path, key="k")
    answers = looked_up(path, ["a", "b", "c", "d"])
    values = answers.to_arrow()["v"].to_pylist()
    assert values[:2] == [infinity, -infinity] and values[2] != values[2] and values[3] == 1
    assert [value.values["v"] for value in answers.values()][:2] == [infinity, -infinity]


def test_json_lines_come_back_as_their_text(tmp_path: pathlib.Path) -> None:
    lines = [{"k": "a", "x": 1}, {"k": "b", "y": [True]}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    privet.build(tmp_path / "in.jsonl", tmp_path / "t.privet", key="k")
    answers = looked_up(tmp_path / "t.privet", ["a", "b"])
    assert [answer.value.values for answer in answers] == [{"x": 1}, {"y": [True]}]
    assert answers.to_arrow()["value"].to_pylist() == ['{"x":1}', '{"y":[true]}']
