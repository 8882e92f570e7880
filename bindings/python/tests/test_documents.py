"""The tutorial runs as it is printed, also as a notebook."""

import pathlib
import re
import subprocess
import sys

import pytest

TUTORIAL = pathlib.Path(__file__).parents[3] / "docs/python.md"
README = pathlib.Path(__file__).parents[3] / "README.md"


def cells(document: pathlib.Path) -> list:
    return re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.M | re.S)


@pytest.mark.parametrize("document", [README, TUTORIAL], ids=["README", "tutorial"])
def test_the_examples_of_a_document_run(document: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert cells(document)
    (tmp_path / "capitals.csv").write_text("country,capital\nKenya,Nairobi\nPeru,Lima\n")
    program = tmp_path / "program.py"
    program.write_text("\n".join(cells(document)))
    run = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_tutorial_runs_as_a_notebook(tmp_path: pathlib.Path) -> None:
    import nbclient
    import nbformat

    notebook = nbformat.v4.new_notebook()
    code = [nbformat.v4.new_code_cell(cell) for cell in cells(TUTORIAL)]
    shown = "report = privet.build(frame, 'shown.privet', key='name', progress=True)\nreport"
    drawn = "privet.plan(records=1000, record_len=32).plot()"
    notebook.cells = [*code, nbformat.v4.new_code_cell(shown), nbformat.v4.new_code_cell(drawn)]
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    report, plot = notebook.cells[-2].outputs[-1].data, notebook.cells[-1].outputs[-1].data
    assert "<table>" in report["text/html"] and "<svg" in plot["image/svg+xml"]
