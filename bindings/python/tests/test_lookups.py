"""Lookups by every scheme, and what servers see of them."""

import pathlib

import pytest
from conftest import ROWS, person

import privet
from privet.testing import servers

SCHEMES = privet.scheme_names()


def test_there_are_all_schemes() -> None:
    assert len(SCHEMES) >= 17 and "simplepir" in SCHEMES


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_finds_and_misses(people: pathlib.Path, scheme: str) -> None:
    running = servers(people, scheme)
    with running, privet.connect(running, keep=False, progress=False) as db:
        assert db.scheme == scheme
        assert db["person 7"].values == person(7)
        assert db.get("nobody") is None
        with pytest.raises(KeyError) as caught:
            db["nobody else"]
        assert "nobody" not in str(caught.value)
        answers = db.get_many([f"person {row}" for row in (3, 3, 39)] + ["none"])
        values = [value and value.values for value in answers.values()]
        assert values == [person(3), person(3), person(39), None]
        assert db.stats.lookups == 7
        # The client of one scheme has the table, and asks nothing more.
        assert (running.observed() == [[]]) == (scheme == "download")


def test_the_number_and_lengths_of_queries_do_not_depend_on_the_keys(people: pathlib.Path) -> None:
    with servers(people, "dpf") as running:
        with privet.connect(running, keep=False, progress=False) as db:
            shapes = set()
            for keys in (
                [f"person {row}" for row in range(16)],
                ["person 1"] * 16,
                ["nobody", "nobody at all"],
                [],
                [b"\xff" * 300, "person 2"],
            ):
                answers = db.get_many(keys, pad_to=16)
                assert len(answers) == len(keys)
                seen = running.observed()
                shapes.add(tuple(tuple(len(query) for query in one) for one in seen))
            assert len(shapes) == 1
            assert [len(one) for one in shapes.pop()] == [16, 16]
            # What pads is not the only thing that is counted: a lookup more is seen.
            db.get_many(["person 1"] * 3)
            assert [len(one) for one in running.observed()] == [3, 3]
            with pytest.raises(privet.UsageError, match="pad_to"):
                db.get_many(["a"] * 17, pad_to=16)
            with pytest.raises(TypeError):
                db.get_many(["a", 3.5], pad_to=16)
            with pytest.raises(TypeError):
                db.get_many("person 1")
            assert running.observed() == [[], []]


def test_frames_have_a_column_for_each_column(people: pathlib.Path) -> None:
    with privet.serve(people) as server, privet.connect(server, keep=False) as db:
        assert db.table.columns == (("number", "integer"), ("city", "text"))
        assert db.table.by_key and db.table.records > 0 and db.table.name == "people"
        frame = db.get_many([f"person {row}" for row in range(ROWS)]).to_polars()
        assert frame["number"].to_list() == list(range(ROWS))
        assert frame["city"].to_list() == [f"city {row % 7}" for row in range(ROWS)]
        empty = db.get_many([]).to_polars()
        assert empty.shape == (0, 5) and empty.schema["number"] == frame.schema["number"]
        many = db.get_many(["person 1"] * 40_000).to_arrow()
        assert many.num_rows == 40_000 and many["number"].to_pylist() == [1] * 40_000


def test_state_is_kept_where_it_is_said(people: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with privet.serve(people, scheme="simplepir") as server:
        for stored in (False, True):
            with privet.connect(server, state=tmp_path / "state") as db:
                assert db.get("person 1") is not None
                assert db.stats.hint_was_stored is stored
        with pytest.raises(privet.IntegrityError):
            privet.connect(server, keep=False, root="00" * 32)
        with pytest.raises(privet.UsageError, match="no-such-scheme"):
            privet.connect(server, keep=False, scheme="no-such-scheme")


def test_a_parquet_file_comes_back_row_by_row(tmp_path: pathlib.Path) -> None:
    samples = pathlib.Path(__file__).parents[3] / "crates/table/samples"
    import pyarrow.parquet

    source = pyarrow.parquet.read_table(samples / "texts.parquet")
    privet.build(samples / "texts.parquet", tmp_path / "t.privet")
    with privet.serve(tmp_path / "t.privet") as server, privet.connect(server, keep=False) as db:
        frame = db.get_many(range(source.num_rows)).to_arrow()
    for name in source.column_names:
        assert frame[name].to_pylist() == source[name].to_pylist()


def test_keys_of_bytes_are_given_as_bytes_or_in_the_tables_form(tmp_path: pathlib.Path) -> None:
    import pyarrow

    keys = [b"\x00\x0a", b"\xff\xfe", b"text"]
    path = tmp_path / "bytes.privet"
    privet.build(pyarrow.table({"k": keys, "v": [1, 2, 3]}), path, key="k", progress=False)
    with servers(path, "dpf") as running:
        with privet.connect(running, keep=False, progress=False) as db:
            for key, value in zip(keys, (1, 2, 3), strict=True):
                assert db[key].values == {"v": value}
                assert db[f"0x{key.hex()}"].values == {"v": value}
            running.observed()
            # What is no key is told as a mistake, and its lookup is made like any other.
            with pytest.raises(ValueError, match="hexadecimal") as caught:
                db["text"]
            assert isinstance(caught.value, privet.UsageError) and "text" not in str(caught.value)
            assert [len(one) for one in running.observed()] == [1, 1]
            answers = db.get_many(["text", "FFFE", "0a"])
            assert [answer.found for answer in answers] == [False, True, False]
            assert [answer.error is not None for answer in answers] == [True, False, False]
            assert [len(one) for one in running.observed()] == [3, 3]
    networks = pyarrow.table({"network": ["1.0.0.0/24"], "v": [1]})
    path = tmp_path / "networks.privet"
    privet.build(networks, path, range_from="network", progress=False)
    with servers(path, "dpf") as running:
        with privet.connect(running, keep=False, progress=False) as db:
            assert db["1.0.0.7"].values == {"v": 1} and db.get("1.0.1.0") is None
            running.observed()
            for key in ("abc", b"1.0.0.0/24"):
                with pytest.raises(privet.UsageError, match="this is"):
                    db.get(key)
            assert [len(one) for one in running.observed()] == [2, 2]
