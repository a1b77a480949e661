"""A real Slurm on this one node, all in one folder: started for a test, gone after it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel")
CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/run/munge.socket
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
SlurmctldPort={port_a}
SlurmdPort={port_b}
SlurmctldPidFile={root}/run/slurmctld.pid
SlurmdPidFile={root}/run/slurmd.pid
SlurmdSpoolDir={root}/spool
StateSaveLocation={root}/state
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdLogFile={root}/log/slurmd.log
SwitchType=switch/none
MinJobAge=600
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=render Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str | None:
    """Return why Slurm cannot run here, or None."""
    missing = [name for name in PROGRAMS if _find(name) is None]
    if missing:
        return (f"Slurm is not installed ({', '.join(missing)} missing); as root: "
                "apt install slurm-wlm munge")
    if os.getuid() != 0:
        return "a Slurm of its own needs root, for its daemons start tasks as users"
    return None


class Slurm:
    """A running cluster of one node; ``environment`` leads programs to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = {**os.environ, "SLURM_CONF": str(root / "etc/slurm.conf")}

    def run(self, *words: str) -> str:
        """Run one of Slurm's programs and return what it prints."""
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, f"{words}: {done.stderr}{self.logs()}"
        return done.stdout

    def requeue(self, number: str) -> None:
        """Take a running task off its node, as if that died; do nothing if it has ended."""
        done = subprocess.run(["scontrol", "requeue", number], env=self.environment,
                              capture_output=True, check=False)
        if done.returncode == 0:
            self.hasten(number)

    def hasten(self, number: str) -> None:
        """Let a requeued task start in three seconds: Slurm would wait two minutes.

        Sooner, its daemons would take it for the one that was just ended.
        """
        self.run("scontrol", "update", f"JobId={number}", "StartTime=now+3")

    def jobs(self) -> dict[str, str]:
        """Return the state of every job or array task still known, by its number."""
        rows = self.run("squeue", "--all", "--noheader", "--array", "--states=all",
                        "--format=%A %j %T").splitlines()
        return {f"{row.split()[0]} {row.split()[1]}": row.split()[2] for row in rows}

    def wait(self, seconds: float) -> dict[str, str]:
        """Return the states of all jobs when none is left to run."""
        end = time.monotonic() + seconds
        while True:
            jobs = self.jobs()
            busy = [state for state in jobs.values()
                    if state in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED")]
            if not busy:
                return jobs
            assert time.monotonic() < end, f"{jobs}{self.logs()}"
            time.sleep(0.3)

    def logs(self) -> str:
        """Return the end of the daemons' logs, for a test that fails."""
        return "".join(f"\n--- {path.name}\n{path.read_text(errors='replace')[-1500:]}"
                       for path in sorted((self.root / "log").glob("*.log")))


@contextlib.contextmanager
def one_node_slurm(root: Path) -> Iterator[Slurm]:
    """Start munge and both daemons in ``root``; stop them by their own means afterwards."""
    for name in ("etc", "state", "spool", "log", "run", "munge"):
        (root / name).mkdir(parents=True)
    (root / "munge").chmod(0o700)
    root.chmod(0o755)
    key = root / "munge/munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    port_a, port_b = _free_ports()
    (root / "etc/slurm.conf").write_text(CONFIG.format(
        host=host, root=root, port_a=port_a, port_b=port_b))
    (root / "etc/cgroup.conf").touch()
    slurm = Slurm(root)
    munged = subprocess.Popen(
        [str(_find("munged")), "--force", "--foreground", f"--key-file={key}",
         f"--socket={root}/run/munge.socket", f"--pid-file={root}/munge/munged.pid",
         f"--log-file={root}/munge/munged.log", f"--seed-file={root}/munge/munged.seed"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    daemons = [munged]
    try:
        _until(lambda: (root / "run/munge.socket").exists(), slurm)
        for name in ("slurmctld", "slurmd"):
            daemons.append(subprocess.Popen(
                [str(_find(name)), "-D"], env=slurm.environment, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL))
        _until(lambda: "idle" in subprocess.run(
            ["sinfo", "--noheader", "--format=%T"], env=slurm.environment, capture_output=True,
            text=True, check=False).stdout, slurm)
        yield slurm
        # Leave no task behind that nobody watches.
        slurm.run("scancel", "--user=root", "--quiet")
        slurm.wait(30.0)
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _until(holds, slurm: Slurm) -> None:
    end = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < end, f"Slurm did not start{slurm.logs()}"
        time.sleep(0.1)


def _find(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _free_ports() -> tuple[int, int]:
    with socket.socket() as a, socket.socket() as b:
        a.bind(("127.0.0.1", 0))
        b.bind(("127.0.0.1", 0))
        return a.getsockname()[1], b.getsockname()[1]
