"""python -m capibara script.py, or -m module: runs a program that says `import jax` on capibara."""
import importlib
import importlib.machinery
import importlib.util
import runpy
import sys


class _JaxWhenImported:
    """Makes `import jax` mean capibara when a program first says so: the settings that it puts in its environment before count."""

    def find_spec(self, name, path=None, target=None):
        if name == "jaxlib":  # whose names jax answers for
            importlib.import_module("jax")
            return importlib.util.find_spec(name)
        return importlib.machinery.ModuleSpec("jax", self, is_package=True) if name == "jax" else None

    def create_module(self, spec):
        sys.meta_path.remove(self)
        module = importlib.import_module("capibara.jax")
        module.install()
        self._spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self._spec  # importing sets that of the other name


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("usage: python -m capibara SCRIPT.py [arguments]\n       python -m capibara -m MODULE [arguments]\n\n"
              "Runs a program that says `import jax` on capibara.")
        return 0 if len(sys.argv) > 1 else 2
    import os
    sys.meta_path.insert(0, _JaxWhenImported())
    if sys.argv[1] == "-m":
        if len(sys.argv) < 3:
            print("python -m capibara: -m expects the name of a module", file=sys.stderr)
            return 2
        sys.argv = sys.argv[2:]
        sys.path[0] = os.getcwd()  # as `python -m` has it
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return 0
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
