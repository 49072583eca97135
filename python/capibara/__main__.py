"""python -m capibara script.py: runs a script that says `import jax` on capibara."""
import runpy
import sys


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("usage: python -m capibara SCRIPT.py [arguments]\n\nRuns a script that says `import jax` on capibara.")
        return 0 if len(sys.argv) > 1 else 2
    import capibara.jax
    capibara.jax.install()
    import os
    script = os.path.abspath(sys.argv[1])  # as `python script.py` sets __file__
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(script)
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception as error:
        # As `python script.py` shows it: the frames from the script on.
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != script:
            frames = frames.tb_next
        error.__traceback__ = frames or error.__traceback__
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
