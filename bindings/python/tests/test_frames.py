"""Frames, columns and keys: what is taken, what is refused, and what comes back."""

import asyncio
import datetime
import pathlib
import pickle

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest
from conftest import person

import privet
from privet.testing import servers

NAMES = ["person 1", "nobody", "person 2"]


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A table whose keys are whole numbers: 0 to 99, each with its square."""
    path = tmp_path_factory.mktemp("numbered") / "numbered.privet"
    rows = range(100)
    table = pyarrow.table({"id": rows, "square": [row * row for row in rows]})
    privet.build(table, path, key="id", progress=False)
    return path


@pytest.fixture(scope="module")
def db(people: pathlib.Path):
    with privet.serve(people, scheme="download") as server:
        with privet.connect(server, keep=False, progress=False) as db:
            yield db


@pytest.fixture(scope="module")
def squares(numbered: pathlib.Path):
    with privet.serve(numbered, scheme="download") as server:
        with privet.connect(server, keep=False, progress=False) as db:
            yield db


WIDE = pyarrow.table({"name": NAMES, "note": ["a", "b", "c"]})
FRAMES = {
    "pandas": lambda: WIDE.to_pandas(),
    "polars": lambda: polars.from_arrow(WIDE),
    "pyarrow": lambda: WIDE,
    "batch": lambda: WIDE.to_batches()[0],
    "reader": lambda: WIDE.to_reader(),
    "duckdb": lambda: duckdb.from_arrow(WIDE),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_of_several_columns_is_no_list_of_keys(people, tmp_path, kind) -> None:
    key = tmp_path / "publisher.key"
    privet.keygen(key)
    with servers(people, "simplepir") as running:
        with privet.connect(running, keep=False, progress=False) as db:
            with pytest.raises(TypeError, match=r"2 columns .* one column, such as .*'name'"):
                db.get_many(FRAMES[kind]())
            with pytest.raises(TypeError, match="and no "):
                db.get(FRAMES[kind]())
            with pytest.raises(TypeError, match="one column"):
                privet.update(people, key, delete=FRAMES[kind]())
            with pytest.raises(TypeError, match="from_"):
                privet.update(people, key, set=FRAMES[kind]())

            async def stream() -> None:
                async with privet.AsyncClient(running, keep=False, progress=False) as other:
                    with pytest.raises(TypeError, match="one column"):
                        await other.get_many(FRAMES[kind]())
                    with pytest.raises(TypeError, match="one column"):
                        async for _ in other.stream(FRAMES[kind]()):
                            pass

            asyncio.run(stream())
            assert running.observed() == [[]]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_of_one_column_is_that_column(db, kind) -> None:
    narrow = {
        "pandas": lambda frame: frame[["name"]],
        "polars": lambda frame: frame.select("name"),
        "pyarrow": lambda frame: frame.select(["name"]),
        "batch": lambda frame: frame.select(["name"]),
        "reader": lambda frame: WIDE.select(["name"]).to_reader(),
        "duckdb": lambda frame: frame.select("name"),
    }[kind](FRAMES[kind]())
    answers = db.get_many(narrow)
    assert [answer.key for answer in answers] == NAMES
    assert [answer.found for answer in answers] == [True, False, True]


def test_what_has_no_rows_yet_is_to_be_collected(db, tmp_path, people) -> None:
    lazy = polars.from_arrow(WIDE).lazy()
    for take in (
        lambda: db.get_many(lazy),
        lambda: db.get(lazy),
        lambda: db.join(lazy, on="name"),
        lambda: privet.build(lazy, tmp_path / "t.privet", key="name"),
        lambda: privet.build([lazy], tmp_path / "t.privet", key="name"),
        lambda: privet.plan(lazy, key="name"),
        lambda: privet.update(people, "key", from_=lazy),
        lambda: privet.update(people, "key", delete=lazy),
    ):
        with pytest.raises(TypeError, match=r"collect it first"):
            take()
    with pytest.raises(TypeError, match="expression"):
        db.get_many(polars.col("name"))


def test_a_column_is_no_frame(tmp_path) -> None:
    for column in (pandas.Series(NAMES), polars.Series(NAMES), pyarrow.array(NAMES)):
        with pytest.raises(TypeError, match="to_frame"):
            privet.build(column, tmp_path / "t.privet", key="name")
        assert not (tmp_path / "t.privet").exists()


def test_what_is_no_list_of_keys_is_refused(db) -> None:
    for wrong, why in (
        ("person 1", "not one text"),
        (b"person 1", "not one text"),
        (bytearray(b"person 1"), "not one text"),
        ({"person 1": 1}, "dictionary"),
        (5, "and no int"),
        (None, "and no NoneType"),
        (numpy.array([NAMES]), "2 dimensions"),
        ([1.5], "row 0, counted from 0: .* no float"),
        (["person 1", True], "row 1, counted from 0: .* no bool"),
    ):
        with pytest.raises(TypeError, match=why):
            db.get_many(wrong)
    with pytest.raises(TypeError, match="`get_many` takes several"):
        db.get(pandas.Series(NAMES))


MISSING = {
    "list": ([1, 2, 3, None], "None"),
    "nan": ([1, 2, 3, float("nan")], "NaN"),
    "pandas": (pandas.Series([1, 2, 3, None], dtype="Int64"), "NA"),
    "floats": (pandas.Series([1, 2, 3, None]), "NaN"),
    "text": (pandas.Series(["1", "2", "3", None]), "None|NaN"),
    "dates": (pandas.Series([datetime.date(2020, 1, 1)] * 3 + [pandas.NaT]), "NaT"),
    "polars": (polars.Series([1, 2, 3, None]), "None"),
    "pyarrow": (pyarrow.array([1, 2, 3, None]), "None"),
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_key_names_its_row_and_nothing_is_sent(numbered, kind) -> None:
    keys, name = MISSING[kind]
    with servers(numbered, "simplepir") as running:
        with privet.connect(running, keep=False, progress=False) as db:
            with pytest.raises(TypeError, match=rf"row 3, counted from 0, is missing \(({name})\)"):
                db.get_many(keys)
            with pytest.raises(TypeError, match="row 1, counted from 0: a key has half of a surr"):
                db.get_many(["1", "\ud800"])
            assert running.observed() == [[]]


INTEGERS = [
    ([7, 200, 9], int, pyarrow.int64()),
    ((7, 200, 9), int, pyarrow.int64()),
    (range(7, 10), int, pyarrow.int64()),
    (numpy.array([7, 200, 9], dtype="int32"), int, pyarrow.int64()),
    (list(numpy.array([7, 200, 9])), numpy.int64, pyarrow.int64()),
    (pandas.Series([7, 200, 9], dtype="int32"), int, pyarrow.int32()),
    (pandas.Index([7, 200, 9]), int, pyarrow.int64()),
    (pandas.Series([7, 200, 9], dtype="Int16"), int, pyarrow.int16()),
    (polars.Series([7, 200, 9], dtype=polars.UInt16), int, pyarrow.uint16()),
    (pyarrow.array([7, 200, 9], pyarrow.uint8()), int, pyarrow.uint8()),
    (pyarrow.chunked_array([[7], [200, 9]]), int, pyarrow.int64()),
    ([7, 2**63, 9], int, pyarrow.uint64()),
]


@pytest.mark.parametrize("keys, kind, column", INTEGERS)
def test_whole_numbers_come_back_as_given(squares, keys, kind, column) -> None:
    answers = squares.get_many(keys)
    assert [answer.key for answer in answers] == list(keys) if not hasattr(keys, "to_pylist") \
        else keys.to_pylist()
    assert all(type(answer.key) is kind for answer in answers)
    assert [answer.found for answer in answers][::2] == [True, True]
    frame = answers.to_arrow()
    assert frame.schema.field("key").type == column
    assert frame["square"].to_pylist()[::2] == [49, 81]
    assert answers.to_polars()["key"].to_list() == [answer.key for answer in answers]


def test_floats_are_keys_only_if_they_are_whole(squares) -> None:
    answers = squares.get_many(pandas.Series([7.0, 200.0]))
    assert [answer.found for answer in answers] == [True, False]
    assert answers.to_arrow()["key"].to_pylist() == [7.0, 200.0]
    assert squares[numpy.float32(9)].values == {"square": 81}
    for wrong in (7.5, float("inf"), 2.0**60, numpy.float32(0.5)):
        with pytest.raises(TypeError, match="row 1, counted from 0: .*and no float"):
            squares.get_many([7.0, wrong])


def test_other_keys_come_back_as_given(db, people) -> None:
    days = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]
    for keys, column in (
        (["person 1", "x"], pyarrow.string()),
        ([b"person 1", b"\xff"], pyarrow.binary()),
        (days, pyarrow.date32()),
        (polars.Series(days), pyarrow.date32()),
        (pandas.Series(days), pyarrow.date32()),
        (polars.Series(["person 1", "x"]), pyarrow.large_string()),
        (["person 1", b"x", 7], pyarrow.binary()),
    ):
        answers = db.get_many(keys)
        assert [answer.key for answer in answers] == list(keys)
        assert answers.to_arrow().schema.field("key").type == column
    category = pandas.Series(["person 1", "x"], dtype="category")
    assert db.get_many(category).to_pandas()["key"].tolist() == ["person 1", "x"]
    # Whoever changes the column later does not change the answers.
    column = pandas.Series(["person 1", "x"])
    answers = db.get_many(column)
    column[0] = "other"
    assert answers.to_pandas()["key"].tolist() == ["person 1", "x"]
    empty = db.get_many(polars.Series([], dtype=polars.String))
    assert len(empty) == 0 and empty.to_polars().shape[0] == 0

    async def stream() -> list:
        with privet.serve(people, scheme="download") as server:
            async with privet.AsyncClient(server, keep=False, progress=False) as other:
                return [key async for key, _ in other.stream([b"person 1", "x", 7])]

    assert asyncio.run(stream()) == [b"person 1", "x", 7]


def test_answers_join_back(squares) -> None:
    mine = pandas.DataFrame({"id": [3, 200, 5], "name": ["c", "x", "e"]})
    back = mine.merge(squares.get_many(mine["id"]).to_pandas(), left_on="id", right_on="key")
    assert back["square"].tolist()[::2] == [9, 25]
    mine = polars.DataFrame({"id": [3, 200, 5]}, schema={"id": polars.UInt8})
    back = mine.join(squares.get_many(mine["id"]).to_polars(), left_on="id", right_on="key")
    assert back["square"].to_list() == [9, None, 25]


COLUMNS = {"id": [3, 200, None, 5], "square": ["a", "b", "c", "d"]}


def test_join_adds_the_columns_of_the_values(squares) -> None:
    expected = [9, None, None, 25]
    frame = polars.DataFrame(COLUMNS)
    whole = squares.join(frame, on="id")
    assert whole.columns == ["id", "square", "square_value"]
    assert whole["square_value"].to_list() == expected and whole[:, :2].equals(frame)
    assert squares.join(frame, on="id", how="inner")["id"].to_list() == [3, 5]

    # Here pandas makes floats of the numbers, because one is missing.
    frame = pandas.DataFrame(COLUMNS, index=[4, 4, 2, 1])
    assert frame["id"].dtype == "float64"
    whole = squares.join(frame, on="id", suffix="_2")
    assert list(whole.columns) == ["id", "square", "square_2"]
    assert whole.index.tolist() == [4, 4, 2, 1]
    assert whole[["id", "square"]].equals(frame)
    assert whole["square_2"].astype("Int64").fillna(-1).tolist() == [9, -1, -1, 25]
    assert squares.join(frame, on="id", how="inner")["id"].tolist() == [3, 5]
    by_index = pandas.DataFrame({"n": [1, 2]}, index=pandas.Index([3, 5], name="id"))
    assert squares.join(by_index, on="id")["square"].tolist() == [9, 25]

    frame = pyarrow.table(COLUMNS)
    whole = squares.join(frame, on="id")
    assert whole.column_names == ["id", "square", "square_value"]
    assert whole["square_value"].to_pylist() == expected and whole.select([0, 1]) == frame
    assert squares.join(frame, on="id", how="inner")["id"].to_pylist() == [3, 5]

    for wrong, why in (
        (lambda: squares.join(frame, on="no"), "no column 'no'"),
        (lambda: squares.join([1, 2], on="id"), "and no list"),
        (lambda: squares.join(frame, on="id", how="outer"), "'left' or 'inner'"),
        (lambda: squares.join(frame, on="id", suffix=""), "must not be empty"),
        (lambda: squares.join(frame, on="id", pad_to=2), "pad_to"),
    ):
        with pytest.raises((TypeError, ValueError), match=why):
            wrong()


def test_join_makes_as_many_rows_as_keys_have_values(tmp_path) -> None:
    pets = pyarrow.table({"owner": ["ada", "bob", "ada"], "pet": ["cat", "dog", "owl"]})
    privet.build(pets, tmp_path / "pets.privet", key="owner", on_duplicate="all")
    people = {"name": ["ada", "eve", "bob"], "age": [36, 40, 7]}
    with privet.serve(tmp_path / "pets.privet") as server:
        with privet.connect(server, keep=False, progress=False) as db:
            for make in (pandas.DataFrame, polars.DataFrame, pyarrow.table):
                frame = make(people)
                whole = pyarrow.table(db.join(frame, on="name")).to_pydict()
                assert whole["name"] == ["ada", "ada", "eve", "bob"]
                assert whole["pet"] == ["cat", "owl", None, "dog"]
                inner = pyarrow.table(db.join(frame, on="name", how="inner")).to_pydict()
                assert inner["age"] == [36, 36, 7]


def test_a_join_looks_every_row_up_whatever_is_missing(numbered) -> None:
    with servers(numbered, "simplepir") as running:
        with privet.connect(running, keep=False, progress=False) as db:
            seen = []
            for ids in ([1, 2, 3, 4], [None] * 4, [1, 1, 500, None]):
                frame = polars.DataFrame({"id": ids}, schema={"id": polars.Int64})
                db.join(frame, on="id", pad_to=6)
                seen.append([len(query) for query in running.observed()[0]])
            assert seen[0] == seen[1] == seen[2] and len(seen[0]) == 6

            async def other() -> list:
                async with privet.AsyncClient(running, keep=False, progress=False) as client:
                    frame = polars.DataFrame({"id": [4, None, 200]})
                    return (await client.join(frame, on="id"))["square"].to_list()

            assert asyncio.run(other()) == [16, None, None]


def test_answers_can_be_pickled(db, squares) -> None:
    for keys in (["person 1", "nobody"], polars.Series(["person 1", "nobody"])):
        answers = db.get_many(keys)
        again = pickle.loads(pickle.dumps(answers))
        assert [answer.key for answer in again] == ["person 1", "nobody"]
        assert again[0].value.values == person(1) and not again[1].found
        assert again.to_arrow() == answers.to_arrow()
        assert pickle.loads(pickle.dumps(answers[0])) == answers[0]
    failed = privet.Answers(answers._keys, [privet.PeerError("late"), None], None, None)
    assert str(pickle.loads(pickle.dumps(failed)).errors[0]) == "late"
    assert isinstance(pickle.loads(pickle.dumps(privet.NotFound())), privet.NotFound)
    assert pickle.loads(pickle.dumps(squares.get_many([2]))).to_arrow()["key"].to_pylist() == [2]
