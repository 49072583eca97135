"""Waits for a program as long as it works: a loaded machine makes it slow, only a program that stands still hangs."""

import os
import signal
import time
from pathlib import Path

IDLE_SECONDS = 180  # without any use of the processor
LOOK_SECONDS = 0.5
WRITE_SECONDS = 2  # for a program that is stopped to say where it stands


def processor_seconds(session):
    """What the living processes of a session have used so far, by its number; they include the children they waited for."""
    ticks = 0
    for name in filter(str.isdigit, os.listdir("/proc")):  # no glob: it raises where a process ends while it looks
        try:
            fields = Path("/proc", name, "stat").read_text().rsplit(")", 1)[1].split()  # from the third field on: the name may hold spaces
        except OSError:
            continue  # it has just ended
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def ended(child, seconds):
    """Waits for the end of a child, which stays a zombie whose figures can still be read; False after `seconds`."""
    end, pause = time.monotonic() + seconds, 0.002
    while not os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        if time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    return True


def wait(child, limit, progress=lambda: None):
    """The status of a child that leads its own session, None where it stood still or used `limit` seconds of processor, and
    the seconds of processor that it used in all.

    `progress()` is any value that changes while the child gets on: each change starts the limit anew.
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
        if now > used + 0.05 or now < used:  # less: a process of the session ended
            used, since = now, time.monotonic()
        if now - start > limit or time.monotonic() - since > IDLE_SECONDS:
            return None, now


def stop(child, seconds=0):
    """Ends the session that a child leads; with `seconds`, pytest first writes down in which line each thread is."""
    try:
        if seconds:
            child.send_signal(signal.SIGABRT)
            time.sleep(seconds)
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
