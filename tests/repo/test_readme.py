"""The README is correct: its program compiles, its commands and links exist."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def block(language):
    return re.search(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL).group(1)


@pytest.mark.slow
def test_program_compiles():
    compiler = shutil.which("g++") or pytest.skip("no g++")
    program = block("cpp") + "\nint main() {}\n"
    result = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", "-x", "c++", "-"],
                            input=program, text=True, capture_output=True)
    assert result.returncode == 0, result.stderr


def test_first_commands_are_the_two():
    commands = [line.split("#")[0].strip() for line in block("sh").splitlines()]
    assert commands == ["./run demo", "./run test"]


def test_links_lead_somewhere():
    prose = re.sub(r"^```.*?^```", "", README, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert target.startswith("https://") or (ROOT / target).exists(), target
