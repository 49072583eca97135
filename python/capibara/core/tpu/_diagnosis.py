"""Diagnoses why a program cannot use the TPU: the core's findings as a dictionary."""
from capibara import _core, _tracebacks


def diagnose_tpu(*, root="", metadata="", libraries=True):
    """{"summary", "findings": [{"subject", "state", "finding", "remedy"}], "chips"}; `capibara doctor` prints the same.

    `root` is prepended to /sys, /proc, /dev and /tmp, and `metadata` is HOST:PORT of a server, for tests.
    """
    summary, rows = _core.tpu.diagnose(root, metadata, libraries)
    findings = [dict(zip(("subject", "state", "finding", "remedy"), row)) for row in rows]
    chips = []
    for finding in findings:
        if finding["subject"] == "PCI" and finding["state"] == "ok":
            count, _, name = finding["finding"].partition(" x ")
            chips = [name] * int(count)
    return {"summary": summary, "findings": findings, "chips": chips}


_tracebacks.guard(__name__)
