import pathlib

import pytest

import privet
from privet.testing import privet_servers  # noqa: F401

ROWS = 40


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A table by key: `person 0` to `person 39`, each with a number and a city."""
    import pyarrow

    table = pyarrow.table({
        "name": [f"person {row}" for row in range(ROWS)],
        "number": range(ROWS),
        "city": [f"city {row % 7}" for row in range(ROWS)],
    })
    path = tmp_path_factory.mktemp("people") / "people.privet"
    privet.build(table, path, key="name", progress=False)
    return path


def person(row: int) -> dict:
    return {"number": row, "city": f"city {row % 7}"}
