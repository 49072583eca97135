"""Waits for a program while it makes progress: a loaded machine makes it slow, only a program that is idle hangs."""

import os
import signal
import time
from pathlib import Path

IDLE_SECONDS = 180  # without using the processor
LOOK_SECONDS = 0.5
WRITE_SECONDS = 2  # for a program being stopped to write down where it is


def processor_seconds(session):
    """Processor time used so far by the living processes of a session, given by its number, with children they waited for."""
    ticks = 0
    for name in filter(str.isdigit, os.listdir("/proc")):  # no glob: it raises if a process ends meanwhile
        try:
            fields = Path("/proc", name, "stat").read_text().rsplit(")", 1)[1].split()  # from the third field on: the name may have spaces
        except OSError:
            continue  # it has just ended
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def ended(child, seconds):
    """Waits for a child to exit, keeping the zombie so that its figures can still be read; False after `seconds`."""
    end, pause = time.monotonic() + seconds, 0.002
    while not os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        if time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    return True


def wait(child, limit, progress=lambda: None):
    """The status of a child that leads its own session, None if it was idle or used `limit` seconds of processor time, and
    the total processor time that it used.

    `progress()` is any value that changes while the child makes progress: each change restarts the limit.
    """
    seen = progress()
    start = used = processor_seconds(child.pid)
    since = time.monotonic()
    while True:
        if ended(child, LOOK_SECONDS):
            used = processor_seconds(child.pid)
            return child.wait(), used
        now = processor_seconds(child.pid)
        state = progress()
        if state != seen:
            seen, start, used, since = state, now, now, time.monotonic()
        if now > used + 0.05 or now < used:  # less: a process of the session has ended
            used, since = now, time.monotonic()
        if now - start > limit or time.monotonic() - since > IDLE_SECONDS:
            return None, now


def stop(child, seconds=0):
    """Kills the session that a child leads; with `seconds`, pytest first dumps the line that each thread is at."""
    try:
        if seconds:
            child.send_signal(signal.SIGABRT)
            time.sleep(seconds)
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
