"""The program `capibara` of an installed package: the commands of the library that the extension is linked with."""
import ctypes
import os
import shutil
import signal
import sys

from capibara import _core


def main():
    # A program in C++ ends at Ctrl-C and where no one reads its output; Python has turned both into exceptions.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.environ.setdefault("CAPIBARA_PYTHON", sys.executable)  # `capibara profile script.py` runs it in this environment
    program = sys.argv[0] if os.path.sep in sys.argv[0] else shutil.which(sys.argv[0]) or sys.argv[0]
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    words = [os.fsencode(word) for word in (program, *sys.argv[1:])]
    values = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    sys.stdout.flush()
    return ctypes.CDLL(_core.__file__).capibara_run_command(len(words), values, os.fsencode(data))


if __name__ == "__main__":
    sys.exit(main())
