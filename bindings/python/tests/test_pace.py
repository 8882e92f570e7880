"""What leaves, and when, follows from the list of keys, whatever is done with the answers.

A relay sees what a client sends. No test measures times: where somebody holds the answers up, all
queries must leave before that ends.
"""

import asyncio
import contextlib
import pathlib
from collections import Counter

import pytest
from relay import Relay

import privet
from privet._values import answer
from privet.testing import servers

KEYS = [f"person {number % 60}" for number in range(100)]
"""Twelve times as many as are under way at once. Some are not in the table."""

LONG = 60.0
"""Seconds for what must happen, on a machine that has other work."""

SHORT = 2.0
"""Seconds for what must not happen."""


class Windowed(privet.AsyncClient):
    """A planted leak: further lookups are handed in as answers are taken."""

    async def stream(self, keys):
        ahead = []
        for key in keys:
            ahead.append((key, self._begin([key])[0]))
            if len(ahead) >= 8:
                first, future = ahead.pop(0)
                yield answer(first, await future, self._open.description)
        for key, future in ahead:
            yield answer(key, await future, self._open.description)


class EndsAtOnce(privet.AsyncClient):
    """A planted leak: an error ends the lookups that are under way."""

    async def __aexit__(self, *_):
        await self.aclose()


async def _takes_all(answers, _):
    async for _key, _value in answers:
        pass


async def _takes_one(answers, all_left):
    async for _ in answers:
        # Other tasks run meanwhile.
        assert await asyncio.to_thread(all_left), "the rest waits for the answers to be taken"
        break


async def _is_busy(answers, all_left):
    async for _ in answers:
        # No other task runs meanwhile.
        assert all_left(), "the rest waits for the event loop"


async def _stops_early(answers, _):
    async for _ in answers:
        break


async def _fails(answers, _):
    async for _ in answers:
        raise ValueError


async def _is_cancelled(answers, _):
    async for _ in answers:
        asyncio.current_task().cancel()
        await asyncio.sleep(0)


CONSUMERS = [_takes_all, _takes_one, _is_busy, _stops_early, _fails, _is_cancelled]


@pytest.fixture(scope="module")
def running(people: pathlib.Path):
    with servers(people, "simplepir") as running:
        yield running


def _sent(running, consume, expected, kind=privet.AsyncClient, keys=KEYS, within=LONG) -> Counter:
    """What a client sent, if `consume` took its answers."""

    async def look_up(relay: Relay) -> None:
        with contextlib.suppress(ValueError, asyncio.CancelledError):
            async with kind(relay.url, keep=False, progress=False) as db:
                await consume(db.stream(keys), lambda: relay.saw(expected, within))

    with Relay(running.urls[0]) as relay:
        asyncio.run(look_up(relay))
        return relay.lengths()


@pytest.fixture(scope="module")
def undisturbed(running) -> Counter:
    sent = _sent(running, _takes_all, None)
    assert max(sent.values()) == len(KEYS), sent
    return sent


@pytest.mark.parametrize("consume", CONSUMERS)
def test_whoever_takes_answers_changes_nothing(running, undisturbed, consume) -> None:
    for keys in (KEYS, ["person 1"] * len(KEYS), ["nobody"] * len(KEYS)):
        assert _sent(running, consume, undisturbed, keys=keys) == undisturbed


@pytest.mark.parametrize("consume", [_takes_one, _is_busy])
def test_a_window_that_moves_as_answers_are_taken_is_caught(
    running, undisturbed, consume
) -> None:
    assert _sent(running, _takes_all, undisturbed, Windowed) == undisturbed
    with pytest.raises(AssertionError, match="the rest waits"):
        _sent(running, consume, undisturbed, Windowed, within=SHORT)
    assert _sent(running, _stops_early, undisturbed, Windowed) != undisturbed


@pytest.mark.parametrize("consume", [_fails, _is_cancelled])
def test_an_error_that_ends_the_lookups_is_caught(running, undisturbed, consume) -> None:
    many = KEYS * 5
    full = _sent(running, _takes_all, None, keys=many)
    assert _sent(running, consume, full, EndsAtOnce, keys=many) != full
    assert _sent(running, consume, full, keys=many) == full


def test_progress_changes_nothing(running, undisturbed) -> None:
    """Neither what is slow nor what raises changes anything."""
    for raises in (False, True):
        with Relay(running.urls[0]) as relay:
            held_up = []

            def progress(told, relay=relay, held_up=held_up, raises=raises) -> None:
                if told.what == "looking up" and not held_up:
                    held_up.append(raises or relay.saw(undisturbed, LONG))
                    if raises:
                        raise ValueError

            with contextlib.suppress(ValueError):
                with privet.connect(relay.url, keep=False, progress=False) as db:
                    db.get_many(KEYS, progress=progress)
            assert held_up == [True] and relay.lengths() == undisturbed
