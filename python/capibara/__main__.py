"""python -m capibara script.py: runs a script that says `import jax` on capibara."""
import runpy
import sys


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("usage: python -m capibara SCRIPT.py [arguments]\n\nRuns a script that says `import jax` on capibara.")
        return 0 if len(sys.argv) > 1 else 2
    import capibara.jax
    capibara.jax.install()
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    import os
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
