"""What people expect of a package for Python."""

import asyncio
import importlib.metadata
import multiprocessing
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

import pytest
from conftest import person

import privet
from privet import _errors
from privet._keys import Keys
from privet.testing import servers

SECRET = "a key that nobody should read"


def test_exceptions_are_also_what_a_person_would_catch() -> None:
    for kind, also in {
        "UsageError": ValueError,
        "UnavailableError": ConnectionError,
        "NotFound": KeyError,
    }.items():
        assert issubclass(getattr(_errors, kind), (also,))
        assert issubclass(getattr(_errors, kind), privet.PrivetError)


FINAL = [privet.IntegrityError, privet.SelectiveError, privet.CorruptedError]
"""After these nothing may be tried again."""


def test_every_exception_says_whether_it_is_final() -> None:
    kinds = [kind for kind in vars(_errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in kinds if issubclass(kind, privet.PrivetError)]
    assert [kind for kind in kinds if kind().is_final] == FINAL and len(kinds) > 8


@pytest.mark.parametrize("final", FINAL)
def test_what_must_not_be_tried_again_is_hidden_by_nothing_else(final) -> None:
    # Code that tries again after errors of the network does not catch it.
    assert not issubclass(final, (OSError, TimeoutError, ValueError, LookupError))
    others = [privet.UnavailableError, privet.ExhaustedError, privet.PeerError]
    for order in ([final, *others], [*others, final], [*others, final, *others]):
        outcomes = [kind() for kind in order]
        answers = privet.Answers(Keys(["k"] * len(outcomes), [], []), outcomes, None, None)
        assert type(answers.errors[0]) is final and len(answers.errors) == len(outcomes)
        # Of several that are final, the first is told.
        twice = [*outcomes, privet.IntegrityError()]
        assert type(privet.Answers(answers._keys, twice, None, None).errors[0]) is final
        with pytest.raises(final):
            answers.values()


def test_no_message_and_no_repr_has_a_key_or_a_value(people: pathlib.Path, capfd) -> None:
    told = []
    with servers(people, "simplepir") as running:
        db = privet.connect(running, keep=False, progress=False)
        several = ["person 1", SECRET + "\ud800"]
        for wrong in (
            lambda: db[SECRET],
            lambda: db.get(SECRET.split()),
            lambda: db.get({SECRET}),
            lambda: db.get(SECRET + "\ud800"),
            lambda: db.get_many(several),
            lambda: privet.Value(SECRET.encode(), None).json(),
            lambda: privet.Value(SECRET.encode() + b"\xff", None).text,
            lambda: privet.Value(SECRET.encode(), (False, ())).values,
        ):
            with pytest.raises((KeyError, TypeError, ValueError)) as caught:
                wrong()
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None or caught.value.__suppress_context__
            told += traceback.format_exception_only(caught.value), caught.value.args
        answers = db.get_many([SECRET, "person 1"])
        told += [db, answers, answers[1], answers[1].value, db.stats, db.table]
        client = privet.AsyncClient(running.urls)
        told.append(client)
    # The servers are gone.
    with pytest.raises(privet.UnavailableError) as caught:
        privet.connect(running.urls, keep=False, progress=False, max_time=0.5)
    told.append(caught.value)
    db.close()
    for wrong in (lambda: db[SECRET], lambda: db.get_many([SECRET])):
        with pytest.raises(privet.UsageError, match="closed") as caught:
            wrong()
        told.append(caught.value)
    shown = "".join(f"{one!r}{one}" for one in told) + "".join(capfd.readouterr())
    assert len(shown) > 100
    for secret in (SECRET, "nobody should", "city 1"):
        assert secret not in shown


def test_asyncio_in_debug_mode_logs_no_key_and_no_value(people: pathlib.Path, caplog) -> None:
    async def look_up(url: str) -> None:
        asyncio.get_running_loop().slow_callback_duration = 0
        async with privet.AsyncClient(url, keep=False, progress=False) as db:
            assert (await db.get_many(["person 1"] * 5))[0].value.values == person(1)

    with servers(people, "simplepir") as running:
        asyncio.run(look_up(running.urls[0]), debug=True)
    assert "Executing" in caplog.text and "reply" in caplog.text
    assert "person 1" not in caplog.text and "city 1" not in caplog.text


def _hanging_server() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    return listener


def _interrupted(work) -> float:
    """Seconds from Ctrl-C to the end of the work."""
    sent = []

    def interrupt() -> None:
        time.sleep(0.5)
        sent.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        work()
    return time.monotonic() - sent[0]


def test_ctrl_c_ends_every_wait(people: pathlib.Path) -> None:
    with _hanging_server() as hanging:
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        # The promise is 0.2 s, and other processes have the machine too.
        assert _interrupted(lambda: privet.connect(url, keep=False, progress=False)) < 1
    running = servers(people, "simplepir")
    db = privet.connect(running, keep=False, progress=False)
    running.close()
    assert _interrupted(lambda: db.get("person 1")) < 1
    assert _interrupted(lambda: db.get_many(["person 1"] * 3)) < 1
    assert _interrupted(db.finish) < 1
    db.close()


def test_a_forked_process_is_told_what_to_do(people: pathlib.Path) -> None:
    with servers(people, "simplepir") as running:
        with privet.connect(running, keep=False, progress=False) as db:
            queue = multiprocessing.get_context("fork").SimpleQueue()

            def child() -> None:
                for call in (lambda: db.get("person 1"), db.finish, lambda: db.stats):
                    try:
                        call()
                    except Exception as error:
                        queue.put((type(error).__name__, str(error)))
                db.close()
                with privet.connect(running.urls, keep=False, progress=False) as own:
                    queue.put(("own", str(own["person 2"].values == person(2))))

            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
            told = [queue.get() for _ in range(4)]
            process.join(20)
            assert process.exitcode == 0
            assert all(name == "UsageError" and "forked" in text for name, text in told[:3]), told
            assert told[3] == ("own", "True")
            # The parent goes on.
            assert db["person 3"].values == person(3)
            with pytest.raises(privet.UsageError, match="process"):
                pickle.dumps(db)


def test_async_lookups_are_those_of_the_other_client(people: pathlib.Path) -> None:
    async def look_up() -> None:
        with servers(people, "dpf") as running:
            async with privet.AsyncClient(running, keep=False, progress=False) as db:
                assert (await db.get("person 5")).values == person(5)
                assert await db.get("nobody") is None
                answers = await db.get_many(["person 1", "none"], pad_to=8)
                assert [a.value and a.value.values for a in answers] == [person(1), None]
                assert [len(seen) for seen in running.observed()] == [10, 10]
                names = [f"person {row % 40}" for row in range(200)]
                found = [(key, value.values) async for key, value in db.stream(names)]
                assert found == [(name, person(int(name.split()[1]))) for name in names]
                running.observed()
                with pytest.raises(TypeError):
                    await db.get(1.5)
                # A mistake in one key sends none of them.
                with pytest.raises(TypeError):
                    await db.get_many(["person 1", "\ud800"], pad_to=4)
                assert running.observed() == [[], []]
                assert db.scheme == "dpf" and db.stats.lookups == 210 and db.table.by_key
            with pytest.raises(privet.UsageError, match="closed"):
                await db.get("person 1")
            with pytest.raises(privet.UsageError, match="async with"):
                await privet.AsyncClient(running).get("person 1")

    asyncio.run(look_up())


def test_cancelling_changes_nothing_that_is_sent(people: pathlib.Path) -> None:
    async def look_up() -> None:
        with servers(people, "dpf") as running:
            async with privet.AsyncClient(running, keep=False, progress=False) as db:
                shapes = []
                for cancels in (False, True):
                    tasks = [asyncio.ensure_future(db.get(f"person {row}")) for row in range(9)]
                    tasks.append(asyncio.ensure_future(db.get_many(["person 1"] * 5, pad_to=7)))
                    await asyncio.sleep(0)
                    for task in tasks if cancels else []:
                        task.cancel()
                    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
                    cancelled = [isinstance(one, asyncio.CancelledError) for one in outcomes]
                    assert all(cancelled) if cancels else not any(cancelled)
                    await db.finish()
                    seen = running.observed()
                    shapes.append([[len(query) for query in one] for one in seen])
                assert shapes[0] == shapes[1]
                assert [len(one) for one in shapes[0]] == [16, 16]

    asyncio.run(look_up())


def test_a_loop_that_ends_before_its_lookups_harms_nobody(people: pathlib.Path) -> None:
    with servers(people, "simplepir") as running:
        db = privet.AsyncClient(running, keep=False, progress=False)

        async def begin() -> None:
            await db.open()
            for _ in range(20):
                db._begin(["person 1"])

        asyncio.run(begin())

        async def goes_on() -> None:
            assert (await db.get("person 2")).values == person(2)
            await db.aclose()

        asyncio.run(goes_on())


def test_threads_share_a_client(people: pathlib.Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with servers(people, "simplepir") as running:
        with privet.connect(running, keep=False, progress=False) as db:
            with ThreadPoolExecutor(8) as pool:
                rows = [row % 40 for row in range(160)]
                found = list(pool.map(lambda row: db[f"person {row}"].values, rows))
            assert found == [person(row) for row in rows]


def test_a_million_lookups_in_one_process_do_not_grow_it(people: pathlib.Path) -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    keys = [f"person {row % 50}" for row in range(10_000)]
    with servers(people, "download") as running:
        with privet.connect(running, keep=False, progress=False) as db:
            before = 0
            for times in range(100):
                answers = db.get_many(keys)
                if times == 10:
                    before = resident()
            after = resident()
            assert db.stats.lookups == 1_000_000
            found = [answer.found for answer in answers]
            assert found == [row % 50 < 40 for row in range(10_000)]
            assert answers[7].value.values == person(7)
    print(f"{before >> 20} MiB after 110,000 lookups, {after >> 20} MiB after 1,000,000")
    assert after < before + (16 << 20)


def test_the_command_comes_along(people: pathlib.Path, tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-m", "privet"]
    run = subprocess.run([*command, "inspect", "--json", people], capture_output=True, text=True)
    assert run.returncode == 0 and '"keys":40' in run.stdout, run
    run = subprocess.run([*command, "inspect", tmp_path / "no"], capture_output=True, text=True)
    assert run.returncode == 2 and run.stderr.startswith("privet: "), run
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="privet")
    assert script.value == "privet.__main__:main" and callable(script.load())
    run = subprocess.run([*command, "--version"], capture_output=True, text=True)
    assert run.stdout == f"privet {privet.__version__}\n", run
    demo = subprocess.run([*command, "demo"], capture_output=True, text=True, timeout=120)
    assert demo.returncode == 0 and "apir-dpf" in demo.stdout, demo


def test_plans_and_measurements(people: pathlib.Path, tmp_path: pathlib.Path) -> None:
    plan = privet.plan(people, lookups=1_000, servers=2, client="browser")
    assert plan.report["used"]["client"] == "browser" and plan.recommendation.startswith("Take ")
    assert len(plan.to_polars()) == len(list(plan)) == len(plan.to_pandas()) > 5
    plan.plot().save(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text().startswith("<svg") and plan.plot()._repr_svg_()
    for name in ("plan.png", "plan.pdf", "plan"):
        with pytest.raises(ValueError, match=r"saved as \.svg"):
            plan.plot().save(tmp_path / name)
        assert not (tmp_path / name).exists()
    import polars

    frame = polars.DataFrame({"k": ["a", "b"], "v": [1, 2]})
    assert privet.plan(frame, key="k").report["records"] == 2
    assert privet.plan(records=1 << 20, record_len=32).report["record_len"] == 32
    with pytest.raises(privet.UsageError, match="not provided:\\s+`record_len`$"):
        privet.plan(records=1 << 20)
    with pytest.raises(privet.UsageError, match="^unexpected argument `no_such` found") as caught:
        privet.plan(records=1 << 20, record_len=32, no_such=True)
    assert "Usage" not in str(caught.value) and "help" not in str(caught.value)
    with pytest.raises(privet.UsageError, match="'none' for `record_len`: ") as caught:
        privet.plan(records=1 << 20, record_len="none")
    assert "Usage" not in str(caught.value) and "help" not in str(caught.value)
    report = privet.bench("dpf", records=1 << 12, record_len=32, queries=4)
    assert report["scheme"] == "dpf"


def test_options_of_plans_and_measurements(tmp_path: pathlib.Path) -> None:
    machine = pathlib.Path(__file__).parents[3] / "crates/measure/src/machine/typical.json"
    given = {"keys": "5M", "value_len": "1KiB", "lookups": "1k", "prices": "core=1"}
    plan = privet.plan(**given, servers=2, machine=machine)
    assert plan.report["used"]["lookups_per_day"] == 1000
    assert plan.report["used"]["prices"]["core"] == 1.0 and plan.report["records"] == 625_000
    rows = tmp_path / "rows.txt"
    rows.write_text("k;v\na;1\nb;2\n")
    plan = privet.plan(
        rows, key="k", delimiter=";", normalize=["trim", "nfc"], machine=machine, may_lie=False
    )
    built = f"privet build {rows} '--delimiter=;' --key=k '--normalize=trim,nfc'"
    assert plan.report["commands"][0] == f"{built} -o {rows.with_suffix('.privet')}"
    files = privet.plan([rows, rows], key="k", delimiter=";", multi=True, machine=machine)
    assert files.report["records"] == plan.report["records"]
    csv = tmp_path / "rows.csv"
    csv.write_text('k,"last, first",v\na,"A, B",1\n')
    for said, typed in [("all", "--multi"), ("last", "--on-duplicate=last")]:
        plan = privet.plan(csv, key="k", on_duplicate=said, machine=machine)
        assert plan.report["commands"][0].split()[3:5] == ["--key=k", typed]
    # The command would read two names, so no command builds this table.
    plan = privet.plan(csv, key="k", value=["last, first"], machine=machine)
    assert plan.report["commands"][0].startswith("privet bench ")
    shape = {"records": 64, "record_len": 8}
    wrong: list[tuple[dict[str, object], str]] = [
        ({"keys": 5}, "`keys` needs .*: `value_len`$"),
        ({**shape, "lookup": 3}, "unexpected argument `lookup` found; did you mean `lookups`"),
        ({**shape, "parts": 2}, "`parts` needs .*: `key` or `range_from` or `keys`$"),
        ({**shape, "nested": True}, "`nested` needs .*: `range_from`$"),
        ({**shape, "keys": 5, "value_len": 9}, "`keys` cannot be used with `records`"),
        ({**shape, "machine": "m", "save_machine": "n"}, "`machine` cannot .* `save_machine`"),
        ({**shape, "servers": 14}, "'14' for `servers`: a number from 1 to 13"),
        ({**shape, "client": "phone"}, "'phone' for `client`: .*native, python, browser"),
        ({**shape, "may_lie": "yes"}, "`may_lie` is True or False"),
        ({**shape, "lookups": True}, "`lookups` needs a value"),
        ({**shape, "data": rows}, "a plan is for data, or for `keys`"),
        ({}, "a plan is for data, or for `keys`"),
    ]
    for options, why in wrong:
        with pytest.raises(privet.UsageError, match=why):
            privet.plan(**options)

    measured = privet.bench("harmony", **shape, queries=1, segment_records=8, kernel="portable")
    assert (measured["kernel"], measured["queries"]) == ("portable", 1)
    assert privet.bench("plain", records="1k", record_len=8)["records"] == 1000
    wrong = [
        ({"segment_records": 8}, "segment-records is for harmony alone"),
        ({"batch": 0}, "'0' for `batch`"),
        ({"threads": 0}, "'0' for `threads`: a number from 1 to 1024"),
        ({"reference_string": tmp_path / "none"}, "reference-string is for tapir-pp alone"),
        ({"records": None}, "`record_len` needs .*: `records`$"),
    ]
    for options, why in wrong:
        with pytest.raises(privet.UsageError, match=why):
            privet.bench("dpf", **{**shape, **options})
    with pytest.raises(privet.UsageError, match="`scheme`: there is no scheme .*dpf"):
        privet.bench("fpd", **shape)
    with pytest.raises(privet.UsageError, match="did you mean `simplepir`"):
        privet.bench("simplpir", **shape)


def test_progress_of_a_client_is_told(people: pathlib.Path) -> None:
    told = []
    with servers(people, "simplepir") as running:
        with privet.connect(running, keep=False, progress=told.append) as db:
            db.get_many(["person 1"] * 4)
    assert any("hint" in one.what for one in told)
    assert told[-1].what == "looking up" and told[-1].done == told[-1].total == 4


def test_bars_show_long_work_and_notices(capsys, monkeypatch) -> None:
    from privet import _progress

    with _progress.reporter(True) as bars:
        bars.tell()("reading", 1, 10)
        bars.tell()("the table was updated", 0, 0)
    assert capsys.readouterr().err == "privet: the table was updated\n"
    monkeypatch.setattr(_progress, "_FIRST_SHOWN", 0)
    monkeypatch.setattr(_progress, "_BETWEEN", 0)
    with _progress.reporter(True) as bars:
        bars.tell()("reading", 5, 10)
        bars.tell()("packing", 0, None)
    shown = capsys.readouterr().err
    assert "reading [###############               ]  50%" in shown and "\rpacking" in shown
    assert shown.endswith(" \r")
    assert _progress.reporter(None).tell() is None and _progress.reporter(False).tell() is None


def test_the_fixture_ends_its_servers(people: pathlib.Path, privet_servers) -> None:
    running = privet_servers(people, "simplepir", count=2)
    assert len(running.urls) == 2 and running.scheme == "simplepir"
    with privet.connect(running.urls[1], keep=False, progress=False) as db:
        assert db["person 1"].values == person(1)
    assert [len(seen) for seen in running.observed()] == [0, 1]


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = (
        "import sys, privet\n"
        "heavy = {'pytest', 'pandas', 'polars', 'pyarrow', 'numpy', 'IPython', 'duckdb'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "assert privet.testing.servers\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
