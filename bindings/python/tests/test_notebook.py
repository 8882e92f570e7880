"""A day with a notebook: a large frame is joined, the table changes, somebody presses Ctrl-C."""

import pathlib

CELLS = [
    """
import datetime, signal, threading, time
import pandas, privet

airports = pandas.DataFrame({
    "code": [f"A{number:03}" for number in range(900)],
    "city": [f"city {number % 70}" for number in range(900)],
    "opened": [datetime.date(1950 + number % 70, 1, 1) for number in range(900)],
})
publisher = privet.keygen("publisher.key")
privet.build(airports, "airports.privet", key="code", publisher_key="publisher.key")
server = privet.serve("airports.privet", scheme="download")
db = privet.connect(server, keep=False, publisher=publisher)
""",
    # A tenth of the codes are not in the table, and some are missing.
    """
flights = pandas.DataFrame({"flight": range(100_000)})
flights["to"] = [f"A{number % 1000:03}" if number % 50 else None for number in flights["flight"]]
begun = time.monotonic()
whole = db.join(flights, on="to")
print(f"{time.monotonic() - begun:.1f} s for 100,000 rows")
assert len(whole) == 100_000 and list(whole.columns) == ["flight", "to", "city", "opened"]
assert whole.loc[777, "city"] == "city 7" and whole.loc[777, "opened"].year == 1957
assert whole["city"].isna().sum() == sum(
    number % 50 == 0 or number % 1000 >= 900 for number in range(100_000)
)
""",
    # The table changes. Whoever connects later has it.
    """
changed = pandas.DataFrame({"code": ["A777"], "city": ["elsewhere"],
                            "opened": [datetime.date(2026, 1, 1)]})
told = privet.update("airports.privet", "publisher.key", from_=changed, delete=["A778"])
assert privet.inspect("airports.privet").epoch == told.epoch == 1
until = time.monotonic() + 60
while time.monotonic() < until:
    db.close()
    db = privet.connect(server, keep=False, publisher=publisher)
    if db.table.epoch == 1:
        break
    time.sleep(0.2)
assert db["A777"].values["city"] == "elsewhere" and db.get("A778") is None
""",
    # Somebody presses Ctrl-C in the middle.
    """
pressed = threading.Event()

def press(progress):
    if not pressed.is_set():
        pressed.set()
        signal.raise_signal(signal.SIGINT)

interrupted = False
try:
    db.join(flights, on="to", progress=press)
except KeyboardInterrupt:
    interrupted = True
assert interrupted
""",
    # ... and goes on.
    """
assert db["A001"].values["city"] == "city 1"
rest = db.join(flights.tail(5_000), on="to")
assert rest.index.tolist() == list(range(95_000, 100_000))
assert rest.loc[95_777, "city"] == "elsewhere"
with_frame = rest.merge(db.get_many(["A001"]).to_pandas(), left_on="to", right_on="key")
assert len(with_frame) == 5
db.close()
server.close()
rest
""",
]


def test_a_day_with_a_notebook(tmp_path: pathlib.Path) -> None:
    import nbclient
    import nbformat

    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    printed = "".join(output.get("text", "") for output in notebook.cells[1].outputs)
    print(printed)
    assert "for 100,000 rows" in printed
    assert "elsewhere" not in str(notebook.cells[1].outputs)
    assert "<table" in notebook.cells[-1].outputs[-1].data["text/html"]
