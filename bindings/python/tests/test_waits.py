"""Waits end: at Ctrl-C, after a time, and when a server is gone. The next lookup goes first."""

import asyncio
import pathlib
import signal
import threading
import time

import pytest
from conftest import person
from relay import Relay

import privet
from privet.testing import servers

MANY = 20_000


@pytest.mark.parametrize("scheme", ["simplepir", "dpf", "dummy-subsets"])
def test_after_ctrl_c_the_next_lookup_goes_first(people: pathlib.Path, scheme: str) -> None:
    interrupted = threading.Event()

    def interrupt(told: privet.Progress) -> None:
        if told.what == "looking up" and not interrupted.is_set():
            interrupted.set()
            # At the next moment of this thread, as when a person presses the keys.
            signal.raise_signal(signal.SIGINT)

    with servers(people, scheme) as running:
        with privet.connect(running, keep=False, progress=False) as db:
            with pytest.raises(KeyboardInterrupt):
                db.get_many(["person 1"] * MANY, progress=interrupt)
            begun = time.monotonic()
            assert db["person 2"].values == person(2)
            took = time.monotonic() - begun
            db.finish()
            seen = [len(one) for one in running.observed()]
            print(f"{scheme}: the next lookup took {took:.2f} s, {seen} queries in all")
            # What was begun is finished, and the rest never begins.
            assert all(one < MANY / 4 for one in seen), seen
            assert set(seen) == {db.stats.lookups}


def test_ctrl_c_in_a_wait_withdraws_the_batch_too(people: pathlib.Path) -> None:
    with servers(people, "simplepir") as running, Relay(running.urls[0]) as relay:
        with privet.connect(relay.url, keep=False, progress=False) as db:
            relay.passes.clear()
            threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
            with pytest.raises(KeyboardInterrupt):
                db.get_many(["person 1"] * 500)
            relay.passes.set()
            assert db["person 2"].values == person(2)
            assert 1 <= len(running.observed()[0]) < 100


def test_no_other_exception_withdraws_anything(people: pathlib.Path) -> None:
    """It may follow from what came. So servers see all lookups."""

    def fails(told: privet.Progress) -> None:
        raise LookupError

    with servers(people, "simplepir") as running:
        with privet.connect(running, keep=False, progress=False) as db:
            with pytest.raises(LookupError):
                db.get_many(["person 1"] * 300, progress=fails)
            assert db["person 2"].values == person(2)
            assert len(running.observed()[0]) == 301


def test_a_call_ends_in_its_time_and_the_next_goes_first(people: pathlib.Path) -> None:
    with servers(people, "simplepir") as running, Relay(running.urls[0]) as relay:
        with privet.connect(relay.url, keep=False, progress=False) as db:
            relay.passes.clear()
            with pytest.raises(privet.UnavailableError, match="within the 0.5 s of `timeout`"):
                db.get("person 1", timeout=0.5)
            answers = db.get_many(["person 1"] * 500, timeout=0.5)
            assert len(answers) == len(answers.errors) == 500
            assert "0.5 s" in str(answers.errors[0])
            relay.passes.set()
            assert db.get("person 2", timeout=60).values == person(2)
            assert db.get_many(["person 1"] * 9, timeout=60).errors == []
            assert len(running.observed()[0]) < 100
            for wrong in (0, -1, float("nan")):
                with pytest.raises(privet.UsageError, match="number of seconds"):
                    db.get("person 1", timeout=wrong)
                with pytest.raises(privet.UsageError, match="number of seconds"):
                    privet.connect(relay.url, keep=False, timeout=wrong)


def test_an_awaited_call_ends_in_its_time_and_the_next_goes_first(people: pathlib.Path) -> None:
    async def look_up(relay: Relay) -> None:
        async with privet.AsyncClient(relay.url, keep=False, progress=False) as db:
            relay.passes.clear()
            with pytest.raises(privet.UnavailableError, match="within the 0.5 s of `timeout`"):
                await db.get("person 1", timeout=0.5)
            answers = await db.get_many(["person 1"] * 500, timeout=0.5)
            assert len(answers) == len(answers.errors) == 500
            assert "0.5 s" in str(answers.errors[0])
            streamed = [answer async for answer in db.stream(["person 1"] * 9, timeout=0.5)]
            assert all(isinstance(one.error, privet.UnavailableError) for one in streamed)
            relay.passes.set()
            assert (await db.get("person 2", timeout=60)).values == person(2)
            assert (await db.get_many(["person 1"] * 9, timeout=60)).errors == []
            assert (await db.get_many([], timeout=60)).errors == []
            timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
            assert all(timer.cancelled() for timer in timers), "one outlives its lookups"
            for wrong in (0, -1, float("nan")):
                with pytest.raises(privet.UsageError, match="number of seconds"):
                    await db.get("person 1", timeout=wrong)

    with servers(people, "simplepir") as running, Relay(running.urls[0]) as relay:
        asyncio.run(look_up(relay))
        assert len(running.observed()[0]) < 100


def test_silence_is_told_after_a_second(people: pathlib.Path, caplog) -> None:
    told = []
    with servers(people, "simplepir") as running, Relay(running.urls[0]) as relay:
        with privet.connect(relay.url, keep=False, progress=False) as db:
            relay.passes.clear()
            with pytest.raises(privet.UnavailableError):
                db.get("person 1", timeout=2.5)
            relay.passes.set()
            db.get("person 1")
        lines = [record.getMessage() for record in caplog.records if record.name == "privet"]
        assert len(lines) == 1, lines
        assert lines[0].startswith(f"nothing has come from {relay.url} for ")
        with privet.connect(relay.url, keep=False, progress=told.append) as db:
            relay.passes.clear()
            with pytest.raises(privet.UnavailableError):
                db.get("person 1", timeout=2.5)
            relay.passes.set()
    assert "nothing has come" in told[-1].what and told[-1].total == 0
    assert "person" not in caplog.text


def test_a_server_that_is_gone_is_told_within_the_timeout(people: pathlib.Path, caplog) -> None:
    running = servers(people, "simplepir")
    with privet.connect(running, keep=False, progress=False, timeout=3) as db:
        db.get("person 1")
        running.close()
        begun = time.monotonic()
        with pytest.raises(privet.UnavailableError) as caught:
            db.get("person 1")
        took = time.monotonic() - begun
        print(f"{took:.2f} s: {caught.value}")
        # The patience of one half of the time, and what a busy machine needs.
        assert took < 30
    lines = [record.getMessage() for record in caplog.records]
    assert any("trying again" in line and running.urls[0] in line for line in lines), lines
    # Not the same line at each attempt.
    assert len(lines) <= 3, lines
    begun = time.monotonic()
    with pytest.raises(privet.UnavailableError):
        privet.connect(running.urls, keep=False, progress=False)
    assert time.monotonic() - begun < 30
