"""How many threads a shared machine is worth: fewer where they wait, more where cores idle."""

from __future__ import annotations

import pytest

from vfx.device.cpu import CpuDevice
from vfx.device.share import INTERVAL, Reading, Share, read_system


class Machine:
    """A machine of some cores on which each of our threads gets a part of what it asks for."""

    def __init__(self, cores: int) -> None:
        self.cores, self.others, self.now = cores, 0.0, 0.0
        self._thread: dict[int, tuple[float, float]] = {}
        self._idle = 0.0

    def read(self) -> Reading:
        return Reading(dict(self._thread), self._idle)

    def run(self, threads: int, rounds: int) -> int:
        """A round takes an interval; fair shares of cores go to our threads and those of others."""
        wanted = threads + self.others
        got = min(1.0, self.cores / wanted)
        for number in range(threads):
            ran, waited = self._thread.get(number, (0.0, 0.0))
            self._thread[number] = ran + got * INTERVAL, waited + (1.0 - got) * INTERVAL
        for number in [each for each in self._thread if each >= threads]:
            del self._thread[number]
        self._idle += max(0.0, self.cores - wanted) * INTERVAL
        self.now += rounds * INTERVAL
        return rounds


def share_of(machine: Machine, most: int) -> Share:
    return Share(most, machine.read, lambda: machine.now)


def after(share: Share, machine: Machine, rounds: int = 8) -> int:
    for _ in range(rounds):
        share.run(1, machine.run)
    return share.look()


@pytest.mark.parametrize("cores, others, expected", [
    (2, 0, 2), (2, 2, 1), (2, 8, 1), (4, 4, 2), (8, 8, 4), (2, 0.1, 2), (1, 3, 1)])
def test_threads_are_as_many_as_cores_that_are_there_for_us(
    cores: int, others: float, expected: int
) -> None:
    machine = Machine(cores)
    machine.others = others
    share = share_of(machine, cores)
    share.run(1, machine.run)
    assert share.look() in (expected, cores)
    share.run(1, machine.run)
    assert share.look() == expected


def test_threads_come_back_when_the_others_have_gone() -> None:
    machine = Machine(4)
    machine.others = 4
    share = share_of(machine, 4)
    assert after(share, machine, 2) == 2
    machine.others = 0
    assert after(share, machine, 2) == 4


def test_what_a_round_ends_early_ends_it_all() -> None:
    machine = Machine(2)
    share = share_of(machine, 2)
    calls = []

    def halted(threads: int, rounds: int) -> int:
        calls.append(rounds)
        return rounds if len(calls) == 1 else 3

    first = share.run(10**6, halted)
    assert first == calls[0] + 3 and len(calls) == 2


def test_a_system_that_does_not_count_leaves_threads_alone() -> None:
    share = Share(2, lambda: None)
    assert share.run(5, lambda threads, rounds: rounds) == 5
    assert share.threads == 2


def test_a_number_that_was_asked_for_stays() -> None:
    device = CpuDevice()
    device.threads = 3
    assert device.threads == 3 and device._share is None


def test_linux_counts_this_process() -> None:
    first, second = read_system(), read_system()
    if first is None or second is None:
        pytest.skip("this system does not count how long threads wait for cores")
    ran, waited, idle = second.since(first)
    assert min(ran, waited, idle) >= 0.0
