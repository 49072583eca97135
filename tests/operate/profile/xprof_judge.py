"""Runs in xprof's environment: prints the output of its tools for a profile as JSON, or captures one from a server.

usage: xprof_judge.py tools FILE TOOL... | xprof_judge.py capture PORT LOGDIR MILLISECONDS
"""
import json
import sys


def tools(path, names):
    from xprof.convert import raw_to_tool_data
    answers = {}
    for name in names:
        data, _ = raw_to_tool_data.xspace_to_tool_data([path], name, {})
        answers[name] = json.loads(data.decode() if isinstance(data, bytes) else data)
    print("ANSWER" + json.dumps(answers))


def capture(port, folder, milliseconds):
    from xprof.convert import _pywrap_profiler_plugin
    _pywrap_profiler_plugin.trace(f"127.0.0.1:{port}", folder, "", True, int(milliseconds), 1, {})


if __name__ == "__main__":
    tools(sys.argv[2], sys.argv[3:]) if sys.argv[1] == "tools" else capture(*sys.argv[2:])
