"""python -m capibara script.py, -m module or -c code: runs a program that imports jax or mithril on capibara."""
import importlib
import importlib.machinery
import importlib.util
import os
import runpy
import sys
import types


class _JaxWhenImported:
    """Makes the first `import jax` import capibara, so that environment variables that the program sets before it take effect."""

    def find_spec(self, name, path=None, target=None):
        if name == "jaxlib":  # its names are provided by jax's finder
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
        module.__spec__ = self._spec  # the import system has set the spec of the other name


class _Mithril:
    """Resolves `import mithril` and its submodules to capibara's."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name == "mithril" or name.startswith("mithril.") else None

    def create_module(self, spec):
        module = importlib.import_module("capibara." + spec.name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state


_USAGE = """usage: python -m capibara SCRIPT.py [arguments]
       python -m capibara -m MODULE [arguments]
       python -m capibara -c CODE [arguments]

Runs a program that says `import jax`, or `import mithril`, on capibara."""


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(_USAGE)
        return 0 if len(sys.argv) > 1 else 2
    form = sys.argv[1]
    if form.startswith("-") and form not in ("-m", "-c"):
        print(f"python -m capibara: there is no option {form}\n{_USAGE}", file=sys.stderr)
        return 2
    if form in ("-m", "-c") and len(sys.argv) < 3:
        print(f"python -m capibara: {form} expects {'the name of a module' if form == '-m' else 'code'}", file=sys.stderr)
        return 2
    sys.meta_path[:0] = [_JaxWhenImported(), _Mithril()]
    if form == "-m":
        sys.argv = sys.argv[2:]
        sys.path[0] = os.getcwd()  # as `python -m` has it
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return 0
    if form == "-c":
        code = sys.argv[2]
        sys.argv = ["-c", *sys.argv[3:]]
        sys.path[0] = ""  # as `python -c` has it
        return _shown("<string>", lambda: _run_code(code))
    script = os.path.abspath(form)  # as `python script.py` sets __file__
    if not os.path.exists(script):
        print(f"python -m capibara: can't open file {script!r}: there is none", file=sys.stderr)
        return 2
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(script)
    return _shown(script, lambda: runpy.run_path(script, run_name="__main__"))


def _run_code(code):
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    exec(compile(code, "<string>", "exec"), module.__dict__)


def _shown(file, run):
    """The exit status of a program; its errors are printed as by `python script.py`, with the frames from the script on."""
    try:
        run()
    except Exception as error:
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != file:
            frames = frames.tb_next
        error.__traceback__ = frames or error.__traceback__
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
